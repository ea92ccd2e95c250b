package forebay

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// draining is a Drain in a goroutine of its own.
type draining struct {
	err   error
	took  time.Duration
	ended atomic.Bool
}

// drainAt starts a Drain in a goroutine of the bubble.
func drainAt(ctx context.Context, g interface{ Drain(context.Context) error }) *draining {
	d := &draining{}
	began := time.Now()
	go func() {
		d.err = g.Drain(ctx)
		d.took = time.Since(began)
		d.ended.Store(true)
	}()
	return d
}

func (d *draining) goesOn(t testing.TB) {
	t.Helper()
	synctest.Wait()
	if d.ended.Load() {
		t.Fatalf("Drain returned too early: %v", d.err)
	}
}

// returns checks that Drain has returned, with that text of an error.
func (d *draining) returns(t testing.TB, text string, after time.Duration) {
	t.Helper()
	synctest.Wait()
	if !d.ended.Load() {
		t.Fatal("Drain has not returned")
	}
	got := ""
	if d.err != nil {
		got = d.err.Error()
	}
	if got != text || d.took != after {
		t.Errorf("Drain = %q after %v, want %q after %v", got, d.took, text, after)
	}
}

func TestDrainRefusesTheLineAndWaitsForTheLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Hour, MaxWaiting: 5})
		a, b := take(t, g, 1), take(t, g, 1)
		waits := queued(t, context.Background(), g, Call{})
		d := drainAt(context.Background(), g)
		waits.refused(t, RejectedDraining, 0)
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedDraining, 0)
		if !g.Stats().Draining {
			t.Error("Stats does not say that the gate drains")
		}
		a.Release()
		d.goesOn(t)
		time.Sleep(time.Second)
		b.Release()
		b.Release()
		d.returns(t, "", time.Second)
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedDraining, 0)
		shows(t, g, "0/2, accepted 2, draining 3, stale 1")
		g.Resume()
		admitsFullSet(t, g)
	})
}

func TestDrainTwiceAndByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 2})
		drainAt(context.Background(), g).returns(t, "", 0) // nothing in flight
		g.Resume()
		l := take(t, g, 2)
		var many []*draining
		for range 10 {
			many = append(many, drainAt(context.Background(), g))
		}
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		impatient := drainAt(soon, g)
		time.Sleep(time.Second)
		impatient.returns(t, `forebay: gate "reports" still has calls in flight: context deadline exceeded`, time.Second)
		if !errors.Is(impatient.err, context.DeadlineExceeded) {
			t.Errorf("%v is not the context's error", impatient.err)
		}
		attemptAt(context.Background(), g, Call{}).refused(t, RejectedDraining, 0) // it goes on
		l.Release()
		for _, d := range many {
			d.returns(t, "", time.Second)
		}
		drainAt(context.Background(), g).returns(t, "", 0)
	})
}

// Once the gate is empty, Drain says so, even to a caller whose time is up.
func TestDrainOfAnEmptyGateWithAContextThatHasEnded(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 2})
	for i := range 200 {
		if err := g.Drain(ended()); err != nil {
			t.Fatalf("try %d: %v", i, err)
		}
	}
}

func TestResumeEndsADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 2})
		l := take(t, g, 1)
		d := drainAt(context.Background(), g)
		d.goesOn(t)
		g.Resume()
		d.returns(t, `forebay: gate "reports" was resumed before it was empty`, 0)
		m := take(t, g, 1)
		l.Release()
		m.Release()
		g.Resume() // of a gate that does not drain
		admitsFullSet(t, g)
	})
}

func TestSetLimitChangesNothingOnError(t *testing.T) {
	g := gateOf(t, Config{Name: "reports", MaxInFlight: 2})
	err := g.SetLimit(-1)
	if want := `forebay: limit -1 for gate "reports"; it must be 0 (closed) to 1048575`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	admitsFullSet(t, g)
	must(g.SetLimit(maxUnits))
	take(t, g, 1).Release()
}

func TestReconfigureKeepsLeasesLineAndCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 2})
		l := take(t, g, 1)
		first, second := queued(t, context.Background(), g, Call{}), queued(t, context.Background(), g, Call{})
		time.Sleep(100 * time.Millisecond)
		must(g.Reconfigure(Config{MaxInFlight: 2, MaxWait: time.Millisecond, Track: true})) // the name may be left out
		first.granted(t, 100*time.Millisecond)                                              // the difference
		time.Sleep(900 * time.Millisecond)
		second.refused(t, RejectedTimeout, time.Second) // kept its patience
		l.Release()
		first.lease.Release()
		first.lease.Release()
		shows(t, g, "0/2, accepted 2, timeout 1, stale 1")
		must(g.SetLimit(7))
		if c := g.Config(); c.MaxInFlight != 2 || c.Name != "reports" || !c.Track {
			t.Errorf("Config = %+v", c)
		}
		shows(t, g, "0/7, accepted 2, timeout 1, stale 1")
	})
}

func TestReconfigureChangesNothingOnError(t *testing.T) {
	g := gateOf(t, Config{Name: "reports", MaxInFlight: 2})
	err := g.Reconfigure(Config{Name: "orders", MaxInFlight: 0, MaxWait: -time.Second})
	want := []string{
		"forebay: MaxInFlight is 0; it must be at least 1 (SetLimit(0) closes a gate)",
		"forebay: MaxWait is -1s; it must be 0 (refuse at once) or more",
		`forebay: Name is "orders"; gate "reports" cannot be renamed, make a new one`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("error\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	if c := g.Config(); c.MaxInFlight != 2 || c.Name != "reports" {
		t.Errorf("Config = %+v", c)
	}
	admitsFullSet(t, g)
}

// A lease of before a change is worth as much after it, whatever is watched now.
func TestLeasesOutliveEveryChange(t *testing.T) {
	seen := &decisionsSeen{}
	configs := []Config{
		{MaxInFlight: 4}, {MaxInFlight: 4, Track: true},
		{MaxInFlight: 4, Observers: []Observer{seen}}, {MaxInFlight: 4, MaxHold: time.Hour},
		{MaxInFlight: 4, Limiter: &scriptedLimiter{limit: 4}}, {MaxInFlight: 4, MaxWait: time.Second},
	}
	for i, from := range configs {
		for j, to := range configs {
			g := gateOf(t, from)
			l, wide := take(t, g, 1), take(t, g, 2)
			must(g.Reconfigure(to))
			if st := g.Stats(); st.InUse != 3 || st.Calls != 2 {
				t.Errorf("%d to %d: %+v", i, j, st)
			}
			l.Release()
			wide.Release()
			l.Release()
			wide.Release()
			shows(t, g, "0/4, accepted 2, stale 2")
			admitsFullSet(t, g)
		}
	}
}
