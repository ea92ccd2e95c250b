package forebay

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// gateOf returns a gate of the given configuration.
func gateOf(t testing.TB, c Config) *Gate {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// take returns a lease that the gate must give at once.
func take(t testing.TB, g *Gate, cost int) Lease {
	t.Helper()
	l, ok := g.TryAcquire(Call{Cost: cost})
	if !ok {
		t.Fatalf("gate %q gave no lease: %s", g.Name(), state(t, g))
	}
	return l
}

// state words what the gate shows, figures of zero left out, and checks what
// holds at every instant.
func state(t testing.TB, g *Gate) string {
	t.Helper()
	st := g.Stats()
	if st.Granted != st.Released+uint64(st.Calls) || st.Available != max(0, st.Capacity-st.InUse) {
		t.Errorf("gate %q does not add up: %+v", g.Name(), st)
	}
	words := []string{fmt.Sprintf("%d/%d", st.InUse, st.Capacity)}
	for _, f := range []struct {
		name string
		n    uint64
	}{
		{"waiting", uint64(st.Waiting)}, {"accepted", st.Accepted}, {"busy", st.RejectedBusy},
		{"timeout", st.RejectedTimeout}, {"deadline", st.RejectedDeadline}, {"large", st.RejectedTooLarge},
		{"draining", st.RejectedDraining}, {"canceled", st.Canceled}, {"stale", st.StaleReleases},
		{"store", st.RejectedStore}, {"shed", st.RejectedShed}, {"capped", st.RejectedCaller}, {"callers", uint64(st.Callers)}, {"beyond", st.CallersBeyond},
	} {
		if f.n > 0 {
			words = append(words, fmt.Sprint(f.name, " ", f.n))
		}
	}
	return strings.Join(words, ", ")
}

// shows checks a gate's state against its words.
func shows(t testing.TB, g *Gate, want string) {
	t.Helper()
	if got := state(t, g); got != want {
		t.Errorf("gate %q: %s; want %s", g.Name(), got, want)
	}
}

// acquirer is a gate or a chain.
type acquirer interface {
	Acquire(context.Context, Call) (Lease, error)
}

// attempt is an Acquire in a goroutine of its own. Its fields may be read once it
// is done.
type attempt struct {
	lease  Lease
	err    error
	waited time.Duration
	over   atomic.Bool
}

func (at *attempt) done() bool { return at.over.Load() }

// attemptAt starts an Acquire in a goroutine of the bubble.
func attemptAt(ctx context.Context, a acquirer, call Call) *attempt {
	at := &attempt{}
	began := time.Now()
	go func() {
		at.lease, at.err = a.Acquire(ctx, call)
		at.waited = time.Since(began)
		at.over.Store(true)
	}()
	return at
}

// queued starts an Acquire that must be waiting when queued returns.
func queued(t testing.TB, ctx context.Context, a acquirer, call Call) *attempt {
	t.Helper()
	at := attemptAt(ctx, a, call)
	synctest.Wait()
	if at.done() {
		t.Fatalf("does not wait: lease live %v, error %v", at.lease.Live(), at.err)
	}
	return at
}

// granted checks that an attempt has a lease, after exactly that wait.
func (at *attempt) granted(t testing.TB, after time.Duration) {
	t.Helper()
	synctest.Wait()
	if !at.done() {
		t.Fatalf("still waits; want a lease after %v", after)
	}
	if at.err != nil || !at.lease.Live() || at.waited != after {
		t.Errorf("live %v, error %v after %v; want a lease after %v", at.lease.Live(), at.err, at.waited, after)
	}
}

// refused checks that an attempt was refused so, after exactly that wait.
func (at *attempt) refused(t testing.TB, d Decision, after time.Duration) {
	t.Helper()
	synctest.Wait()
	if !at.done() {
		t.Fatalf("still waits; want %v after %v", d, after)
	}
	if decisionOf(at.err) != d || at.lease != (Lease{}) || at.waited != after {
		t.Errorf("%v (%v) after %v; want %v after %v", decisionOf(at.err), at.err, at.waited, d, after)
	}
}

// decisionOf says which decision an error of Acquire tells of.
func decisionOf(err error) Decision {
	var rejected *RejectedError
	switch {
	case err == nil:
		return Accepted
	case errors.As(err, &rejected):
		return rejected.Decision()
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Undecided
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestGateAdmitsUpToItsLimitAndRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 2})
		a, b := take(t, g, 1), take(t, g, 1)
		c := attemptAt(context.Background(), g, Call{})
		c.refused(t, RejectedBusy, 0)
		if want := `forebay: gate "reports": rejected_busy`; c.err == nil || c.err.Error() != want {
			t.Errorf("error %v, want %s", c.err, want)
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Error("TryAcquire passed a full gate")
		}
		shows(t, g, "2/2, accepted 2, busy 2")
		a.Release()
		d := take(t, g, 1)
		b.Release()
		d.Release()
		shows(t, g, "0/2, accepted 3, busy 2")
		admitsFullSet(t, g)
	})
}

func TestErrorsTellTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second})
		l := take(t, g, 1)
		late := func() context.Context {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		cause := errors.New("the connection broke")
		left, leave := context.WithCancelCause(context.Background())
		leave(cause)
		_, busy := g.Acquire(late(), Call{})
		_, plain := g.Acquire(ended(), Call{})
		_, why := g.Acquire(left, Call{})
		for _, c := range []struct {
			err  error
			is   []error
			isnt []error
		}{
			{busy, []error{ErrRejected, context.DeadlineExceeded}, []error{context.Canceled}},
			{plain, []error{context.Canceled}, []error{ErrRejected, context.DeadlineExceeded}},
			{why, []error{context.Canceled, cause}, []error{ErrRejected}},
		} {
			for _, e := range c.is {
				if !errors.Is(c.err, e) {
					t.Errorf("%v is not %v", c.err, e)
				}
			}
			for _, e := range c.isnt {
				if errors.Is(c.err, e) {
					t.Errorf("%v is %v", c.err, e)
				}
			}
		}
		if want := "forebay: the caller left: the connection broke"; why.Error() != want {
			t.Errorf("error %q, want %q", why, want)
		}
		l.Release()
		shows(t, g, "0/1, accepted 1, deadline 1, canceled 2")
	})
}

func TestTryAcquireNeitherWaitsNorPassesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 10, MaxWait: time.Minute, MaxWaiting: 5})
		l := take(t, g, 9)
		wide := queued(t, context.Background(), g, Call{Cost: 2})
		began := time.Now()
		if _, ok := g.TryAcquire(Call{}); ok || time.Since(began) != 0 {
			t.Errorf("TryAcquire passed somebody who waits: %v, after %v", ok, time.Since(began))
		}
		behind := queued(t, context.Background(), g, Call{}) // would fit, and does not pass either
		shows(t, g, "9/10, waiting 2, accepted 1, busy 1")
		l.Release()
		wide.granted(t, 0)
		behind.granted(t, 0)
		wide.lease.Release()
		behind.lease.Release()
		shows(t, g, "0/10, accepted 3, busy 1")
	})
}

func TestCostAboveTheMaximumIsTooLarge(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 4, MaxWait: time.Hour, MaxWaiting: 3})
	if _, err := g.Acquire(context.Background(), Call{Cost: 5}); decisionOf(err) != RejectedTooLarge {
		t.Errorf("cost 5 of 4: %v", err)
	}
	must(g.SetLimit(2)) // a momentary limit is not the configured maximum
	if _, err := g.Acquire(context.Background(), Call{Cost: 3}); decisionOf(err) != RejectedBusy {
		t.Errorf("cost 3 at a momentary limit of 2: %v", err)
	}
	must(g.SetLimit(9)) // nor is a momentary limit less than itself
	take(t, g, 8).Release()
	shows(t, g, "0/9, accepted 1, busy 1, large 1")
}

func TestNegativeCostPanics(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 4})
	chain, err := NewChain(g, gateOf(t, Config{MaxInFlight: 4}))
	must(err)
	for name, f := range map[string]func(){
		"Acquire":    func() { _, _ = g.Acquire(context.Background(), Call{Cost: -1}) },
		"TryAcquire": func() { g.TryAcquire(Call{Cost: -1}) },
		"Chain":      func() { _, _ = chain.Acquire(context.Background(), Call{Cost: -1}) },
	} {
		func() {
			defer func() {
				want := "forebay: Cost is -1; it must be 0 (meaning 1) or more"
				if r := recover(); r != want {
					t.Errorf("%s: panic %v, want %q", name, r, want)
				}
			}()
			f()
		}()
	}
	shows(t, g, "0/4")
}

func TestNoGoroutineAndNoTimerForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := inThisBubble(t)
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 10, MaxHold: time.Hour})
		l := take(t, g, 1)
		if n := inThisBubble(t); n != before {
			t.Errorf("%d goroutines for a gate in use", n-before)
		}
		var line []*attempt
		for range 10 {
			line = append(line, queued(t, context.Background(), g, Call{}))
		}
		if n := inThisBubble(t); n != before+10 {
			t.Errorf("%d goroutines for ten callers who wait", n-before)
		}
		for _, at := range line {
			l.Release()
			synctest.Wait()
			l = at.lease
		}
		if g.alarm.set != nil {
			t.Error("a timer is left though nobody waits")
		}
		l.Release()
		synctest.Wait()
		if n := inThisBubble(t); n != before {
			t.Errorf("%d goroutines are left", n-before)
		}
		if g.watch.set != nil {
			t.Error("a timer is left though nobody holds a lease")
		}
		shows(t, g, "0/1, accepted 11")
	})
}

// inThisBubble counts the goroutines of the caller's bubble by the heads of
// their stacks. Those of other tests, which may still be ending, do not count.
func inThisBubble(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	own := regexp.MustCompile(`^goroutine \d+ \[.*(synctest bubble \d+)\]:`).FindSubmatch(stacks)
	if own == nil {
		t.Fatalf("no bubble in %.100q", stacks)
	}
	return len(regexp.MustCompile(`(?m)^goroutine \d+ \[.*`+string(own[1])+`\]:`).FindAll(stacks, -1))
}

// The race detector makes sync.Pool and friends allocate; nothing here uses any.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	idle := gateOf(t, Config{MaxInFlight: 4})
	tracked := gateOf(t, Config{MaxInFlight: 4, Track: true})
	watched := gateOf(t, Config{MaxInFlight: 4, Observers: []Observer{ObserverFunc(func(Event) {})}})
	full := gateOf(t, Config{MaxInFlight: 1})
	take(t, full, 1)
	trackedFull := gateOf(t, Config{MaxInFlight: 1, Track: true})
	take(t, trackedFull, 1)
	line := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 1})
	held := take(t, line, 1)
	waiter := make(chan error)
	go func() {
		_, err := line.Acquire(ctx, Call{})
		waiter <- err
	}()
	for line.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	pass := func(g *Gate) func() {
		return func() {
			l, err := g.Acquire(ctx, Call{Route: "/reports"})
			must(err)
			l.Release()
		}
	}
	refuse := func(g *Gate) func() {
		return func() {
			if _, err := g.Acquire(ctx, Call{}); err == nil {
				panic("admitted")
			}
		}
	}
	for name, f := range map[string]func(){
		"Acquire and Release": pass(idle),
		"with Track":          pass(tracked),
		"with an observer":    pass(watched),
		"TryAcquire": func() {
			l, ok := idle.TryAcquire(Call{})
			if !ok {
				panic("refused")
			}
			l.Release()
		},
		"refused by a full gate":            refuse(full),
		"refused by a full gate with Track": refuse(trackedFull),
		"refused by a full line":            refuse(line),
	} {
		f() // what is made once is made
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
	held.Release()
	must(<-waiter)
	if n := testing.AllocsPerRun(100, held.Release); n != 0 {
		t.Errorf("a second Release: %v allocations, want none", n)
	}
}

// A call that waits costs its waiter, its channel, and the gate's timer.
func TestAllocationsOfAWait(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 1})
	l := take(t, g, 1)
	ask := make(chan bool)
	got := make(chan Lease)
	go func() {
		for range ask {
			l, err := g.Acquire(context.Background(), Call{})
			must(err)
			got <- l
		}
	}()
	n := testing.AllocsPerRun(200, func() {
		ask <- true
		for waiting := 0; waiting == 0; {
			g.mu.Lock()
			waiting = g.machine.Waiting()
			g.mu.Unlock()
			runtime.Gosched()
		}
		l.Release()
		l = <-got
	})
	close(ask)
	t.Logf("%v allocations for a call that waits", n)
	if n > 8 {
		t.Errorf("%v allocations for a call that waits", n)
	}
}
