package adaptive

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

const ms = time.Millisecond

// backend is one that is overloaded in a test: what it can do, and with which limit.
type backend struct {
	name  string
	does  float64 // calls a second
	right int     // the limit that a wise operator would have given
	at    simulate.Resource
	takes simulate.Times
	least float64 // goodput that is asked of a probe, of what could be
}

// backends are of the kinds that limiters meet, with pass lines below which something is
// broken: means of many seeds are higher.
var backends = []backend{
	{"many servers", 1000, 50, simulate.Resource{Servers: 50}, simulate.Exponential(50 * ms), .96},
	{"one in ten is slow", 1000, 50, simulate.Resource{Servers: 50}, simulate.Mix{{Share: .9, Takes: simulate.Fixed(15 * ms)}, {Share: .1, Takes: simulate.Fixed(365 * ms)}}, .95},
	{"lock step", 1000, 50, simulate.Resource{Servers: 50}, simulate.Fixed(50 * ms), .95},
	{"contention", 294, 40, simulate.Resource{Sigma: .02, Kappa: .0006}, simulate.Exponential(50 * ms), .88},
	{"cliff", 600, 30, simulate.Resource{Cliff: simulate.Cliff{At: 30, Power: 1.5}}, simulate.Exponential(50 * ms), .87},
	{"slow", 20, 4, simulate.Resource{Servers: 4}, simulate.Exponential(200 * ms), .70},
	{"fast", 8000, 16, simulate.Resource{Servers: 16}, simulate.Exponential(2 * ms), .96},
}

func (b backend) scenario(load float64, l func(int) admit.Limiter) *simulate.Scenario {
	b.at.Name = "b"
	return &simulate.Scenario{
		Name: b.name, For: 40 * time.Second, WarmUp: 20 * time.Second, Seed: 1,
		Resources: []simulate.Resource{b.at},
		Gates:     []simulate.Gate{{Name: "g", Config: admit.Config{Limit: 20, MaxWait: 100 * ms, Measure: true}, Limiter: l}},
		Routes:    []simulate.Route{{Name: "r", Gates: []string{"g"}, Work: []simulate.Visit{{At: "b", Takes: b.takes}}}},
		Clients:   []simulate.Client{{Name: "c", Route: "r", Deadline: time.Second, Arrivals: simulate.Arrivals{Rate: b.does * load}}},
	}
}

func newProbe(t testing.TB, c ProbeConfig) *Probe {
	t.Helper()
	p, err := NewProbe(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// probing returns what gives a probe to a scenario with one instance, and that probe.
func probing(t testing.TB, c ProbeConfig) (func(int) admit.Limiter, *Probe) {
	p := newProbe(t, c)
	return func(int) admit.Limiter { return simulate.Limiter(p) }, p
}

func run(t *testing.T, sc *simulate.Scenario) *simulate.Result {
	t.Helper()
	r, err := simulate.Run(sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestItFindsTheLimit: at twice the load, from a limit that is far off.
func TestItFindsTheLimit(t *testing.T) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			l, _ := probing(t, ProbeConfig{Seed: 1})
			r := run(t, b.scenario(2, l))
			if r.Goodput < b.least {
				t.Errorf("%.3f of what could be; at least %.2f is asked, with limits of %.0f on average", r.Goodput, b.least, r.Gates[0].Limit)
			}
		})
	}
}

// AD-02: a backend that is fifty times slower for a minute teaches nothing that lasts.
func TestAD02LongIncident(t *testing.T) {
	b := backends[0]
	b.at.Changes = []simulate.Change{{At: 20 * time.Second, Speed: .02}, {At: 80 * time.Second, Speed: 1}}
	l, p := probing(t, ProbeConfig{Seed: 1})
	sc := b.scenario(1.5, l)
	sc.For, sc.WarmUp = 110*time.Second, 90*time.Second
	if r := run(t, sc); r.Goodput < .93 {
		t.Errorf("%.3f of what could be, from 10 s after it on; %+v", r.Goodput, p.State())
	}
}

// AD-06: the backend has half of its servers for a while, and then all of them again.
func TestAD06LimitFollows(t *testing.T) {
	b := backends[0]
	b.at.Changes = []simulate.Change{{At: 20 * time.Second, Servers: 25}, {At: 40 * time.Second, Servers: 50}}
	const seeds = 4
	mean := 0.0
	for seed := uint64(1); seed <= seeds; seed++ {
		l, _ := probing(t, ProbeConfig{Seed: seed})
		sc := b.scenario(2, l)
		sc.For, sc.WarmUp, sc.Every, sc.Seed = time.Minute, 5*time.Second, time.Second, seed
		mean += run(t, sc).Goodput / seeds
	}
	if mean < .95 {
		t.Errorf("%.3f of what could be", mean)
	}
}

// TestItClimbsFast: a flash crowd is served by its second second as well as it can be.
func TestItClimbsFast(t *testing.T) {
	l, _ := probing(t, ProbeConfig{Seed: 1, Max: 5000})
	sc := backend{"big", 10_000, 500, simulate.Resource{Servers: 500}, simulate.Exponential(50 * ms), 0}.scenario(2, l)
	sc.For, sc.WarmUp, sc.Every = 5*time.Second, 2*time.Second, time.Second
	if r := run(t, sc); r.Goodput < .9 {
		t.Errorf("%.3f of what could be, from 20 to %.0f", r.Goodput, r.Points[len(r.Points)-1].Limit[0])
	}
}

// TestRerunsAreIdentical: a probe reads no clock and no chance but its own.
func TestRerunsAreIdentical(t *testing.T) {
	limits := func(seed uint64) string {
		l, _ := probing(t, ProbeConfig{Seed: seed})
		sc := backends[3].scenario(2, l)
		sc.For, sc.WarmUp = 10*time.Second, 0
		var b strings.Builder
		for _, p := range run(t, sc).Points {
			fmt.Fprintln(&b, p.Limit)
		}
		return b.String()
	}
	first := limits(1)
	if again := limits(1); again != first {
		t.Error("the same seed gives different limits")
	}
	if limits(2) == first {
		t.Error("different seeds give the same limits")
	}
}

// world plays a gate to a limiter, without one.
type world struct {
	limiter           forebay.Limiter
	now               time.Time
	inFlight, waiting int
	limit             int
	offered           uint64
	told              forebay.Observation
}

func (w *world) tell(kind forebay.ObservationKind, o forebay.Observation) int {
	o.Kind, o.Now, o.InFlight, o.Waiting, o.Limit, o.Offered, o.Cost = kind, w.now, w.inFlight, w.waiting, w.limit, w.offered, 1
	w.told = o
	w.limit = w.limiter.Observe(&w.told)
	return w.limit
}

func (w *world) start() {
	w.offered++
	w.inFlight++
	w.tell(forebay.ObservedStart, forebay.Observation{})
}

func (w *world) finish(held time.Duration, o forebay.Outcome) int {
	w.inFlight--
	return w.tell(forebay.ObservedFinish, forebay.Observation{Held: held, Outcome: o})
}

func newWorld(l forebay.Limiter, limit int) *world {
	w := &world{limiter: l, now: time.Unix(1e9, 0), limit: limit}
	w.tell(forebay.ObservedChange, forebay.Observation{})
	return w
}

// full lets a gate be full for a while, with calls of one length.
func (w *world) full(length, held time.Duration) {
	for end := w.now.Add(length); w.now.Before(end); {
		for w.inFlight < w.limit {
			w.start()
		}
		w.waiting, w.offered = 5, w.offered+1
		w.tell(forebay.ObservedJoin, forebay.Observation{})
		w.now = w.now.Add(held / time.Duration(w.inFlight))
		w.waiting = 4
		w.finish(held, forebay.OutcomeDone)
	}
}

// Without traffic, with a little, and with a lot that does not fill the gate, nothing is
// learnt and the limit stays.
func TestNothingIsLearntOfAGateThatIsNotFull(t *testing.T) {
	w := newWorld(newProbe(t, ProbeConfig{Start: 40}), 40)
	want := w.limit
	for range 60 {
		w.now = w.now.Add(time.Minute)
		w.start()
		w.now = w.now.Add(300 * ms)
		if got := w.finish(300*ms, forebay.OutcomeDone); got != want {
			t.Fatalf("the limit went from %d to %d, one call a minute", want, got)
		}
	}
	w.now = w.now.Add(24 * time.Hour)
	for range 10_000 {
		w.now = w.now.Add(ms)
		w.start()
		if got := w.finish(10*ms, forebay.OutcomeDone); got != want {
			t.Fatalf("the limit went from %d to %d with one call at a time", want, got)
		}
	}
}

// AD-08: a backend that refuses many calls at once lowers the limit once, before a slot is
// handed on, to what still runs; and again only by calls that began after that.
func TestAD08ManyRefusalsAtOnceCutOnce(t *testing.T) {
	p := newProbe(t, ProbeConfig{Start: 100, Max: 100})
	w := newWorld(p, 100)
	for range 100 {
		w.start()
	}
	w.now = w.now.Add(50 * ms)
	w.finish(50*ms, forebay.OutcomeDone)
	for range 40 {
		w.finish(50*ms, forebay.OutcomeOverloaded)
	}
	if s := p.State(); s.Centre < 59 || s.Centre > 80 || s.Reason != Refused {
		t.Errorf("40 refusals at once: %+v", s)
	}
	if w.limit > 60 {
		t.Errorf("a limit of %d while %d run", w.limit, w.inFlight)
	}
	before := p.State().Centre
	w.now = w.now.Add(time.Second)
	for range 20 {
		w.start()
		w.finish(50*ms, forebay.OutcomeDone)
	}
	for range 40 {
		w.finish(2*time.Second, forebay.OutcomeOverloaded)
	}
	if c := p.State().Centre; c != before {
		t.Errorf("from %v to %v, by calls that began before", before, c)
	}
}

// AD-11: what was ignored or cut off, and how long streams held their slots, says
// nothing.
func TestAD11WhatSaysNothingTeachesNothing(t *testing.T) {
	p := newProbe(t, ProbeConfig{})
	w := newWorld(p, 20)
	w.full(5*time.Second, 50*ms)
	before := p.State()
	for _, o := range []forebay.Outcome{forebay.OutcomeIgnored, forebay.OutcomeAborted} {
		for range 10 {
			w.start()
			w.finish(ms, o)
		}
	}
	if after := p.State(); after.Took != before.Took || after.Centre != before.Centre {
		t.Errorf("from %+v to %+v", before, after)
	}
}

// AD-13: a stream of an hour counts as ten deadlines.
func TestAD13StreamCountsAsTenDeadlines(t *testing.T) {
	p := newProbe(t, ProbeConfig{})
	w := newWorld(p, 20)
	w.full(5*time.Second, 50*ms)
	before := p.State()
	w.start()
	w.finish(time.Hour, forebay.OutcomeDone)
	if after := p.State(); after.Took > before.Took+time.Second {
		t.Errorf("from %v to %v", before.Took, after.Took)
	}
}

// AD-09: a limit that is right at its maximum stays there, but for the probes below it.
func TestAD09TheMaximumIsNoFault(t *testing.T) {
	l, p := probing(t, ProbeConfig{Max: 20})
	r := run(t, backends[0].scenario(.35, l))
	if p.State().Centre < 19 || r.Gates[0].Limit < 18 {
		t.Errorf("limits of %.1f on average; %+v", r.Gates[0].Limit, p.State())
	}
}

// AD-04: the bounds hold whatever happens, and are no levels that it probes at.
func TestAD04BoundsHold(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 1))
		least := 1 + dice.IntN(20)
		most := least + dice.IntN(200)
		p := newProbe(t, ProbeConfig{Min: least, Max: most, Seed: seed})
		w := newWorld(p, max(least, min(20, most)))
		for range 3000 {
			if dice.IntN(3) > 0 {
				w.now = w.now.Add(time.Duration(dice.Int64N(int64(1) << dice.IntN(31))))
			}
			switch held := time.Duration(dice.Int64N(int64(1) << dice.IntN(40))); dice.IntN(5) {
			case 0:
				w.offered += uint64(dice.IntN(50))
				w.waiting++
				w.tell(forebay.ObservedJoin, forebay.Observation{})
			case 1:
				w.waiting = max(0, w.waiting-1)
				w.tell(forebay.ObservedLeave, forebay.Observation{})
			case 2, 3:
				if w.inFlight < w.limit {
					w.start()
				}
			case 4:
				if w.inFlight > 0 {
					w.finish(held, forebay.Outcome(dice.IntN(4)))
				}
			}
			if w.limit < least || w.limit > most {
				t.Fatalf("seed %d: the limit is %d, of %d to %d; %+v", seed, w.limit, least, most, p.State())
			}
		}
	}
	w := newWorld(newProbe(t, ProbeConfig{Min: 7, Max: 7}), 7)
	if w.full(10*time.Second, 20*ms); w.limit != 7 {
		t.Errorf("from 7 to 7 it is %d", w.limit)
	}
}

// TestOnlyTheDeadlineIsNeeded: a backend that queues whatever it gets is not fed more
// than a third of the deadline.
func TestOnlyTheDeadlineIsNeeded(t *testing.T) {
	for _, deadline := range []time.Duration{300 * ms, 3 * time.Second} {
		l, p := probing(t, ProbeConfig{Deadline: deadline})
		b := backend{"one", 100, 1, simulate.Resource{Servers: 1}, simulate.Exponential(10 * ms), 0}
		sc := b.scenario(3, l)
		sc.Clients[0].Deadline = deadline
		r := run(t, sc)
		if took := time.Duration(r.Clients[0].Took.P99 * float64(time.Second)); took > deadline || r.Goodput < .93 {
			t.Errorf("deadline %v: %v for 99 of 100, %.3f of what could be; %+v", deadline, took, r.Goodput, p.State())
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		config ProbeConfig
		want   string
	}{
		{ProbeConfig{Deadline: -1}, "adaptive: Deadline is -1ns; it must be 0 (meaning 1s) to 24h"},
		{ProbeConfig{Min: -1}, "adaptive: Min is -1, Max 0, Start 0; none may be below 0"},
		{ProbeConfig{Min: 5, Max: 4}, "adaptive: Max is 4; it must be from Min, 5, to 1048575"},
		{ProbeConfig{Min: 5, Start: 4}, "adaptive: Start is 4; it must be from Min, 5, to Max, 1000"},
		{ProbeConfig{Max: 10, Start: 11}, "adaptive: Start is 11; it must be from Min, 1, to Max, 10"},
	} {
		if _, err := NewProbe(c.config); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
	for _, c := range []ProbeConfig{{}, {Min: 2000}, {Min: 30}, {Max: 5}, {Min: 3, Max: 3, Start: 3}} {
		if _, err := NewProbe(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestReasonsAreTold: each move has one, and a state can be looked at meanwhile.
func TestReasonsAreTold(t *testing.T) {
	var seen []Reason
	p := newProbe(t, ProbeConfig{Max: 5000, Seed: 2})
	look := func() {
		if r := p.State().Reason; !slices.Contains(seen, r) {
			seen = append(seen, r)
		}
	}
	look()
	sc := backends[3].scenario(3, func(int) admit.Limiter { return watched{simulate.Limiter(p), look} })
	sc.For = time.Minute
	run(t, sc)
	for _, want := range []Reason{Started, Climbed, Descended, Settled} {
		if !slices.Contains(seen, want) {
			t.Errorf("%s is not among %v", want, seen)
		}
	}
}

type watched struct {
	admit.Limiter
	look func()
}

func (w watched) Observe(o *admit.Observation) int {
	n := w.Limiter.Observe(o)
	w.look()
	return n
}

// TestItStartsAtTheGatesLimit: what was configured holds until more is known, unless
// Start says otherwise.
func TestItStartsAtTheGatesLimit(t *testing.T) {
	for _, c := range []struct {
		ProbeConfig
		want float64
	}{
		{ProbeConfig{}, 4}, {ProbeConfig{Start: 12}, 12}, {ProbeConfig{Min: 6}, 6}, {ProbeConfig{Max: 3}, 3},
	} {
		p := newProbe(t, c.ProbeConfig)
		g, err := forebay.New(forebay.Config{MaxInFlight: 4, Limiter: p})
		if err != nil {
			t.Fatal(err)
		}
		l, ok := g.TryAcquire(forebay.Call{})
		if !ok {
			t.Fatal("an empty gate refuses")
		}
		l.Release()
		if s := p.State(); s.Centre != c.want || s.Reason != Started || g.Stats().Capacity != s.Limit {
			t.Errorf("%+v: %+v, capacity %d", c.ProbeConfig, s, g.Stats().Capacity)
		}
	}
}

// TestInAGate: the limiter of a real gate, which moves its limit.
func TestInAGate(t *testing.T) {
	p := newProbe(t, ProbeConfig{Start: 3, Max: 9})
	g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 3, MaxWait: ms, Limiter: p})
	if err != nil {
		t.Fatal(err)
	}
	if n := g.Stats().Capacity; n < 3 || n > 9 {
		t.Errorf("capacity %d", n)
	}
	for i := range 100 {
		l, ok := g.TryAcquire(forebay.Call{})
		if !ok {
			t.Fatal("an empty gate refuses")
		}
		if i == 0 {
			l.Release()
			continue
		}
		l.ReleaseAs(forebay.OutcomeOverloaded)
	}
	if s := p.State(); s.Centre >= 3 || s.Limit < 1 {
		t.Errorf("%+v", s)
	}
}

// TestConfigureKeepsWhatWasLearnt: within other bounds, and of a mistake nothing changes.
func TestConfigureKeepsWhatWasLearnt(t *testing.T) {
	p := newProbe(t, ProbeConfig{Start: 40, Seed: 3})
	w := newWorld(p, 40)
	w.full(5*time.Second, 50*ms)
	before := p.State()
	if err := p.Configure(ProbeConfig{Min: 9, Max: 3}); err == nil || p.State() != before || p.Config().Max != 1000 {
		t.Errorf("%v, %+v", err, p.Config())
	}
	if err := p.Configure(ProbeConfig{Deadline: 3 * time.Second, Start: 7}); err != nil {
		t.Fatal(err)
	}
	if s, c := p.State(), p.Config(); s.Centre != before.Centre || s.Took != before.Took || c.Deadline != 3*time.Second || c.Start != 40 || c.Seed != 3 {
		t.Errorf("%+v, %+v", s, c)
	}
	if err := p.Configure(ProbeConfig{Max: 5}); err != nil || p.State().Centre != 5 || p.State().Limit > 5 {
		t.Errorf("%v, %+v", err, p.State())
	}
}

// TestMovesAreTold: every one, with where it came from, and none of what is tried.
func TestMovesAreTold(t *testing.T) {
	at, moves := 20.0, 0
	p := newProbe(t, ProbeConfig{Start: 20, Moved: func(from, to float64, why Reason) {
		if from != at || to == from || why == Started {
			t.Errorf("from %v to %v (%s), and it was at %v", from, to, why, at)
		}
		at = to
		moves++
	}})
	w := newWorld(p, 20)
	if w.full(20*time.Second, 50*ms); moves < 3 || p.State().Centre != at {
		t.Errorf("%d moves, to %v; %+v", moves, at, p.State())
	}
}

// TestNothingIsLearntOfAGateThatIsSetByHand: closed, or by whoever skips.
func TestNothingIsLearntOfAGateThatIsSetByHand(t *testing.T) {
	p := newProbe(t, ProbeConfig{Start: 20})
	w := newWorld(p, 20)
	w.full(5*time.Second, 50*ms)
	before, own := p.State(), w.limit
	w.limit = 0
	w.tell(forebay.ObservedChange, forebay.Observation{})
	for w.inFlight > 0 {
		w.now = w.now.Add(time.Second)
		w.limit = 0
		w.finish(5*time.Second, forebay.OutcomeOverloaded)
	}
	w.now = w.now.Add(time.Hour)
	w.limit = own
	w.tell(forebay.ObservedChange, forebay.Observation{})
	if s := p.State(); s.Centre != before.Centre || s.Took != before.Took || s.Rate != before.Rate {
		t.Errorf("from %+v to %+v", before, s)
	}
}

func TestAllocations(t *testing.T) {
	w := newWorld(newProbe(t, ProbeConfig{}), 20)
	w.full(time.Second, 20*ms)
	if n := testing.AllocsPerRun(1000, func() {
		w.now = w.now.Add(ms)
		w.finish(20*ms, forebay.OutcomeDone)
		w.start()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkObserve: a call of a full gate, its start and its end.
func BenchmarkObserve(b *testing.B) {
	w := newWorld(newProbe(b, ProbeConfig{}), 20)
	w.full(time.Second, 20*ms)
	b.ReportAllocs()
	for b.Loop() {
		w.now = w.now.Add(ms)
		w.finish(20*ms, forebay.OutcomeDone)
		w.start()
	}
}

// TestARushAfterACalmIsServed: what ran before a flash crowd counts as the lower sample, so
// that its first second is not spent on one. Between bursts there is no calm to learn from.
func TestARushAfterACalmIsServed(t *testing.T) {
	first := func(seed uint64) float64 {
		l, _ := probing(t, ProbeConfig{Seed: seed})
		sc := backends[2].scenario(1, l)
		sc.Seed = seed
		sc.For, sc.WarmUp, sc.Every = 11*time.Second, 10*time.Second, 100*ms
		sc.Clients[0].Arrivals.Steps = []simulate.Step{{At: 0, Times: .5}, {At: 10 * time.Second, Times: 5}}
		good, ideal := 0.0, 0.0
		for _, p := range run(t, sc).Points {
			if p.From > 9.95 {
				good, ideal = good+p.Goodput, ideal+p.Ideal
			}
		}
		return good / ideal
	}
	sum := 0.0
	const seeds = 8
	for seed := range uint64(seeds) {
		sum += first(seed + 1)
	}
	if sum/seeds < .9 {
		t.Errorf("%.3f of what could be in the first second", sum/seeds)
	}
}

// TestBurstsAreNoCalm: what runs between two bursts is what the first has left, and no
// sample of a lower limit. Whoever believes it climbs over the cliff.
func TestBurstsAreNoCalm(t *testing.T) {
	sum := 0.0
	const seeds = 4
	for seed := range uint64(seeds) {
		l, _ := probing(t, ProbeConfig{Seed: seed + 1})
		sc := backends[4].scenario(1, l)
		sc.Seed = seed + 1
		sc.Clients[0].Arrivals.Bursts = simulate.Bursts{High: 1.75, Low: .25, Mean: 200 * ms}
		sum += run(t, sc).Goodput
	}
	if sum/seeds < .85 {
		t.Errorf("%.3f of what could be", sum/seeds)
	}
}

// BenchmarkGate: a call through a gate that is not full, without a limiter, with leases
// tracked, and with a probe.
func BenchmarkGate(b *testing.B) {
	for _, c := range []struct {
		name   string
		config forebay.Config
	}{
		{"fixed", forebay.Config{MaxInFlight: 20}}, {"tracked", forebay.Config{MaxInFlight: 20, Track: true}},
		{"probe", forebay.Config{MaxInFlight: 20, Limiter: newProbe(b, ProbeConfig{})}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, err := forebay.New(c.config)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				l, err := g.Acquire(b.Context(), forebay.Call{})
				if err != nil {
					b.Fatal(err)
				}
				l.Release()
			}
		})
	}
}

// TestAGateWithAProbeAllocatesNothing, of a call that runs at once.
func TestAGateWithAProbeAllocatesNothing(t *testing.T) {
	g, err := forebay.New(forebay.Config{MaxInFlight: 20, Limiter: newProbe(t, ProbeConfig{})})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		l, err := g.Acquire(ctx, forebay.Call{})
		if err != nil {
			t.Fatal(err)
		}
		l.Release()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
