package forebay

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func stillRunning(t testing.TB, g *Gate, running, inUse int) {
	t.Helper()
	if st := g.Stats(); st.StillRunning != running || st.InUse != inUse {
		t.Errorf("%d still running, %d in use, want %d and %d", st.StillRunning, st.InUse, running, inUse)
	}
}

// The caller is told in time; the work keeps its slot until it has ended, and is to be
// seen until then.
func TestTimedOutWorkKeepsItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &httpEvents{}
		g := httpGate(t, Config{MaxInFlight: 1, MaxRun: time.Second, Observers: []Observer{seen}})
		start := time.Now()
		slow := Func(g, func(ctx context.Context, text string) (string, error) {
			time.Sleep(5 * time.Second)
			if cause := context.Cause(ctx); cause != ErrTimeout {
				t.Errorf("the work's context ended by %v", cause)
			}
			return text, nil
		})
		got, err := slow(t.Context(), "too late")
		if got != "" || err != ErrTimeout || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrRejected) {
			t.Errorf("%q, %v", got, err)
		}
		if at := time.Since(start); at != time.Second {
			t.Errorf("told after %v", at)
		}
		stillRunning(t, g, 1, 1)
		if _, err := slow(t.Context(), "another"); !errors.Is(err, ErrRejected) {
			t.Errorf("beside it: %v", err)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		stillRunning(t, g, 0, 0)
		if o := seen.outcomes(); len(o) != 1 || o[0] != OutcomeOverloaded {
			t.Errorf("outcomes %v", o)
		}
		wantConserved(t, g)
	})
}

func TestWorkInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1, MaxRun: time.Second, CancelLost: true})
		failed := errors.New("failed")
		f := Func(g, func(ctx context.Context, n int) (int, error) {
			if l, ok := LeaseFrom(ctx); !ok || l.Gate() != g {
				t.Error("no lease in the context")
			}
			if err := Do(ctx, g, func(context.Context) error { return nil }); err != nil { // part of the same call
				t.Errorf("within: %v", err)
			}
			time.Sleep(999 * time.Millisecond)
			return 2 * n, failed
		})
		if n, err := f(t.Context(), 21); n != 42 || err != failed {
			t.Errorf("%d, %v", n, err)
		}
		// A caller that leaves is told when the work has ended, as without MaxRun.
		ctx, leave := context.WithCancel(t.Context())
		leave2 := time.AfterFunc(100*time.Millisecond, leave)
		defer leave2.Stop()
		start := time.Now()
		err := Do(ctx, g, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(200 * time.Millisecond)
			return ctx.Err()
		})
		if at := time.Since(start); err != context.Canceled || at != 300*time.Millisecond {
			t.Errorf("%v after %v", err, at)
		}
		stillRunning(t, g, 0, 0)
		wantConserved(t, g)
	})
}

// Work within a call that has its slot is bounded by that call alone: if it were given up
// the slot might be given back while it runs.
func TestWorkWithinACallIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1, MaxRun: time.Second})
		l, err := g.Acquire(t.Context(), Call{})
		must(err)
		var ran bool
		if err := Do(WithLease(t.Context(), l), g, func(context.Context) error {
			time.Sleep(time.Minute)
			ran = true
			return nil
		}); err != nil || !ran {
			t.Errorf("%v, it ran: %v", err, ran)
		}
		l.Release()
		stillRunning(t, g, 0, 0)
		wantConserved(t, g)
	})
}

// OP-07: a panic in the goroutine of the work is the caller's, with the stack of where it
// was; the slot is free.
func TestOP07PanicInTheWorksGoroutine(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1, MaxRun: time.Hour})
	broken := errors.New("broken")
	for _, value := range []any{broken, "text", http.ErrAbortHandler} {
		got := func() (got any) {
			defer func() { got = recover() }()
			return Do(t.Context(), g, func(context.Context) error { panicsHere(value); return nil })
		}()
		p, ok := got.(*Panicked)
		switch {
		case value == http.ErrAbortHandler:
			if got != value {
				t.Errorf("%v became %v", value, got)
			}
		case !ok || p.Value != value || !strings.Contains(p.Error(), "panicsHere") || errors.Is(p, broken) != (value == broken):
			t.Errorf("%v became %v", value, got)
		}
		wantConserved(t, g)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = Do(context.Background(), g, func(context.Context) error { runtime.Goexit(); return nil })
		t.Error("the caller went on")
	})
	ended.Wait()
	wantConserved(t, g)
}

func panicsHere(value any) { panic(value) }

// One whose caller has gone kills nobody: it is logged, as net/http does.
func TestOP07PanicOfWorkThatTimedOut(t *testing.T) {
	var text bytes.Buffer
	defer log.SetOutput(log.Writer()) // as it is now
	log.SetOutput(&text)
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, MaxRun: time.Second})
		err := Do(t.Context(), g, func(context.Context) error { time.Sleep(time.Minute); panicsHere("late"); return nil })
		if err != ErrTimeout {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Hour)
		stillRunning(t, g, 0, 0)
		wantConserved(t, g)
	})
	if s := text.String(); !strings.Contains(s, `gate "reports": work that had timed out: late`) || !strings.Contains(s, "panicsHere") {
		t.Errorf("logged: %q", s)
	}
}

// Work that ends in the very instant is in time or not, and never both.
func TestWorkThatEndsInTheVeryInstant(t *testing.T) {
	inTime, late := 0, 0
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			g := httpGate(t, Config{MaxInFlight: 1, MaxRun: time.Second})
			switch n, err := Func(g, func(context.Context, int) (int, error) { time.Sleep(time.Second); return 1, nil })(t.Context(), 0); {
			case n == 1 && err == nil:
				inTime++
			case n == 0 && err == ErrTimeout:
				late++
			default:
				t.Errorf("%d, %v", n, err)
			}
			synctest.Wait()
			stillRunning(t, g, 0, 0)
			wantConserved(t, g)
		})
	}
	t.Logf("%d in time, %d late", inTime, late)
}

// Whoever answers in place of work that goes on keeps its slot for it, and has it counted.
func TestLeaseThatTimedOut(t *testing.T) {
	for _, c := range []Config{{MaxInFlight: 2, Track: true}, {MaxInFlight: 2}} {
		g := httpGate(t, c)
		l, _ := g.TryAcquire(Call{})
		works := l.TimedOut()
		if works.TimedOut() != works { // once
			t.Error("it is another lease each time")
		}
		stillRunning(t, g, 1, 1)
		other, _ := g.TryAcquire(Call{})
		other.Release()
		if holders := g.Holders(); len(holders) != 1 && c.Track {
			t.Errorf("%+v", holders)
		}
		stillRunning(t, g, 1, 1)
		works.Release()
		stillRunning(t, g, 0, 0)
		l.TimedOut() // stale
		Lease{}.TimedOut()
		stillRunning(t, g, 0, 0)
		again, _ := g.TryAcquire(Call{}) // the same slot
		stillRunning(t, g, 0, 1)
		again.Release()
		wantConserved(t, g)
	}
}

// Handlers that answer in its place give back nothing, behind a gate and behind a chain,
// whatever else is to be done about their requests.
func TestHandlerThatAnswersForWorkThatGoesOn(t *testing.T) {
	for name, c := range map[string]Config{
		"bare": {}, "tracked": {Track: true}, "with rules": {Hold: HoldUpstreamDone}, "in context": {LeaseInContext: true},
		"observed": {Observers: []Observer{ObserverFunc(func(Event) {})}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Name, c.MaxInFlight = "first", 1
			first := httpGate(t, c)
			c.Name = "second"
			second := httpGate(t, c)
			chain, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/", Gates: []*Gate{first, second}}}})
			must(err)
			var works Lease
			answers := func(w http.ResponseWriter, _ *http.Request, l Lease) {
				works = l.TimedOut()
				w.WriteHeader(http.StatusGatewayTimeout)
			}
			for gates, h := range map[int]http.Handler{1: first.HandlerFunc(answers), 2: chain.HandlerFunc(answers)} {
				for range 3 {
					h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
					stillRunning(t, first, 1, 1)
					stillRunning(t, second, gates-1, gates-1)
					if _, ok := first.TryAcquire(Call{}); ok {
						t.Fatal("another call runs beside it")
					}
					works.Release()
					stillRunning(t, first, 0, 0)
					stillRunning(t, second, 0, 0)
				}
			}
			for _, g := range []*Gate{first, second} {
				if st := g.Stats(); st.StaleReleases > 0 {
					t.Errorf("%+v", st)
				}
				wantConserved(t, g)
			}
		})
	}
}
