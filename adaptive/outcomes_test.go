package adaptive_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"example.com/forebay/forebaytest"
)

// tally is a limiter that checks the books of what it is told, and hands it on to another,
// whose wish it follows only if it says so: the suites move limits themselves.
type tally struct {
	learner forebay.Limiter
	follows bool

	mu      sync.Mutex // guards what follows
	running int        // units, by starts and ends
	last    forebay.Observation
	starts  int
	unused  int // slots that were given and never used
	ends    map[forebay.Outcome]int
	wrong   bool // what it was told does not add up
}

func (l *tally) Observe(o *forebay.Observation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch o.Kind {
	case forebay.ObservedStart:
		l.starts++
		l.running += o.Cost
	case forebay.ObservedFinish:
		l.ends[o.Outcome]++
		l.running -= o.Cost
	case forebay.ObservedLeave: // of the line, or of a slot that it was given
		if o.InFlight < l.last.InFlight {
			l.unused++
			l.running -= o.Cost
		}
	}
	l.wrong = l.wrong || l.running != o.InFlight || l.running < 0
	l.last = *o
	if limit := l.learner.Observe(o); l.follows {
		return limit
	}
	return o.Limit
}

// check checks that each lease has ended once, when nothing runs any more.
func (l *tally) check(t testing.TB, g *forebay.Gate) {
	t.Helper()
	st := g.Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := 0
	for _, n := range l.ends {
		ended += n
	}
	if l.wrong || l.last.InFlight != 0 || l.last.Waiting != 0 || l.starts != ended+l.unused || uint64(ended+l.unused) != st.Released {
		t.Errorf("%d calls started, %v ended by outcome, %d never ran, the gate says %d released; last told %d in flight and %d in line; books always right: %v",
			l.starts, l.ends, l.unused, st.Released, l.last.InFlight, l.last.Waiting, !l.wrong)
	}
}

// newTally returns one around a probe that may go from one unit to many.
func newTally(t testing.TB) *tally {
	t.Helper()
	probe, err := adaptive.NewProbe(adaptive.ProbeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return &tally{ends: map[forebay.Outcome]int{}, learner: probe}
}

// openLearning is a gate with a limiter that learns.
func openLearning(t testing.TB, c forebay.Config, backend http.Handler) *forebaytest.System {
	l := newTally(t)
	c.Limiter = l
	g, err := forebay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.check(t, g) })
	return forebaytest.NewSystem(g.Wrap(backend), g)
}

// TestSL15LearningGateConforms is SL-15 for every ending that the suites know: a gate that
// learns ends each lease once, and is otherwise like any other.
func TestSL15LearningGateConforms(t *testing.T) {
	t.Run("conformance", func(t *testing.T) { forebaytest.Conformance(t, openLearning) })
	t.Run("lifetime", func(t *testing.T) { forebaytest.Lifetime(t, openLearning) })
}

// outcomes are the ways in which a call can end, and what a limiter is told of each.
var outcomes = []struct {
	name string
	end  func(ctx context.Context, g *forebay.Gate)
	want forebay.Outcome
}{
	{"success", run(func() {}), forebay.OutcomeDone},
	{"an error", func(ctx context.Context, g *forebay.Gate) {
		failing := forebay.Func(g, func(context.Context, int) (int, error) { return 0, errors.New("wrong") })
		_, _ = failing(ctx, 1)
	}, forebay.OutcomeDone},
	{"ignored", as(forebay.OutcomeIgnored), forebay.OutcomeIgnored},
	{"overloaded", as(forebay.OutcomeOverloaded), forebay.OutcomeOverloaded},
	{"aborted", as(forebay.OutcomeAborted), forebay.OutcomeAborted},
	{"an outcome that nobody knows", as(99), 99},
	{"twice, otherwise the second time", func(ctx context.Context, g *forebay.Gate) {
		lease, err := g.Acquire(ctx, forebay.Call{})
		if err != nil {
			return
		}
		lease.ReleaseAs(forebay.OutcomeOverloaded)
		lease.ReleaseAs(forebay.OutcomeDone)
		lease.Release()
	}, forebay.OutcomeOverloaded},
	{"a panic", run(func() { panic("the work breaks") }), forebay.OutcomeAborted},
	{"an aborted answer", run(func() { panic(http.ErrAbortHandler) }), forebay.OutcomeAborted},
	{"its context is canceled", func(ctx context.Context, g *forebay.Gate) {
		ctx, leave := context.WithCancel(ctx)
		_ = forebay.Do(ctx, g, func(context.Context) error { leave(); return nil })
	}, forebay.OutcomeAborted},
}

// run is a call whose work does this.
func run(work func()) func(context.Context, *forebay.Gate) {
	return func(ctx context.Context, g *forebay.Gate) {
		defer func() { _ = recover() }()
		_ = forebay.Do(ctx, g, func(context.Context) error { work(); return nil })
	}
}

// as is a call that ends with an outcome.
func as(o forebay.Outcome) func(context.Context, *forebay.Gate) {
	return func(ctx context.Context, g *forebay.Gate) {
		if lease, err := g.Acquire(ctx, forebay.Call{}); err == nil {
			lease.ReleaseAs(o)
		}
	}
}

// TestSL15EachOutcomeReleases is SL-15 as it was reported: five slots, and more calls than
// that end in one way, with every kind of limit.
func TestSL15EachOutcomeReleases(t *testing.T) {
	const limit = 5
	for _, kind := range []struct {
		name string
		make func(t *testing.T) *tally
	}{
		{"fixed", func(*testing.T) *tally { return &tally{ends: map[forebay.Outcome]int{}, learner: &forebaytest.Limit{}} }},
		{"probe", func(t *testing.T) *tally {
			probe, err := adaptive.NewProbe(adaptive.ProbeConfig{Min: limit, Max: limit})
			if err != nil {
				t.Fatal(err)
			}
			return &tally{ends: map[forebay.Outcome]int{}, learner: probe, follows: true}
		}},
	} {
		for _, o := range outcomes {
			t.Run(kind.name+"/"+o.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := kind.make(t)
					g, err := forebay.New(forebay.Config{Name: "g", MaxInFlight: limit, Limiter: l})
					if err != nil {
						t.Fatal(err)
					}
					for range limit + 2 {
						o.end(t.Context(), g)
						time.Sleep(time.Millisecond)
					}
					if got := l.ends; got[o.want] != limit+2 || l.starts != limit+2 {
						t.Errorf("%d started, by outcome %v ended; want %d as %v", l.starts, got, limit+2, o.want)
					}
					for range limit {
						if _, err := g.Acquire(t.Context(), forebay.Call{}); err != nil {
							t.Fatalf("a full set is not admitted afterwards: %v", err)
						}
					}
				})
			})
		}
	}
}
