package forebay

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var stressOps = flag.Int("ops", 2_000_000, "operations of the hard-bound test; a tenth of it with -short")

// arena is a gate under fire with a count of its own of what really runs.
type arena struct {
	t       *testing.T
	gates   []*Gate
	running []atomic.Int64 // units inside, by gate
	bound   []bound        // what running must never exceed
	seen    Recorder
	asked   atomic.Uint64
	left    atomic.Uint64
	refused atomic.Uint64
	granted atomic.Uint64
}

// bound is a limit that has come into force, and how often it has moved: whoever
// counts himself in while it moves cannot say against which he did.
type bound struct{ units, moves atomic.Int64 }

func (b *bound) set(n int64) {
	b.moves.Add(1)
	b.units.Store(n)
	b.moves.Add(1)
}

// Recorder counts decisions.
type Recorder struct{ decisions, releases atomic.Uint64 }

// Observe counts one event.
func (r *Recorder) Observe(e Event) {
	if e.Kind == EventDecided {
		r.decisions.Add(1)
	} else {
		r.releases.Add(1)
	}
}

func (a *arena) enter(cost int, gates ...int) {
	for _, i := range gates {
		b := &a.bound[i]
		moves, units := b.moves.Load(), b.units.Load()
		n := a.running[i].Add(int64(cost))
		if n > units && moves%2 == 0 && b.moves.Load() == moves {
			a.t.Errorf("gate %d: %d units run, limit %d", i, n, units)
		}
	}
}

func (a *arena) exit(cost int, gates ...int) {
	for _, i := range gates {
		a.running[i].Add(-int64(cost))
	}
}

// call is one random call; some through both gates.
func (a *arena) call(rng *rand.Rand, chain *Chain) {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	switch rng.IntN(16) {
	case 0:
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	case 1:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(200))*time.Microsecond)
	case 2:
		var c context.Context
		c, cancel = context.WithCancel(ctx)
		ctx = c
		go cancel()
	}
	defer cancel()
	cost := 1
	if rng.IntN(8) == 0 {
		cost = 1 + rng.IntN(3)
	}
	inside := []int{rng.IntN(len(a.gates))}
	var lease Lease
	var err error
	a.asked.Add(1)
	switch rng.IntN(10) {
	case 0:
		inside = []int{0, 1}
		lease, err = chain.Acquire(ctx, Call{Cost: cost})
	case 1:
		var ok bool
		if lease, ok = a.gates[inside[0]].TryAcquire(Call{Cost: cost}); !ok {
			err = ErrRejected
		}
	default:
		lease, err = a.gates[inside[0]].Acquire(ctx, Call{Cost: cost})
	}
	if err != nil {
		a.count(err)
		return
	}
	a.granted.Add(1)
	a.enter(cost, inside...)
	if rng.IntN(4) == 0 {
		runtime.Gosched()
	}
	a.exit(cost, inside...)
	lease.Release()
	if rng.IntN(64) == 0 {
		lease.Release() // does nothing
	}
}

func (a *arena) count(err error) {
	switch {
	case errors.Is(err, ErrRejected):
		a.refused.Add(1)
	case errors.Is(err, context.Canceled):
		a.left.Add(1)
	default:
		a.t.Errorf("unexpected error %v", err)
	}
}

// disturb moves limits, drains, reconfigures and looks, until told to stop. A
// lower limit binds as soon as no more than that runs.
func (a *arena) disturb(rng *rand.Rand, configs []Config, stop *atomic.Bool) {
	for !stop.Load() {
		i := rng.IntN(len(a.gates))
		g := a.gates[i]
		switch rng.IntN(6) {
		case 0, 1:
			n := int64(3 + rng.IntN(6))
			a.bound[i].set(max(n, a.bound[i].units.Load()))
			must(g.SetLimit(int(n)))
			for g.Stats().InUse > int(n) && !stop.Load() {
				runtime.Gosched()
			}
			if !stop.Load() {
				a.bound[i].set(n)
			}
		case 2:
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Microsecond)
			_ = g.Drain(ctx)
			cancel()
			g.Resume()
		case 3:
			n := int64(configs[i].MaxInFlight)
			a.bound[i].set(max(n, a.bound[i].units.Load()))
			must(g.Reconfigure(configs[i]))
		default:
			st := g.Stats()
			if st.Granted != st.Released+uint64(st.Calls) {
				a.t.Errorf("granted %d, released %d, out %d", st.Granted, st.Released, st.Calls)
			}
			runtime.Gosched()
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// The true overlap never exceeds the limit in force, every call gets one
// decision, and afterwards a full set is admitted: with a bare gate, an observed
// and tracked one, chains over both, random costs, cancels, timeouts, limits that
// move, drains and reloads.
func TestHardBound(t *testing.T) {
	ops := *stressOps
	if testing.Short() {
		ops /= 10
	}
	a := &arena{t: t, running: make([]atomic.Int64, 2), bound: make([]bound, 2)}
	configs := []Config{
		{Name: "bare", MaxInFlight: 8, MaxWait: 200 * time.Microsecond, MaxWaiting: 40},
		{Name: "watched", MaxInFlight: 6, MaxWait: time.Millisecond, Track: true, MaxHold: time.Minute, Observers: []Observer{&a.seen}},
	}
	for i, c := range configs {
		g, err := New(c)
		must(err)
		a.gates = append(a.gates, g)
		a.bound[i].set(int64(c.MaxInFlight))
	}
	chain, err := NewChain(a.gates...)
	must(err)
	var stop atomic.Bool
	var callers, disturber sync.WaitGroup
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for w := range 64 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(w)))
			for range ops / 64 {
				a.call(rng, chain)
			}
		})
	}
	disturber.Go(func() { a.disturb(rand.New(rand.NewPCG(seed, 1000)), configs, &stop) })
	callers.Wait()
	stop.Store(true)
	disturber.Wait()
	a.settle()
}

func (a *arena) settle() {
	t := a.t
	var decided uint64
	for i, g := range a.gates {
		st := g.Stats()
		decided += st.Accepted + st.Rejected() + st.Canceled
		if st.InUse != 0 || st.Calls != 0 || st.Waiting != 0 || st.Granted != st.Released {
			t.Errorf("gate %d at rest: %+v", i, st)
		}
		admitsFullSet(t, g)
	}
	if asked := a.asked.Load(); asked != decided || asked != a.granted.Load()+a.refused.Load()+a.left.Load() {
		t.Errorf("%d calls, %d decisions; callers saw %d granted, %d refused, %d left",
			asked, decided, a.granted.Load(), a.refused.Load(), a.left.Load())
	}
	t.Logf("%d calls: %d granted, %d refused, %d left", a.asked.Load(), a.granted.Load(), a.refused.Load(), a.left.Load())
}

// admitsFullSet checks that the gate admits exactly its limit.
func admitsFullSet(t testing.TB, g *Gate) {
	t.Helper()
	n := g.Stats().Capacity
	var leases []Lease
	for range n {
		l, ok := g.TryAcquire(Call{})
		if !ok {
			t.Errorf("gate %q admitted %d of %d", g.Name(), len(leases), n)
			break
		}
		leases = append(leases, l)
	}
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Errorf("gate %q admitted more than %d", g.Name(), n)
	}
	for _, l := range leases {
		l.Release()
	}
	if st := g.Stats(); st.InUse != 0 || st.StaleReleases > 0 && st.Granted != st.Released {
		t.Errorf("gate %q after a full set: %+v", g.Name(), st)
	}
}

// With nothing to do inside, every release races with an arrival. Not one wake-up
// may be lost: no wait reaches its timeout.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, limit := range []int{1, 3} {
		g, err := New(Config{MaxInFlight: limit, MaxWait: time.Minute, MaxWaiting: 64})
		must(err)
		ops := *stressOps / 8
		if testing.Short() {
			ops /= 10
		}
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range ops / 16 {
					l, err := g.Acquire(context.Background(), Call{})
					if err != nil {
						t.Errorf("a wait ended in vain: %v", err)
						return
					}
					l.Release()
				}
			})
		}
		wg.Wait()
		if st := g.Stats(); st.Accepted != st.Released || st.Rejected() != 0 || st.InUse != 0 {
			t.Errorf("limit %d: %+v", limit, st)
		}
	}
}

// QU-05: 1000 goroutines let go by one barrier; the limit is exact.
func TestQU05LimitIsExactInABurst(t *testing.T) {
	g, err := New(Config{MaxInFlight: 10})
	must(err)
	var inside, most, admitted atomic.Int64
	start := make(chan struct{})
	hold := make(chan struct{})
	var wg sync.WaitGroup
	var decided sync.WaitGroup
	decided.Add(1000)
	for range 1000 {
		wg.Go(func() {
			<-start
			l, err := g.Acquire(context.Background(), Call{})
			if err == nil {
				admitted.Add(1)
				n := inside.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
			}
			decided.Done()
			<-hold
			if err == nil {
				inside.Add(-1)
				l.Release()
			}
		})
	}
	close(start)
	decided.Wait()
	close(hold)
	wg.Wait()
	if most.Load() != 10 || admitted.Load() != 10 {
		t.Errorf("%d ran at once, %d were admitted, want exactly 10", most.Load(), admitted.Load())
	}
	admitsFullSet(t, g)
}
