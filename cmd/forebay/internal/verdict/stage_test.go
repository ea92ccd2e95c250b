package verdict

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// stage is a real gate in simulated time, before a backend that can be short of something.
type stage struct {
	testing.TB
	*Recorder
	gate, beside *forebay.Gate // beside is one of which nothing is ever wrong
	dice         *rand.Rand
	ctx          context.Context
	calls        sync.WaitGroup
	hung         chan struct{} // ends the calls that hang

	rate    float64                              // calls a second
	service time.Duration                        // of a call alone, on average
	spread  float64                              // 0: each takes as long; 1: exponential
	route   func() (route string, times float64) // of a call; nil: one route, once the service
	pool    chan struct{}                        // of connections behind the gate; nil: enough
	cores   float64                              // that calls share; 0: they wait, and share nothing
	idle    float64                              // how busy the processor is beside
	noCPU   bool                                 // and it is not known
	hang    float64                              // share of the calls that never end
	reader  func() time.Duration                 // how long a client takes to read; nil: none
	refused func(dice *rand.Rand, again func())  // what callers do; nil: they go
	caller  func() string                        // who calls
	every   func(second int)                     // what else happens
	working atomic.Int64                         // calls in the backend
	changes []Change
}

// newStage makes a stage of numbers that a seed has drawn.
func newStage(t testing.TB, seed uint64, c forebay.Config) *stage {
	t.Helper()
	s := &stage{TB: t, Recorder: NewRecorder(), dice: rand.New(rand.NewPCG(seed, 8)), ctx: t.Context(), hung: make(chan struct{}), spread: .5, idle: .1}
	c.Name, c.Track = "reports", true
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 4 + s.dice.IntN(28)
	}
	c.MaxWait = time.Duration(40+s.dice.IntN(160)) * time.Millisecond
	c.Observers = []forebay.Observer{s}
	perSecond := 40 * math.Exp(s.dice.Float64()*math.Log(5)) // 40 to 200 calls at most
	s.service = time.Duration(float64(c.MaxInFlight) / perSecond * float64(time.Second)).Round(time.Millisecond)
	s.gate, s.beside = s.newGate(c), s.newGate(forebay.Config{Name: "orders", MaxInFlight: 10, Track: true, Observers: c.Observers})
	s.Watch(s.gate, s.beside)
	s.rate = s.carries() * .5
	return s
}

func (s *stage) newGate(c forebay.Config) *forebay.Gate {
	g, err := forebay.New(c)
	if err != nil {
		s.Fatal(err)
	}
	return g
}

// carries is how many calls a second the gate's limit lets through.
func (s *stage) carries() float64 { return float64(s.gate.Config().MaxInFlight) / s.service.Seconds() }

// run lets the calls of so many seconds come, and judges each second.
func (s *stage) run(seconds int) {
	for second := range seconds {
		if s.every != nil {
			s.every(second)
		}
		end := time.Now().Add(time.Second)
		for {
			next := time.Duration(s.dice.ExpFloat64() / max(s.rate, 1e-9) * float64(time.Second))
			if now := time.Now(); !now.Add(next).Before(end) || next < 0 {
				time.Sleep(end.Sub(now))
				break
			}
			time.Sleep(next)
			s.come()
		}
		s.second()
	}
}

func (s *stage) second() {
	lease, err := s.beside.Acquire(s.ctx, forebay.Call{})
	if err != nil {
		s.Fatal(err)
	}
	lease.Release()
	s.changes = append(s.changes, s.Tick(s.cpu())...)
}

func (s *stage) cpu() float64 {
	switch {
	case s.noCPU:
		return -1
	case s.cores == 0:
		return s.idle
	}
	return min(1, s.idle+float64(s.working.Load())/s.cores)
}

// come is one caller.
func (s *stage) come() {
	call := forebay.Call{Route: "GET /reports/"}
	if s.caller != nil {
		call.Caller = s.caller()
	}
	took := s.service.Seconds() * (1 - s.spread + s.spread*s.dice.ExpFloat64())
	if s.route != nil {
		var times float64
		call.Route, times = s.route()
		took *= times
	}
	hangs := s.dice.Float64() < s.hang
	var read time.Duration
	if s.reader != nil {
		read = s.reader()
	}
	// What a call does is drawn and looked up here: callers are goroutines of their own.
	refused, hung, pool, cores := s.refused, s.hung, s.pool, s.cores
	dice := rand.New(rand.NewPCG(s.dice.Uint64(), 1))
	var try func()
	try = func() {
		lease, err := s.gate.Acquire(s.ctx, call)
		if err != nil {
			if refused != nil && s.ctx.Err() == nil {
				refused(dice, try)
			}
			return
		}
		defer lease.Release()
		if hangs {
			select {
			case <-hung:
			case <-s.ctx.Done():
			}
			return
		}
		s.work(pool, cores, time.Duration(took*float64(time.Second)))
		if read > 0 {
			blocked := s.Blocked("reports")
			blocked.Add(1)
			time.Sleep(read)
			blocked.Add(-1)
		}
	}
	s.calls.Go(try)
}

// work is what a call does in the backend.
func (s *stage) work(pool chan struct{}, cores float64, took time.Duration) {
	if pool != nil {
		select {
		case pool <- struct{}{}:
			defer func() { <-pool }()
		case <-s.ctx.Done():
			return
		}
	}
	n := s.working.Add(1)
	defer s.working.Add(-1)
	if cores > 0 {
		took = time.Duration(float64(took) * max(1, float64(n)/cores))
	}
	time.Sleep(took)
}

// found are the verdicts that are up, as "gate verdict".
func (s *stage) found() []string {
	all := []string{}
	for _, v := range s.Verdicts() {
		all = append(all, v.Gate+" "+v.Verdict)
	}
	return all
}

// staged runs a test in simulated time and ends its calls.
func staged(t *testing.T, seed uint64, c forebay.Config, play func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, seed, c)
		ctx, cancel := context.WithCancel(s.ctx)
		s.ctx = ctx
		play(s)
		cancel()
		s.calls.Wait()
	})
}

func (s *stage) String() string {
	c := s.gate.Config()
	return fmt.Sprintf("limit %d, max_wait %v, service %v, %.0f calls a second of %.0f", c.MaxInFlight, c.MaxWait, s.service, s.rate, s.carries())
}
