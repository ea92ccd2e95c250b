package forebay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/feed"
)

// source is a feed.Source that does what a test tells it.
type source struct {
	gate  feed.Gate
	pokes int
	limit int
	stats feed.Stats
}

func (s *source) Attach(g feed.Gate) (feed.Supplier, error) { s.gate = g; return s, nil }
func (s *source) Poke()                                     { s.pokes++ }
func (s *source) SetLimit(n int, _ time.Duration)           { s.limit = n }
func (s *source) Configured(n int)                          { s.limit = n }
func (s *source) Stats() feed.Stats                         { return s.stats }

func TestClusteredGateUsesWhatItIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		g, err := New(Config{Name: "g", MaxInFlight: 4, MaxWait: time.Second, Cluster: s})
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan Lease)
		go func() {
			l, err := g.Acquire(context.Background(), Call{})
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		if v := s.gate.Look(0, 10); v.Waiting != 1 || len(v.Arrived) != 1 || v.Arrived[0] != (feed.Run{First: 1, Calls: 1, Cost: 1}) || s.pokes != 1 {
			t.Fatalf("%+v after %d pokes", v, s.pokes)
		}
		s.gate.Renew(time.Now().Add(time.Second))
		s.gate.Lend(1, nil)
		l := <-got
		ctx, stop := l.Context(context.Background())
		defer stop()
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		s.gate.Lapse()
		if context.Cause(ctx) != ErrLeaseLost {
			t.Fatal(context.Cause(ctx))
		}
		s.gate.Alone(feed.Alone{Slots: 2})
		other, ok := g.TryAcquire(Call{})
		if !ok {
			t.Fatal("refused")
		}
		other.Release()
		l.Release()
		if st := g.Stats(); st.InUse != 0 || st.Granted != 2 {
			t.Errorf("%+v", st)
		}
	})
}

// TestHealthOfAGateAlone: a gate whose cluster's store is away is degraded, and says
// why, for as long as that lasts.
func TestHealthOfAGateAlone(t *testing.T) {
	src := &source{}
	g := gateOf(t, Config{Name: "reports", MaxInFlight: 4, Cluster: src})
	h := NewHealth(g)
	for _, away := range []bool{false, true, false} {
		if away {
			src.gate.Alone(feed.Alone{Slots: 2})
		} else {
			src.gate.Together()
		}
		rep := h.Report()
		if got := rep.Status == healthDegraded; got != away || rep.Gates[0].Status != rep.Status || (rep.Gates[0].Why != "") != away {
			t.Errorf("with the store away = %v: %+v", away, rep)
		}
	}
}
