package forebay

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Gates of a package, as programs have them: made outside every bubble, and used in
// and out of several. (Channels or timers that a gate keeps would tie it to the
// bubble it was first used in: B14 to B18 of the comparison with peers.)
var (
	packageGate    = mustGate(Config{Name: "package", MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 3})
	packageTracked = mustGate(Config{Name: "tracked", MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 3, MaxHold: time.Minute})
)

func mustGate(c Config) *Gate {
	g, err := New(c)
	must(err)
	return g
}

func TestPackageLevelGateInTwoBubblesAndOutside(t *testing.T) {
	for _, g := range []*Gate{packageGate, packageTracked} {
		real := time.Now()
		for range 2 {
			synctest.Test(t, func(t *testing.T) { anHourInLine(t, g) })
			outsideTheBubble(t, g)
		}
		if took := time.Since(real); took > 10*time.Second {
			t.Errorf("four virtual hours took %v", took)
		}
	}
}

// anHourInLine runs in a bubble: one is served after half an hour, one waits in vain
// for an hour, one leaves, one has a deadline.
func anHourInLine(t *testing.T, g *Gate) {
	began, overdue := time.Now(), g.Stats().Overdue
	l := take(t, g, 1)
	served := queued(t, context.Background(), g, Call{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	late := queued(t, ctx, g, Call{})
	time.Sleep(10 * time.Minute)
	late.refused(t, RejectedDeadline, 10*time.Minute)
	vain := queued(t, context.Background(), g, Call{})
	time.Sleep(20 * time.Minute)
	l.Release()
	served.granted(t, 30*time.Minute)
	time.Sleep(40 * time.Minute)
	vain.refused(t, RejectedTimeout, time.Hour)
	left, leave := context.WithCancel(context.Background())
	gone := queued(t, left, g, Call{})
	leave()
	gone.refused(t, Canceled, 0)
	if g == packageTracked {
		if n := g.Stats().Overdue - overdue; n != 2 {
			t.Errorf("%d leases were reported overdue, want 2", n)
		}
		if h := g.Holders(); len(h) != 1 || h[0].Held != 40*time.Minute {
			t.Errorf("holders %+v", h)
		}
	}
	served.lease.Release()
	if took := time.Since(began); took != 70*time.Minute {
		t.Errorf("took %v", took)
	}
	admitsFullSet(t, g)
}

func outsideTheBubble(t *testing.T, g *Gate) {
	t.Helper()
	l := take(t, g, 1)
	got := make(chan Lease)
	go func() {
		l, err := g.Acquire(context.Background(), Call{})
		must(err)
		got <- l
	}()
	for g.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	l.Release()
	(<-got).Release()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	l = take(t, g, 1)
	if _, err := g.Acquire(ctx, Call{}); decisionOf(err) != RejectedDeadline {
		t.Errorf("outside: %v, want the deadline", err)
	}
	l.Release()
	admitsFullSet(t, g)
}

// Drains and changes that were begun in a bubble leave nothing of it behind.
func TestPackageLevelGateIsDrainedInABubble(t *testing.T) {
	g := mustGate(Config{MaxInFlight: 2})
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			l := take(t, g, 1)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := g.Drain(ctx); err == nil {
				t.Error("drained with a lease out")
			}
			g.Resume()
			m := take(t, g, 1)
			l.Release()
			m.Release()
		})
		g.Stats()
		if err := g.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		g.Resume()
		admitsFullSet(t, g)
	}
}

// The departure rate of a bubble's clock does not confuse the next.
func TestRateSurvivesAnotherClock(t *testing.T) {
	g := mustGate(Config{MaxInFlight: 1, MaxWait: 100 * time.Millisecond})
	use := func(t *testing.T) {
		for range 20 {
			l := take(t, g, 1)
			waits := queued(t, context.Background(), g, Call{})
			time.Sleep(10 * time.Millisecond)
			l.Release()
			waits.granted(t, 10*time.Millisecond)
			time.Sleep(10 * time.Millisecond)
			waits.lease.Release()
		}
	}
	synctest.Test(t, use)
	take(t, g, 1).Release()
	synctest.Test(t, use)
	shows(t, g, "0/1, accepted 81")
}
