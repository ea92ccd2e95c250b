package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// queue has calls join the line in a bubble, one each millisecond, at instances in turn,
// and returns when each was let in; each runs for a time.
func (r *rig) queue(n int, cost func(i int) int, runs time.Duration) (order func() []time.Time) {
	var mu sync.Mutex
	served := make([]time.Time, n)
	for i := range n {
		in := r.instances[i%len(r.instances)]
		r.workers.Go(func() {
			l, err := in.gate.Acquire(context.Background(), forebay.Call{Cost: cost(i)})
			if err != nil {
				r.Errorf("call %d: %v", i, err)
				return
			}
			mu.Lock()
			served[i] = time.Now()
			mu.Unlock()
			in.hold(l, cost(i), runs)
		})
		time.Sleep(time.Millisecond)
	}
	return func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(served)
	}
}

func one(int) int { return 1 }

// TestFirstInFirstOut: over all instances, in the order in which calls came.
func TestFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.config.MaxWait = time.Minute
		for range 4 {
			r.join()
		}
		time.Sleep(time.Second)
		order := r.queue(100, one, 50*time.Millisecond)
		r.workers.Wait()
		if got := order(); !slices.IsSortedFunc(got, time.Time.Compare) {
			t.Errorf("served at %v", got)
		}
		r.rec.check(t)
	})
}

// TestDearCallsAreServed: a call that costs more than what is free is not overtaken,
// neither starves the other, and units that do not suffice for it do not lie idle at the
// instance that has it.
func TestDearCallsAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5)
		r.config.MaxWait = time.Minute
		for range 3 {
			r.join()
		}
		time.Sleep(time.Second)
		order := r.queue(60, func(i int) int { return []int{1, 4, 1, 2, 5}[i%5] }, 50*time.Millisecond)
		r.workers.Wait()
		if got := order(); !slices.IsSortedFunc(got, time.Time.Compare) {
			t.Errorf("served at %v", got)
		}
		if r.rec.peak != 5 {
			t.Errorf("%d units ran", r.rec.peak)
		}
		r.rec.check(t)
	})
}

// TestRecall: what lies idle at one instance is with the one that needs it after two round
// trips, and goes from hand to hand after that.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.terms.IdleHold = 10 * time.Second
		r.faults = forebaytest.Faults{Takes: 200 * time.Microsecond}
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		for i := range 100 {
			a, b = b, a
			l, err := a.gate.Acquire(context.Background(), forebay.Call{})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var took time.Duration
			var wg sync.WaitGroup
			wg.Go(func() {
				l, err := b.gate.Acquire(context.Background(), forebay.Call{})
				if err != nil {
					t.Error(err)
				}
				took = time.Since(began)
				l.Release()
			})
			if i%2 == 0 { // it lies idle, or is given back while somebody waits
				l.Release()
			} else {
				time.Sleep(10 * time.Millisecond)
				began = time.Now()
				l.Release()
			}
			wg.Wait()
			if took > time.Millisecond {
				t.Errorf("round %d: the slot arrives after %v", i, took)
			}
			time.Sleep(time.Duration(i) * time.Millisecond)
		}
	})
}

// TestRC10WaitersCostNothing: while a thousand calls wait, nothing but heartbeats reaches
// the store, over one subscription.
func TestRC10WaitersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.config.MaxWait, r.config.MaxWaiting = time.Hour, 1000
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		kept := append(a.take(1), b.take(1)...)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 1000 {
			in := []*instance{a, b}[i%2]
			wg.Go(func() {
				if l, err := in.gate.Acquire(ctx, forebay.Call{}); err == nil {
					l.Release()
				}
			})
		}
		time.Sleep(time.Second)
		before := r.store.Exchanges()
		time.Sleep(time.Minute)
		if n := r.store.Exchanges() - before; n < 238 || n > 242 {
			t.Errorf("%d exchanges in a minute, which is 120 heartbeats of two instances", n)
		}
		for _, l := range kept {
			l.Release()
		}
		wg.Wait()
		cancel()
	})
}

// TestIdleCostsNothing: an instance without calls gives everything back, and says every
// five leases that it is there.
func TestIdleCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		in := r.join()
		time.Sleep(time.Second)
		for _, l := range in.take(4) {
			l.Release()
		}
		time.Sleep(time.Second)
		if st, _ := in.gate.ClusterStats(); st.Held != 0 {
			t.Errorf("%d units are held by nobody", st.Held)
		}
		before := r.store.Exchanges()
		time.Sleep(100 * time.Second)
		if n := r.store.Exchanges() - before; n < 9 || n > 11 {
			t.Errorf("%d exchanges in 100 s", n)
		}
	})
}

// TestAsks: a call that may not wait is answered by the ledger, within 50 ms, and gets a
// slot wherever there is one.
func TestAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.config.MaxWait, r.config.MaxWaiting = 0, 0
		r.faults = forebaytest.Faults{Takes: 2 * time.Millisecond}
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		asks := func(in *instance, want forebay.Decision, most time.Duration) forebay.Lease {
			t.Helper()
			began := time.Now()
			l, err := in.gate.Acquire(context.Background(), forebay.Call{})
			if d, took := decisionOf(err), time.Since(began); d != want || took > most {
				t.Errorf("%s is told %v after %v; want %v within %v", in.name, d, took, want, most)
			}
			return l
		}
		first := asks(a, forebay.Accepted, 2*time.Millisecond)
		second := asks(b, forebay.Accepted, 2*time.Millisecond)
		asks(a, forebay.RejectedBusy, 2*time.Millisecond)
		asks(b, forebay.RejectedBusy, 2*time.Millisecond)
		first.Release()
		time.Sleep(5 * time.Millisecond) // as good as at once: little is free, so it goes back
		third := asks(b, forebay.Accepted, 2*time.Millisecond)
		r.everywhere(forebaytest.Faults{LoseRequest: 1})
		asks(a, forebay.RejectedStore, 50*time.Millisecond)
		healed(r)
		second.Release()
		third.Release()
	})
}

// TestPatience: a wait of 1 ms, 500 ms or 999 ms is that, and never for ever; also where
// nothing is heard from the store.
func TestPatience(t *testing.T) {
	for _, patience := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond} {
		for name, f := range map[string]forebaytest.Faults{
			"well": {}, "silent": {LoseRequest: 1}, "down": {Err: errAway}, "slow": {Takes: 200 * time.Millisecond},
		} {
			t.Run(fmt.Sprint(patience, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 1)
					r.config.MaxWait = patience
					a, b := r.join(), r.join()
					time.Sleep(time.Second)
					kept := a.take(1)
					r.everywhere(f)
					for range 20 {
						began := time.Now()
						_, err := b.gate.Acquire(context.Background(), forebay.Call{})
						if took := time.Since(began); took != patience || decisionOf(err) != forebay.RejectedTimeout {
							if decisionOf(err) != forebay.RejectedStore || took > patience {
								t.Errorf("%v after %v", err, took)
							}
						}
					}
					for _, l := range kept {
						l.Release()
					}
				})
			})
		}
	}
}

// TestLeaversAreForgotten: calls that have left the line get nothing, whatever the ledger
// grants them meanwhile, and keep nobody from anything.
func TestLeaversAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.config.MaxWait = time.Minute
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		kept := a.take(2)
		ctx, leave := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { _, _ = b.gate.Acquire(ctx, forebay.Call{}) })
		}
		time.Sleep(10 * time.Millisecond)
		leave()
		wg.Wait()
		began := time.Now()
		wg.Go(func() {
			l, err := a.gate.Acquire(context.Background(), forebay.Call{})
			if err != nil || time.Since(began) > 20*time.Millisecond {
				t.Errorf("who stayed is told %v after %v", err, time.Since(began))
			}
			l.Release()
		})
		time.Sleep(10 * time.Millisecond)
		for _, l := range kept {
			l.Release()
		}
		wg.Wait()
	})
}

// TestLimits: a limit that changes holds everywhere within moments: up at once, down as
// soon as what runs has ended, 0 and back; and no call is forgotten.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.each, r.holds, r.pauses = 8, 5*time.Millisecond, time.Millisecond
		for range 4 {
			r.joinAndWork()
		}
		time.Sleep(time.Second)
		for i, limit := range []int{3, 20, 1, 12, 0, 5, 0, 12} {
			in := r.instances[i%4]
			r.rec.allow(max(limit, r.rec.allowed())) // who has not heard of it yet goes on
			if err := in.gate.SetLimit(limit); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
			r.rec.allow(limit)
			before := r.rec.count()
			time.Sleep(time.Second)
			served := r.rec.count() - before
			if st, _ := in.gate.ClusterStats(); st.Limit != limit || !st.Overridden {
				t.Errorf("limit %d: %+v", limit, st)
			}
			for _, in := range r.instances {
				if c := in.gate.Stats().Capacity; c != limit {
					t.Errorf("limit %d: capacity %d at %s", limit, c, in.name)
				}
			}
			if (served > 0) != (limit > 0) || served < limit*100 && served < 2000 {
				t.Errorf("limit %d: %d calls in a second", limit, served)
			}
		}
		r.halt()
		r.rec.check(t)
	})
}

// TestRC17TwoVersions: of the limits that instances are configured with, side by side, the
// lower one holds, until the last that has it is gone; and everybody can see it.
func TestRC17TwoVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5)
		r.each, r.holds, r.pauses = 8, 20*time.Millisecond, time.Millisecond
		r.joinAndWork()
		r.joinAndWork()
		time.Sleep(time.Second)
		r.config.MaxInFlight = 8
		r.joinAndWork()
		r.joinAndWork()
		time.Sleep(time.Minute)
		for _, in := range r.instances {
			st, _ := in.gate.ClusterStats()
			if st.Limit != 5 || fmt.Sprint(st.Configured) != "[5 8]" || st.Overridden {
				t.Errorf("%+v", st)
			}
		}
		r.instances[0].retire()
		time.Sleep(time.Second)
		if got := r.rec.peakSince(); got != 5 {
			t.Errorf("%d ran while one with a limit of 5 is left", got)
		}
		r.rec.allow(8)
		r.instances[1].retire()
		time.Sleep(time.Second)
		if got := r.rec.peakSince(); got != 8 {
			t.Errorf("%d ran once all are configured with 8", got)
		}
		r.halt()
		r.rec.check(t)
	})
}

// TestOverridesEnd: one that was set for a time ends everywhere, whatever became of who set
// it.
func TestOverridesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10)
		a, b := r.join(), r.join()
		a.work(1, time.Millisecond, time.Millisecond)
		b.work(1, time.Millisecond, time.Millisecond)
		time.Sleep(time.Second)
		if err := a.gate.SetClusterLimit(4, time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a.kill()
		time.Sleep(50 * time.Second)
		if c := b.gate.Stats().Capacity; c != 4 {
			t.Errorf("capacity %d", c)
		}
		time.Sleep(10 * time.Second)
		if c := b.gate.Stats().Capacity; c != 10 {
			t.Errorf("capacity %d after its time", c)
		}
		if err := b.gate.SetClusterLimit(2, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := b.gate.SetClusterLimit(-1, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if st, _ := b.gate.ClusterStats(); st.Limit != 10 || st.Overridden {
			t.Errorf("taken back: %+v", st)
		}
	})
}

// TestUncached: without an idle hold every slot goes back at once, and what is asked
// meanwhile goes with the next exchange.
func TestUncached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1000)
		r.terms = cluster.Terms{IdleHold: -1}
		r.faults = forebaytest.Faults{Takes: time.Millisecond}
		in := r.join()
		in.work(256, 0, 0)
		time.Sleep(time.Second)
		before := r.store.Exchanges()
		n := r.during(time.Second)
		if e := r.store.Exchanges() - before; n < 100_000 || e > 1001 {
			t.Errorf("%d calls and %d exchanges in a second of round trips of 1 ms", n, e)
		}
		r.halt()
		time.Sleep(10 * time.Millisecond)
		if st, _ := in.gate.ClusterStats(); st.Held != 0 {
			t.Errorf("%d units are held by nobody", st.Held)
		}
	})
}
