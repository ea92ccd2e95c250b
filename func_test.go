package forebay

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestFuncIsTheFunctionBehindAGate(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	broken := errors.New("broken")
	half := Func(g, func(ctx context.Context, n int) (string, error) {
		if l, ok := LeaseFrom(ctx); !ok || !l.Live() || l.Gate() != g {
			t.Error("the function's context carries no lease")
		}
		return string(rune('a' + n)), broken
	})
	if r, err := half(context.Background(), 2); r != "c" || err != broken {
		t.Errorf("result %q, %v; want what the function returned", r, err)
	}
	l := take(t, g, 1)
	if r, err := half(context.Background(), 2); r != "" || decisionOf(err) != RejectedBusy {
		t.Errorf("a full gate: %q, %v", r, err)
	}
	l.Release()
	if _, err := half(ended(), 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	shows(t, g, "0/1, accepted 2, busy 1, canceled 1")
}

func TestDoInDoAndRecursion(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	ran := 0
	err := Do(context.Background(), g, func(ctx context.Context) error {
		return Do(ctx, g, func(ctx context.Context) error {
			ran++
			return nil
		})
	})
	if err != nil || ran != 1 {
		t.Errorf("Do in Do: ran %d times, %v", ran, err)
	}
	var factorial func(context.Context, int) (int, error)
	factorial = Func(g, func(ctx context.Context, n int) (int, error) {
		if n == 0 {
			return 1, nil
		}
		m, err := factorial(ctx, n-1)
		return n * m, err
	})
	if n, err := factorial(context.Background(), 10); n != 3628800 || err != nil {
		t.Errorf("10! = %d, %v", n, err)
	}
	shows(t, g, "0/1, accepted 2")
}

// A panic gives the slot back and goes on with the value it had.
func TestPanicReleasesAndTravelsOn(t *testing.T) {
	for _, value := range []any{errors.New("the work breaks"), http.ErrAbortHandler, "text", 7} {
		lim := &scriptedLimiter{limit: 1}
		g := gateOf(t, Config{MaxInFlight: 1, Limiter: lim})
		work := Func(g, func(context.Context, int) (int, error) { panic(value) })
		func() {
			defer func() {
				if r := recover(); r != value {
					t.Errorf("recovered %v, want %v", r, value)
				}
			}()
			_, _ = work(context.Background(), 1)
			t.Error("the panic was swallowed")
		}()
		shows(t, g, "0/1, accepted 1")
		admitsFullSet(t, g)
	}
}

func TestExemptAndOnlyInRequests(t *testing.T) {
	inRequest := context.WithValue(context.Background(), http.ServerContextKey, &http.Server{})
	for _, c := range []struct {
		name           string
		onlyInRequests bool
		ctx            context.Context
		gated          bool
	}{
		{"background", false, context.Background(), true},
		{"exempt", false, Exempt(context.Background()), false},
		{"background, only in requests", true, context.Background(), false},
		{"request, only in requests", true, inRequest, true},
		{"exempt request, only in requests", true, Exempt(inRequest), false},
	} {
		g := gateOf(t, Config{MaxInFlight: 1, OnlyInRequests: c.onlyInRequests})
		l := take(t, g, 1)
		ran := false
		err := Do(c.ctx, g, func(context.Context) error {
			ran = true
			return nil
		})
		if ran == c.gated || errors.Is(err, ErrRejected) != c.gated {
			t.Errorf("%s: ran %v, error %v", c.name, ran, err)
		}
		l.Release()
		if want := "0/1, accepted 1"; !c.gated {
			shows(t, g, want) // counts as nothing
		} else {
			shows(t, g, want+", busy 1")
		}
	}
}

// Do says how its call ended.
func TestDoTellsTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventLog{}
		g := gateOf(t, Config{MaxInFlight: 1, Observers: []Observer{log}})
		ctx, cancel := context.WithCancel(WithCall(context.Background(), Call{Route: "/reports", Cost: 1}))
		for _, f := range []func(context.Context) error{
			func(context.Context) error { return nil },
			func(context.Context) error { panic("broken") },
			func(context.Context) error { cancel(); return context.Canceled },
		} {
			func() {
				defer func() { _ = recover() }()
				_ = Do(ctx, g, f)
			}()
		}
		var outcomes []Outcome
		for _, e := range log.take() {
			if e.Kind == EventReleased {
				outcomes = append(outcomes, e.Outcome)
			}
			if e.Route != "/reports" {
				t.Errorf("route %q, want what WithCall says", e.Route)
			}
		}
		if want := []Outcome{OutcomeDone, OutcomeAborted, OutcomeAborted}; !slices.Equal(outcomes, want) {
			t.Errorf("outcomes %v, want %v", outcomes, want)
		}
	})
}

func TestFuncWaitsInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second})
		work := Func(g, func(_ context.Context, d time.Duration) (time.Time, error) {
			time.Sleep(d)
			return time.Now(), nil
		})
		began := time.Now()
		go func() { _, _ = work(context.Background(), 300*time.Millisecond) }()
		synctest.Wait()
		end, err := work(context.Background(), 200*time.Millisecond)
		if err != nil || end.Sub(began) != 500*time.Millisecond {
			t.Errorf("ended after %v, %v; want 500ms", end.Sub(began), err)
		}
		shows(t, g, "0/1, accepted 2")
	})
}
