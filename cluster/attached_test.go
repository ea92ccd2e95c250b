package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest"
)

// TestLeave: a gate that leaves gives back what is idle at once and the rest as it ends,
// is no member then, and another of its name may take its place.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		first, other := r.join(), r.join()
		synctest.Wait()
		held, ok := first.gate.TryAcquire(forebay.Call{})
		if !ok {
			t.Fatal("a fresh gate refuses")
		}
		first.cluster.Leave("nobody")
		first.cluster.Leave("g")
		first.cluster.Leave("g")
		if _, ok := first.gate.TryAcquire(forebay.Call{}); ok {
			t.Error("a gate that leaves lets somebody in")
		}
		again, err := forebay.New(forebay.Config{Name: "g", MaxInFlight: 2, Cluster: first.cluster})
		if err != nil {
			t.Fatal(err)
		}
		l, ok := again.TryAcquire(forebay.Call{})
		if !ok {
			t.Error("the slot that is free does not get to the gate that came after")
		}
		if _, ok := other.gate.TryAcquire(forebay.Call{}); ok {
			t.Error("3 run where 2 may")
		}
		held.Release()
		time.Sleep(100 * time.Millisecond)
		st, _ := other.gate.ClusterStats()
		if len(st.Instances) != 2 || st.InUse != 1 || st.Reclaimed != 0 {
			t.Errorf("%+v", st)
		}
		l.Release()
	})
}

// TestSetTerms: other terms hold at once, also while the store is away.
func TestSetTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		in, _ := r.join(), r.join()
		synctest.Wait()
		if err := in.cluster.SetTerms("g", cluster.Terms{WhenAway: cluster.Closed}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // the others are known
		in.path.SetFaults(forebaytest.Faults{Err: errors.New("cut off")})
		time.Sleep(10 * time.Second)
		for _, c := range []struct {
			terms cluster.Terms
			mode  string
			room  int
		}{
			{cluster.Terms{WhenAway: cluster.Closed}, "closed", 0},
			{cluster.Terms{}, "share", 2},
			{cluster.Terms{MinShare: 3}, "share", 3},
			{cluster.Terms{WhenAway: cluster.Open}, "open", 4},
			{cluster.Terms{WhenAway: cluster.Closed}, "closed", 0},
		} {
			if err := in.cluster.SetTerms("g", c.terms); err != nil {
				t.Fatal(err)
			}
			var held []forebay.Lease
			for {
				l, ok := in.gate.TryAcquire(forebay.Call{})
				if !ok {
					break
				}
				held = append(held, l)
			}
			if m := in.mode(); m != c.mode || len(held) != c.room {
				t.Errorf("%+v: mode %s, %d are let in; want %s, %d", c.terms, m, len(held), c.mode, c.room)
			}
			for _, l := range held {
				l.Release()
			}
		}
		for what, err := range map[string]error{
			"no such gate": in.cluster.SetTerms("nobody", cluster.Terms{}),
			"fenced":       in.cluster.SetTerms("g", cluster.Terms{Fenced: true}),
			"wrong":        in.cluster.SetTerms("g", cluster.Terms{MinShare: -1}),
		} {
			if err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		in.cluster.Leave("g")
		if err := in.cluster.SetTerms("g", cluster.Terms{}); err == nil {
			t.Error("a gate that leaves gets other terms")
		}
	})
}

// TestSetTermsInACut: who is told to use its share as it has just been cut off does not
// begin before the others have ended what they may use of the limit.
func TestSetTermsInACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		r.terms.WhenAway = cluster.Closed
		first, other := r.join(), r.join()
		time.Sleep(20 * time.Second)
		var held []forebay.Lease
		for range 4 {
			l, ok := other.gate.TryAcquire(forebay.Call{})
			if !ok {
				t.Fatal("4 may run, and fewer do")
			}
			held = append(held, l)
		}
		for _, in := range r.instances {
			in.path.SetFaults(forebaytest.Faults{Err: errors.New("cut off")})
		}
		for first.mode() != "closed" {
			first.gate.TryAcquire(forebay.Call{})
			time.Sleep(10 * time.Millisecond)
		}
		if err := first.cluster.SetTerms("g", cluster.Terms{}); err != nil {
			t.Fatal(err)
		}
		theirs, end := held[0].Context(context.Background())
		defer end()
		if l, ok := first.gate.TryAcquire(forebay.Call{}); ok && theirs.Err() == nil {
			t.Error("5 run where 4 may")
			l.Release()
		}
		if m := first.mode(); m != "closed" {
			t.Errorf("mode %s", m)
		}
		<-theirs.Done()
		time.Sleep(2 * time.Second)
		l, ok := first.gate.TryAcquire(forebay.Call{})
		if !ok {
			t.Fatalf("it never begins with its share; mode %s", first.mode())
		}
		l.Release()
		for _, l := range held {
			l.Release()
		}
	})
}

// TestSetTermsOfAll: gates of one name in one process get them all.
func TestSetTermsOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		in := r.join()
		again, err := forebay.New(forebay.Config{Name: "g", MaxInFlight: 4, Cluster: in.cluster})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.cluster.SetTerms("g", cluster.Terms{WhenAway: cluster.Closed}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		in.path.SetFaults(forebaytest.Faults{Err: errors.New("cut off")})
		time.Sleep(20 * time.Second)
		for i, g := range []*forebay.Gate{in.gate, again} {
			if st, _ := g.ClusterStats(); st.Mode != "closed" {
				t.Errorf("gate %d goes on as %s", i, st.Mode)
			}
		}
	})
}

// TestConfiguredClosed: of the limits that instances are configured with the lowest is in
// force, and a closed gate is the lowest of all, until it is open again.
func TestConfiguredClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4)
		first, other := r.join(), r.join()
		synctest.Wait()
		for _, limit := range []int{0, 2, 4} {
			if err := first.gate.ReconfigureAt(first.gate.Config(), limit); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			st, _ := other.gate.ClusterStats()
			if got := other.gate.Stats().Capacity; got != limit || st.Limit != limit || st.Overridden {
				t.Errorf("configured with %d here, elsewhere %d may run: %+v", limit, got, st)
			}
		}
	})
}

// TestIdleGateLearns: a gate that nobody calls is ready some seconds after the store has
// lost everything, and not when somebody comes.
func TestIdleGateLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		in := r.join()
		time.Sleep(time.Minute)
		r.store.Restart()
		time.Sleep(15 * time.Second) // it has heard of it
		if m := in.mode(); m != "normal" {
			t.Errorf("mode %s", m)
		}
		if l, ok := in.gate.TryAcquire(forebay.Call{}); !ok {
			t.Error("refused")
		} else {
			l.Release()
		}
	})
}
