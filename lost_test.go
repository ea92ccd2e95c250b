package forebay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/feed"
)

// suspend makes a gate's term one that is over by the wall clock alone, as after the
// machine was suspended.
func suspend(g *Gate) {
	t := *g.cluster.term.Load()
	t.wall = time.Now().UnixNano() - 1
	g.cluster.term.Store(&t)
}

// lostCause returns why a lease's context ended, nil while it has not.
func lostCause(t *testing.T, l Lease) error {
	t.Helper()
	ctx, stop := l.Context(context.Background())
	defer stop()
	return context.Cause(ctx)
}

func TestLeaseContext(t *testing.T) {
	for name, end := range map[string]func(g *Gate, s *source){
		"withdrawn": func(_ *Gate, s *source) { s.Lapse() },
		"over": func(g *Gate, s *source) {
			s.Renew(time.Now().Add(-time.Second))
			_, _ = g.TryAcquire(Call{})
		},
		"suspended": func(g *Gate, s *source) {
			suspend(g)
			_, _ = g.TryAcquire(Call{})
		},
		"renewed too late": func(g *Gate, s *source) {
			g.cluster.term.Store(termUntil(time.Now()))
			s.Renew(time.Now().Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []Config{{MaxInFlight: 9}, {MaxInFlight: 9, Track: true}} {
				g, s := clusteredOf(t, c, 9)
				old, dear, given := take(t, g, 1), take(t, g, 2), take(t, g, 1)
				ctx, stop := old.Context(context.Background())
				ofDear, stopDear := dear.Context(context.Background())
				ofGiven, stopGiven := given.Context(context.Background())
				stopped, stopNow := old.Context(context.Background())
				stopNow()
				given.Release()
				if ctx.Err() != nil || ofDear.Err() != nil {
					t.Fatal("a context ends before its lease is lost")
				}
				end(g, s)
				if context.Cause(ctx) != ErrLeaseLost || !errors.Is(ctx.Err(), context.Canceled) || context.Cause(ofDear) != ErrLeaseLost {
					t.Errorf("the contexts of lost leases end with %v, %v", context.Cause(ctx), context.Cause(ofDear))
				}
				if context.Cause(stopped) != context.Canceled || ofGiven.Err() != nil {
					t.Errorf("stopped: %v; given back: %v", context.Cause(stopped), ofGiven.Err())
				}
				if lostCause(t, old) != ErrLeaseLost || !old.Live() {
					t.Error("a lost lease has a context that goes on, or is out no more")
				}
				s.Renew(time.Now().Add(time.Hour))
				s.Lend(9, nil)
				later := take(t, g, 1)
				if lostCause(t, later) != nil || lostCause(t, given) != nil {
					t.Error("the context of a new lease, or of one that is back, has ended")
				}
				for _, l := range []Lease{old, dear, later} {
					l.Release()
				}
				if lostCause(t, old) != nil {
					t.Error("a lease that is back has something to lose")
				}
				for _, f := range []func(){stop, stopDear, stopGiven} {
					f()
				}
				if n := len(g.cluster.watched); n != 0 {
					t.Errorf("%d leases are still watched", n)
				}
			}
		})
	}
}

// Who asks after the end is told so, although nobody has noticed it before.
func TestLeaseContextAfterTheEnd(t *testing.T) {
	g, _ := clusteredOf(t, Config{MaxInFlight: 1}, 1)
	l := take(t, g, 1)
	suspend(g)
	if lostCause(t, l) != ErrLeaseLost {
		t.Error("the context goes on")
	}
}

// Leases that cannot be lost have contexts that end with their parents only.
func TestLeaseContextWithoutCluster(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	for _, l := range []Lease{{}, take(t, g, 1)} {
		parent, cancel := context.WithCancelCause(context.Background())
		ctx, stop := l.Context(parent)
		if ctx.Err() != nil {
			t.Error("it ends at once")
		}
		why := errors.New("why")
		cancel(why)
		if context.Cause(ctx) != why {
			t.Error(context.Cause(ctx))
		}
		stop()
	}
}

// The lease of a chain is lost with any of its gates'.
func TestChainLeaseContext(t *testing.T) {
	a, sa := clusteredOf(t, Config{Name: "a", MaxInFlight: 1}, 1)
	local := gateOf(t, Config{Name: "local", MaxInFlight: 1})
	b, sb := clusteredOf(t, Config{Name: "b", MaxInFlight: 1}, 1)
	c, err := NewChain(a, local, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*source{sa, sb} {
		l, err := c.Acquire(context.Background(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := l.Context(context.Background())
		s.Lapse()
		if context.Cause(ctx) != ErrLeaseLost {
			t.Error(context.Cause(ctx))
		}
		stop()
		l.Release()
		s.Renew(time.Now().Add(time.Hour))
		s.Lend(1, nil)
	}
}

// A chain whose first slot is lost while it waits for the next does not run.
func TestChainLosesALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{Name: "g", MaxInFlight: 2, MaxWait: time.Hour}, 2)
		local := gateOf(t, Config{Name: "local", MaxInFlight: 1, MaxWait: time.Hour})
		c, err := NewChain(g, local)
		if err != nil {
			t.Fatal(err)
		}
		for name, end := range map[string]func(){"withdrawn": s.Lapse, "suspended": func() { suspend(g) }} {
			held := take(t, local, 1)
			out := make(chan error)
			go func() {
				_, err := c.Acquire(context.Background(), Call{})
				out <- err
			}()
			synctest.Wait()
			end()
			held.Release()
			var rejected *RejectedError
			if err := <-out; !errors.As(err, &rejected) || rejected.Decision() != RejectedStore || rejected.Gate() != g {
				t.Errorf("%s: %v", name, err)
			}
			s.Renew(time.Now().Add(time.Hour))
			s.Lend(2, nil)
		}
		shows(t, local, "0/1, accepted 2")
		shows(t, g, "0/2, store 2")
	})
}

// CancelLost ends what runs behind the gate, and without it nothing does.
func TestCancelLost(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		g, s := clusteredOf(t, Config{MaxInFlight: 1, CancelLost: cancels, LeaseInContext: true}, 0)
		check := func(ctx context.Context) {
			t.Helper()
			s.Lapse()
			if got := context.Cause(ctx) == ErrLeaseLost; got != cancels {
				t.Errorf("CancelLost %v: %v", cancels, context.Cause(ctx))
			}
			if l, ok := LeaseFrom(ctx); !ok || l.Gate() != g {
				t.Error("the context has lost its lease")
			}
		}
		lend := func() {
			s.Renew(time.Now().Add(time.Hour))
			s.Lend(1, nil)
		}
		lend()
		if err := Do(context.Background(), g, func(ctx context.Context) error { check(ctx); return nil }); err != nil {
			t.Error(err)
		}
		lend()
		h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { check(r.Context()) }))
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		if n := len(g.cluster.watched); n != 0 || g.Stats().InUse != 0 {
			t.Errorf("%d leases are still watched; %+v", n, g.Stats())
		}
	}
}

// A call that finds a slot here after the end does not run on it, on whichever way.
func TestNobodyStartsAfterTheEnd(t *testing.T) {
	ends := map[string]func(g *Gate, s *source){
		"over":      func(_ *Gate, s *source) { s.Renew(time.Now()) },
		"suspended": func(g *Gate, _ *source) { suspend(g) },
		"over, and the wall clock set back": func(g *Gate, s *source) {
			end := termUntil(time.Now())
			end.wall += int64(time.Hour)
			g.cluster.term.Store(end)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, c := range []Config{{MaxInFlight: 9}, {MaxInFlight: 9, Track: true}, {MaxInFlight: 9, MaxHold: time.Hour}} {
					g, s := clusteredOf(t, c, 9)
					for range 2 { // the second goes without the lock, if it may
						take(t, g, 1).Release()
					}
					end(g, s)
					if _, ok := g.TryAcquire(Call{}); ok {
						t.Errorf("%+v: a call runs", c)
					}
					if _, ok := g.TryAcquire(Call{Cost: 2}); ok {
						t.Errorf("%+v: a dear call runs", c)
					}
					shows(t, g, "0/9, accepted 2, store 2")
					machineCounts(t, g)
					s.Renew(time.Now().Add(time.Hour))
					for range 9 {
						take(t, g, 1)
					}
				}
			})
		})
	}
}

// A waiter that got its slot, and comes to run only after the end, gives it back; those
// behind it wait on.
func TestGrantAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 9, MaxWait: time.Second}, 0)
		a, b := waits(g, Call{}), waits(g, Call{})
		s.Renew(time.Now().Add(time.Hour))
		suspend(g)
		s.Lend(1, nil)
		if d := <-a; d != RejectedStore {
			t.Error(d)
		}
		synctest.Wait()
		if len(b) != 0 {
			t.Errorf("the next in line was told %v", <-b)
		}
		s.Renew(time.Now().Add(time.Hour))
		(<-b).(Lease).Release()
		shows(t, g, "0/9, accepted 1, store 1")

		// The end that the monotonic clock shows is seen before anybody is let in.
		s.Take(1)
		c := waits(g, Call{})
		s.Renew(time.Now().Add(100 * time.Millisecond))
		time.Sleep(100 * time.Millisecond)
		s.Lend(1, nil)
		synctest.Wait()
		if len(c) != 0 {
			t.Errorf("told %v", <-c)
		}
		s.Renew(time.Now().Add(time.Hour))
		(<-c).(Lease).Release()
	})
}

// The end of a call after the end lets nobody in.
func TestReleaseAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := clusteredOf(t, Config{MaxInFlight: 9, MaxWait: time.Second}, 1)
		l := take(t, g, 1)
		a := waits(g, Call{})
		s.Renew(time.Now().Add(100 * time.Millisecond))
		time.Sleep(100 * time.Millisecond)
		s.Look(1, 9)
		s.pokes = 0
		l.Release()
		synctest.Wait()
		if len(a) != 0 || s.pokes != 1 {
			t.Errorf("%d told, %d pokes", len(a), s.pokes)
		}
		s.Renew(time.Now()) // too late again
		synctest.Wait()
		if len(a) != 0 {
			t.Errorf("told %v", <-a)
		}
		s.Renew(time.Now().Add(time.Hour)) // the slot was still lent
		(<-a).(Lease).Release()
	})
}

// fencedOf returns a gate with numbered slots.
func fencedOf(t *testing.T, c Config, slots ...feed.Slot) (*Gate, *source) {
	t.Helper()
	g, s := clusteredOf(t, c, 0)
	s.Fenced()
	s.Lend(len(slots), slots)
	return g, s
}

func TestFences(t *testing.T) {
	g, s := fencedOf(t, Config{MaxInFlight: 3}, feed.Slot{Number: 1, Fence: 11}, feed.Slot{Number: 2, Fence: 12}, feed.Slot{Number: 3, Fence: 13})
	a, b := take(t, g, 1), take(t, g, 2)
	seen := map[int]uint64{}
	for _, f := range append(a.Fences(), b.Fences()...) {
		seen[f.Number] = f.Fence
	}
	if want := map[int]uint64{1: 11, 2: 12, 3: 13}; !reflect.DeepEqual(seen, want) || len(a.Fences()) != 1 {
		t.Errorf("%v and %v", a.Fences(), b.Fences())
	}
	of := a.Fences()[0]
	a.Release()
	if a.Fences() != nil || (Lease{}).Fences() != nil {
		t.Error("a lease that is back has numbers")
	}
	if n, slots := s.Take(3); n != 1 || len(slots) != 1 || Fence(slots[0]) != of {
		t.Errorf("took %d: %v, want %v", n, slots, of)
	}
	s.Return(true)
	b.Release()
	v := s.Look(0, 9)
	if v.Back != 2 || len(v.BackOf) != 2 || v.BackOf[0].Number == of.Number || v.BackOf[1].Number == of.Number {
		t.Errorf("%+v after slot %d was taken", v, of.Number)
	}
	s.Return(false)
	s.Lend(2, v.BackOf)
	take(t, g, 2).Release()
}

// Numbers that were withdrawn come back to nobody, those of an end that was renewed do,
// and without the ledger there are none.
func TestFencesOfLostLeases(t *testing.T) {
	slots := []feed.Slot{{Number: 1, Fence: 1}, {Number: 2, Fence: 2}}
	g, s := fencedOf(t, Config{MaxInFlight: 9}, slots...)
	kept := take(t, g, 1)
	s.Renew(time.Now().Add(-1))
	_, _ = g.TryAcquire(Call{})
	s.Renew(time.Now().Add(time.Hour))
	kept.Release()
	lost, idle := take(t, g, 1), len(g.cluster.free)
	if idle != 1 {
		t.Errorf("%d numbers are free, want 1", idle)
	}
	s.Lapse()
	if len(lost.Fences()) != 1 {
		t.Errorf("a lost lease has %v", lost.Fences())
	}
	s.Renew(time.Now().Add(time.Hour))
	s.Lend(2, []feed.Slot{{Number: 1, Fence: 21}, {Number: 2, Fence: 22}})
	later := take(t, g, 1) // the other one covers the lost lease
	if f := later.Fences(); len(f) != 1 || f[0].Fence < 21 {
		t.Errorf("%v", f)
	}
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("a lost lease is not covered")
	}
	lost.Release()
	if len(g.cluster.free) != 1 {
		t.Errorf("%v are free", g.cluster.free)
	}
	later.Release()
	s.Alone(feed.Alone{Slots: 1})
	alone := take(t, g, 1)
	if f := alone.Fences(); f != nil {
		t.Errorf("without the ledger: %v", f)
	}
	s.Together()
	alone.Release()
	if len(g.cluster.free) != 2 {
		t.Errorf("%v are free", g.cluster.free)
	}
	s.Renew(time.Now().Add(time.Hour))
	if f := take(t, g, 2).Fences(); len(f) != 2 {
		t.Errorf("together again: %v", f)
	}
}
