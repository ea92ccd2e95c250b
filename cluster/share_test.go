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

// TestSharesBeginAndEndTogether: the store is away for about as long as a lease lasts, and
// comes back as it was, or empty. Whoever has gone over to his share by then, and whoever
// has not, never are too many together.
func TestSharesBeginAndEndTogether(t *testing.T) {
	step := 230 * time.Millisecond / time.Duration(*seeds)
	if underRace {
		step *= 3
	}
	for away := 1500 * time.Millisecond; away < 3600*time.Millisecond; away += step {
		for name, back := range map[string]func(*forebaytest.Store){
			"as it was": func(*forebaytest.Store) {}, "empty": (*forebaytest.Store).Restart,
		} {
			t.Run(fmt.Sprint(away, " ", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 7)
					r.each, r.holds, r.pauses = 4, 22*time.Millisecond, 6*time.Millisecond
					for range 5 {
						r.joinAndWork()
					}
					time.Sleep(5 * time.Second)
					r.everywhere(forebaytest.Faults{LoseRequest: 1})
					time.Sleep(away)
					back(r.store)
					healed(r)
					time.Sleep(8 * time.Second)
					if n := r.during(time.Second); n < 200 {
						t.Errorf("%d calls in a second, afterwards", n)
					}
					r.halt()
					r.rec.check(t)
				})
			})
		}
	}
}

// TestNoDip: as the store comes back after a while, as much is served as ever, from the
// first moment on.
func TestNoDip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.each, r.holds, r.pauses = 6, 5*time.Millisecond, time.Millisecond
		for range 4 {
			r.joinAndWork()
		}
		time.Sleep(time.Second)
		usual := r.during(time.Second) / 10
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(20 * time.Second)
		healed(r)
		for i := range 20 {
			if n := r.during(100 * time.Millisecond); n < usual*8/10 {
				t.Errorf("%d calls in tenth %d of a second, where %d are usual", n, i, usual)
			}
		}
		r.halt()
		r.rec.check(t)
	})
}

// TestAloneAsksLittle: while gates use their shares, and rejoin, calls cost no exchanges.
func TestAloneAsksLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 12)
		r.each, r.holds, r.pauses = 6, time.Millisecond, 0
		for range 4 {
			r.joinAndWork()
		}
		time.Sleep(time.Second)
		r.everywhere(forebaytest.Faults{Err: errAway})
		time.Sleep(8 * time.Second)
		before := r.store.Exchanges()
		healed(r)
		time.Sleep(600 * time.Millisecond)
		if n := r.store.Exchanges() - before; n > 4*60 {
			t.Errorf("%d exchanges in the 600 ms in which four instances rejoin", n)
		}
	})
}

// silentStore is one whose subscriptions hear nothing: they never begin, or they look well
// and say nothing.
type silentStore struct {
	*forebaytest.Store
	begin bool
}

func (s silentStore) Subscribe(ctx context.Context, _ []string, ready func(), _ func(cluster.Message)) error {
	if s.begin {
		ready()
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestDeaf: an instance that hears nothing asks often while calls wait, and else not.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		a := r.join()
		c, err := cluster.New(cluster.Config{Store: silentStore{Store: r.store.Path()}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		deaf, err := forebay.New(forebay.Config{Name: "g", MaxInFlight: 1, MaxWait: time.Minute, Cluster: c})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		kept := a.take(1)
		var wg sync.WaitGroup
		wg.Go(func() {
			l, err := deaf.Acquire(context.Background(), forebay.Call{})
			if err != nil {
				t.Error(err)
			}
			l.Release()
		})
		time.Sleep(time.Second)
		began := time.Now()
		kept[0].Release()
		wg.Wait()
		if took := time.Since(began); took > 13*time.Millisecond {
			t.Errorf("it has the slot after %v", took)
		}
		time.Sleep(time.Second)
		before := r.store.Exchanges()
		time.Sleep(20 * time.Second)
		if n := r.store.Exchanges() - before; n > 5 {
			t.Errorf("%d exchanges in 20 s in which nothing happens", n)
		}
	})
}

// TestOneGateTellsTheOthers: as one gate hears from the store again, all of its process
// ask at once.
func TestOneGateTellsTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.terms.WhenAway = cluster.Closed
		in := r.join()
		gates := []*forebay.Gate{in.gate}
		for i := range 10 {
			g, err := forebay.New(forebay.Config{Name: fmt.Sprint("g", i), MaxInFlight: 1, Cluster: in.cluster})
			if err != nil {
				t.Fatal(err)
			}
			gates = append(gates, g)
		}
		time.Sleep(time.Second)
		in.path.SetFaults(forebaytest.Faults{Err: errAway})
		time.Sleep(time.Minute)
		in.path.SetFaults(forebaytest.Faults{})
		normal := func() (n int) {
			for _, g := range gates {
				if st, _ := g.ClusterStats(); st.Mode == "normal" {
					n++
				}
			}
			return n
		}
		until(time.Second, func() bool { return normal() > 0 })
		synctest.Wait()
		if n := normal(); n != len(gates) {
			t.Errorf("%d of %d gates have heard", n, len(gates))
		}
	})
}
