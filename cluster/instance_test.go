package cluster_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

func TestColdStartLendsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		in := r.join()
		synctest.Wait()
		if m := in.mode(); m != "normal" {
			t.Errorf("mode %s", m)
		}
		l, ok := in.gate.TryAcquire(forebay.Call{})
		if !ok {
			t.Fatal("a fresh gate refuses")
		}
		l.Release()
	})
}

func TestCachedCallsAskNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		in := r.join()
		in.work(1, time.Millisecond, time.Millisecond)
		time.Sleep(time.Second)
		before := r.store.Exchanges()
		if n := r.during(10 * time.Second); n < 4000 {
			t.Errorf("%d calls", n)
		}
		if n := r.store.Exchanges() - before; n > 21 {
			t.Errorf("%d exchanges in 10 s", n)
		}
		r.rec.check(t)
	})
}

func TestContendedIsFairAndExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20)
		for range 5 {
			r.join().work(16, 5*time.Millisecond, 0)
		}
		time.Sleep(time.Second)
		before := r.store.Exchanges()
		n := r.during(10 * time.Second)
		t.Logf("%d calls, %.2f exchanges a call; %s", n, float64(r.store.Exchanges()-before)/float64(n), r.rec.summary())
		for _, in := range r.instances {
			st, _ := in.gate.ClusterStats()
			t.Logf("%+v", st)
		}
		r.halt()
		r.rec.check(t)
	})
}
