package forebay

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSecondAcquireOfTheSameCallCountsAsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, g := range map[string]*Gate{
			"bare":    gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second}),
			"tracked": gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, Track: true}),
		} {
			l := take(t, g, 1)
			ctx := WithLease(context.Background(), l)
			began := time.Now()
			for range 3 {
				in, err := g.Acquire(ctx, Call{})
				if err != nil || in.Live() || in != (Lease{}) || time.Since(began) != 0 {
					t.Errorf("%s: live %v, error %v, after %v", name, in.Live(), err, time.Since(began))
				}
				in.Release()
				ctx = WithLease(ctx, in)
			}
			shows(t, g, "1/1, accepted 1")
			if got, ok := LeaseFrom(ctx); !ok || got != l {
				t.Errorf("%s: LeaseFrom = %v, %v", name, got, ok)
			}
			l.Release()
			shows(t, g, "0/1, accepted 1")
		}
	})
}

// Once the lease is back, the call has to acquire like everybody else.
func TestAcquireAfterAnEarlyReleaseIsARealOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second})
		l := take(t, g, 1)
		ctx := WithLease(context.Background(), l)
		l.Release()
		again, err := g.Acquire(ctx, Call{})
		if err != nil || !again.Live() {
			t.Fatalf("live %v, error %v", again.Live(), err)
		}
		waits := queued(t, ctx, g, Call{}) // the old lease is worth nothing
		time.Sleep(time.Millisecond)
		again.Release()
		waits.granted(t, time.Millisecond)
		shows(t, g, "1/1, accepted 3")
	})
}

func TestContextCarriesLeasesOfSeveralGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := gateOf(t, Config{Name: "a", MaxInFlight: 1}), gateOf(t, Config{Name: "b", MaxInFlight: 1})
		la, lb := take(t, a, 1), take(t, b, 1)
		ctx := WithLease(WithLease(context.Background(), la), lb)
		if got, _ := LeaseFrom(ctx); got != lb {
			t.Error("LeaseFrom is not the innermost")
		}
		for _, g := range []*Gate{a, b} {
			if l, err := g.Acquire(ctx, Call{}); err != nil || l.Live() {
				t.Errorf("gate %q: live %v, error %v", g.Name(), l.Live(), err)
			}
		}
		lb.Release()
		if _, err := a.Acquire(ctx, Call{}); err != nil {
			t.Errorf("the outer lease is no longer seen: %v", err)
		}
		taken := take(t, b, 1)
		attemptAt(ctx, b, Call{}).refused(t, RejectedBusy, 0)
		attemptAt(context.Background(), a, Call{}).refused(t, RejectedBusy, 0) // another call
		taken.Release()
		la.Release()
	})
}

// A call whose context has ended gets nothing, also where it holds the gate.
func TestSecondAcquireWithAContextThatHasEnded(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	l := take(t, g, 1)
	ctx, cancel := context.WithCancel(WithLease(context.Background(), l))
	cancel()
	if _, err := g.Acquire(ctx, Call{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	late, cancel := context.WithDeadline(WithLease(context.Background(), l), time.Unix(0, 0))
	defer cancel()
	if _, err := g.Acquire(late, Call{}); decisionOf(err) != RejectedDeadline {
		t.Errorf("error %v, want the deadline", err)
	}
	shows(t, g, "1/1, accepted 1")
}

func TestContextWithoutALease(t *testing.T) {
	if l, ok := LeaseFrom(context.Background()); ok || l.Live() {
		t.Errorf("LeaseFrom an empty context = %v, %v", l, ok)
	}
	if isExempt(context.Background()) || !isExempt(Exempt(context.Background())) {
		t.Error("Exempt does not show")
	}
}
