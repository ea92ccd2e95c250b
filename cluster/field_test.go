package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// until waits until done is true, for most at most, in a bubble, and returns how long it
// took.
func until(most time.Duration, done func() bool) time.Duration {
	began := time.Now()
	for !done() && time.Since(began) < most {
		time.Sleep(time.Millisecond)
	}
	return time.Since(began)
}

// TestRC04CrashedHolder: the slots of an instance that died are lent again within 1.6
// leases and a second.
func TestRC04CrashedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		r.config.MaxWait, r.config.MaxWaiting = time.Minute, 10
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		if n := len(a.take(3)); n != 3 {
			t.Fatalf("%d taken", n)
		}
		a.kill()
		began := time.Now()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := b.gate.Acquire(context.Background(), forebay.Call{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 4200*time.Millisecond {
			t.Errorf("all four slots run again after %v", took)
		}
		if st, _ := b.gate.ClusterStats(); st.Reclaimed != 3 || len(st.Instances) > 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestRC04ReleaseIsNotLost: slots that are given back while the network is cut are lent
// again as soon as it is there, and not only when a lease has ended.
func TestRC04ReleaseIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		leases := a.take(4)
		a.path.SetFaults(forebaytest.Faults{LoseReply: 1})
		for _, l := range leases {
			l.Release()
		}
		time.Sleep(300 * time.Millisecond)
		healed(r)
		took := until(time.Second, func() bool { return len(b.take(4)) > 0 })
		if took > 400*time.Millisecond {
			t.Errorf("lent again after %v", took)
		}
	})
}

// TestSlotsOfWhoLeavesAreFreeAtOnce: an orderly end costs a round trip.
func TestSlotsOfWhoLeavesAreFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		r.faults = forebaytest.Faults{Takes: time.Millisecond}
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		held := a.take(4)
		var wg sync.WaitGroup
		began := time.Now()
		for range 4 {
			wg.Go(func() {
				if _, err := b.gate.Acquire(context.Background(), forebay.Call{}); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		wg.Go(func() {
			if err := a.cluster.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		if _, ok := a.try(); ok {
			t.Error("who leaves lets somebody in")
		}
		for _, l := range held {
			l.Release()
		}
		wg.Wait()
		if took := time.Since(began); took > 220*time.Millisecond {
			t.Errorf("the slots are free after %v", took)
		}
		st, _ := b.gate.ClusterStats()
		if len(st.Instances) != 1 || st.Reclaimed != 0 {
			t.Errorf("%+v", st)
		}
		if err := a.cluster.Close(context.Background()); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// TestCloseInVain: work that goes on, or a store that is away, keep Close no longer than
// it may take, and it says so.
func TestCloseInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		kept := a.take(1)
		b.path.SetFaults(forebaytest.Faults{LoseRequest: 1})
		for _, in := range []*instance{a, b} {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			began := time.Now()
			err := in.cluster.Close(ctx)
			if took := time.Since(began); err == nil || took > 400*time.Millisecond {
				t.Errorf("%s: %v after %v", in.name, err, took)
			}
			cancel()
		}
		kept[0].Release()
		if _, err := forebay.New(forebay.Config{Name: "late", MaxInFlight: 1, Cluster: a.cluster}); err == nil {
			t.Error("a gate is made on a closed cluster")
		}
	})
}

// TestRC05Zombie: a call that never ends keeps its slot as long as its process lives, is
// reported as overdue by the gate, and keeps it no longer than that.
func TestRC05Zombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.config.MaxHold = 10 * time.Second
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		if len(a.take(1)) != 1 {
			t.Fatal("refused")
		}
		time.Sleep(time.Minute)
		if n := a.gate.Stats().Overdue; n != 1 {
			t.Errorf("%d reported", n)
		}
		if len(b.take(1)) != 0 {
			t.Error("2 run where 1 may")
		}
		a.kill()
		if took := until(10*time.Second, func() bool { return len(b.take(1)) == 1 }); took > 4200*time.Millisecond {
			t.Errorf("the slot is free after %v", took)
		}
	})
}

// TestRC06LongCallsKeepTheirSlots: a call may last for many leases.
func TestRC06LongCallsKeepTheirSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		kept := a.take(2)
		for range 100 {
			time.Sleep(time.Minute)
			if len(b.take(1)) != 0 {
				t.Fatal("3 run where 2 may")
			}
		}
		if a.lost(kept[0]) || a.lost(kept[1]) {
			t.Error("a lease is lost")
		}
	})
}

// TestRC12WaitsNearTheEnd: calls that leave in the very moment in which they are granted
// cost no slot.
func TestRC12WaitsNearTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.config.MaxWait = 10 * time.Millisecond
		r.faults = forebaytest.Faults{Takes: time.Millisecond, Jitter: 200 * time.Microsecond}
		for range 3 {
			r.join().work(8, 5*time.Millisecond, 0)
		}
		r.during(15 * time.Second)
		r.halt()
		time.Sleep(time.Second)
		if n := len(r.instances[0].take(5)); n != 3 {
			t.Errorf("%d slots are left of 3, after %s", n, r.rec.summary())
		}
		if r.rec.of(forebay.RejectedTimeout) == 0 {
			t.Error("nobody left")
		}
		r.rec.check(t)
	})
}

// TestRC15ManyStartTogether: fifty instances make their first call at the same time, on an
// empty store.
func TestRC15ManyStartTogether(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 5)
			r.store = forebaytest.NewStore(seed)
			r.config.MaxWait = 10 * time.Second
			r.faults = forebaytest.Faults{Takes: time.Millisecond, Jitter: 5 * time.Millisecond}
			for range 50 {
				in := r.join()
				r.workers.Go(func() { in.call(forebay.Call{}, 20*time.Millisecond) })
			}
			r.workers.Wait()
			if n := r.rec.of(forebay.Accepted); n != 50 || r.rec.peak != 5 {
				t.Errorf("%d served, %d at a time", n, r.rec.peak)
			}
			r.rec.check(t)
		})
	}
}

// TestRC18LateHeartbeats: an instance that stands still for longer than its lease finds
// its slots lost before it starts anything.
func TestRC18LateHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.config.MaxWait, r.config.MaxWaiting = time.Minute, 10
		a, b := r.join(), r.join()
		time.Sleep(time.Second)
		kept := a.take(2)
		a.path.SetFaults(forebaytest.Faults{LoseRequest: 1}) // as if it did not get to send
		time.Sleep(1900 * time.Millisecond)
		if a.lost(kept[0]) {
			t.Error("lost too early")
		}
		time.Sleep(200 * time.Millisecond)
		if !a.lost(kept[0]) || !a.lost(kept[1]) {
			t.Error("not lost after a lease")
		}
		kept[0].Release() // it gives back what is not its own any more
		if _, ok := a.try(); ok {
			t.Error("starts on a slot that is over")
		}
		took := until(10*time.Second, func() bool { return len(b.take(1)) == 1 })
		if took > 3*time.Second { // a pause in which nobody asks counts as half a second
			t.Errorf("lent again after %v", took)
		}
		healed(r)
		time.Sleep(time.Second)
		if n := len(a.take(2)); n != 0 {
			t.Errorf("%d start while one of 2 runs elsewhere and one here, unlent", n)
		}
		st, _ := a.gate.ClusterStats()
		if st.Reclaimed != 2 || st.Lapses == 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestRC20StaleFailover: a replica that missed the last steps takes over, and is told what
// it does not know.
func TestRC20StaleFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 5)
		r.config.MaxWait, r.config.MaxWaiting = time.Minute, 10
		a, b := r.join(), r.join()
		r.store.Replicate(time.Hour) // it never hears of anything
		time.Sleep(time.Second)
		kept := a.take(5)
		r.store.Failover()
		if n := len(b.take(5)); n != 0 {
			t.Errorf("%d more run where 5 may, and do", n)
		}
		kept[0].Release()
		time.Sleep(500 * time.Millisecond)
		if len(a.take(1)) != 1 {
			t.Error("what was claimed is not used")
		}
		if st, _ := a.gate.ClusterStats(); st.Mode != "learning" || st.Held != 5 || st.Lost != 0 {
			t.Errorf("%+v", st)
		}
		for _, l := range kept {
			l.Release()
		}
		time.Sleep(4 * time.Second)
		if n := len(b.take(4)); n != 4 {
			t.Errorf("%d of 4 that are free", n)
		}
	})
}

// TestConfigSaysAllMistakes: every mistake at once, with what would be right.
func TestConfigSaysAllMistakes(t *testing.T) {
	_, err := cluster.New(cluster.Config{
		Name: "a b", Host: "web 1", Lease: 10 * time.Millisecond,
		Terms: cluster.Terms{WhenAway: 9, MinShare: -1, Withhold: time.Millisecond, IdleHold: time.Hour},
	})
	want := `cluster: Store is nil; a cluster needs one to keep its ledgers
cluster: Name is "a b"; it must be 1 to 64 letters, digits and any of - _ . / :
cluster: Host is "web 1"; it must be at most 255 printable characters
cluster: Lease is 10ms; it must be at least 200ms
cluster: WhenAway is 9; it must be Share, Closed or Open
cluster: MinShare is -1; it must be 0 (nothing is added to a share) or more
cluster: Withhold is 1ms; it must be 0 (nothing is withheld) or at least the lease, 10ms
cluster: IdleHold is 1h0m0s; it must be at most 1m0s`
	if fmt.Sprint(err) != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	c, err := cluster.New(cluster.Config{Store: forebaytest.NewStore(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	_, err = forebay.New(forebay.Config{MaxInFlight: 1, Cluster: c.With(cluster.Terms{MinShare: -1})})
	if err == nil {
		t.Error("a gate with wrong terms")
	}
}
