package forebay

import (
	"context"
	"sync"
	"testing"
	"time"
)

func TestZeroLeaseDoesNothing(t *testing.T) {
	var l Lease
	l.Release()
	l.ReleaseAs(OutcomeOverloaded)
	if l.Live() || l.Gate() != nil {
		t.Errorf("live %v, gate %v", l.Live(), l.Gate())
	}
	if ctx := context.Background(); WithLease(ctx, l) != ctx {
		t.Error("a context carries the zero lease")
	}
}

// gatesOfEachKind are gates of each kind of bookkeeping: bare and lent, bare and counted by the
// machine, tracked, observed, and with the lock for every call.
func gatesOfEachKind(t testing.TB) map[string]*Gate {
	counted := gateOf(t, Config{Name: "counted", MaxInFlight: 3})
	counted.lock() // takes its room back; only an admitted call lends it again
	counted.unlock()
	return map[string]*Gate{
		"lent":      gateOf(t, Config{Name: "lent", MaxInFlight: 3}),
		"counted":   counted,
		"tracked":   gateOf(t, Config{Name: "tracked", MaxInFlight: 3, Track: true}),
		"observed":  gateOf(t, Config{Name: "observed", MaxInFlight: 3, Observers: []Observer{&decisionsSeen{}}}),
		"limited":   gateOf(t, Config{Name: "limited", MaxInFlight: 3, Limiter: &scriptedLimiter{limit: 3}}),
		"watched":   gateOf(t, Config{Name: "watched", MaxInFlight: 3, MaxHold: time.Hour}),
		"with line": gateOf(t, Config{Name: "line", MaxInFlight: 3, MaxWait: time.Hour}),
	}
}

func TestReleaseCountsOnce(t *testing.T) {
	for name, g := range gatesOfEachKind(t) {
		for _, cost := range []int{1, 2} {
			stale := g.Stats().StaleReleases
			l := take(t, g, cost)
			other := l
			if !l.Live() || !other.Live() || l != other || l.Gate() != g {
				t.Errorf("%s: a copy is not the same lease", name)
			}
			done := make(chan bool)
			go func() { // another goroutine, another copy
				other.Release()
				close(done)
			}()
			<-done
			if l.Live() || other.Live() {
				t.Errorf("%s: live after its release", name)
			}
			l.Release()
			l.ReleaseAs(OutcomeIgnored)
			if st := g.Stats(); st.StaleReleases != stale+2 || st.InUse != 0 || st.Granted != st.Released {
				t.Errorf("%s, cost %d: %+v", name, cost, st)
			}
		}
		admitsFullSet(t, g)
	}
}

// A lease of long ago gives nobody else's slot back.
func TestStaleGenerationTouchesNobody(t *testing.T) {
	for name, g := range gatesOfEachKind(t) {
		if lim, ok := g.Config().Limiter.(*scriptedLimiter); ok {
			lim.limit = 1
		}
		must(g.SetLimit(1))
		var old []Lease
		for range 1000 {
			l := take(t, g, 1)
			old = append(old, l)
			l.Release()
		}
		now := take(t, g, 1)
		for _, l := range old {
			if l.Live() {
				t.Fatalf("%s: an old lease is live", name)
			}
			l.Release()
		}
		if st := g.Stats(); !now.Live() || st.InUse != 1 || st.Calls != 1 || st.StaleReleases != 1000 {
			t.Errorf("%s: live %v, %+v", name, now.Live(), st)
		}
		if _, ok := g.TryAcquire(Call{}); ok {
			t.Errorf("%s: a stale release made room", name)
		}
		now.Release()
		admitsFullSet(t, g)
	}
}

func TestReleaseAfterDrainAndReconfigure(t *testing.T) {
	for name, g := range gatesOfEachKind(t) {
		l, early := take(t, g, 1), take(t, g, 2)
		early.Release()
		if err := g.Drain(ended()); err == nil {
			t.Errorf("%s: drained with a lease out", name)
		}
		early.Release()
		l.Release()
		l.Release()
		if err := g.Drain(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		g.Resume()
		c := g.Config()
		l = take(t, g, 1)
		c.MaxInFlight = 5
		must(g.Reconfigure(c))
		l.Release()
		l.Release()
		if st := g.Stats(); st.InUse != 0 || st.StaleReleases != 3 || st.Granted != st.Released {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// Eight goroutines give the same lease back; it comes back once.
func TestConcurrentReleasesCountOnce(t *testing.T) {
	loops := 10_000
	if testing.Short() {
		loops = 1000
	}
	for name, g := range gatesOfEachKind(t) {
		if name == "observed" {
			continue // its observer keeps every event
		}
		if name == "limited" {
			must(g.Reconfigure(Config{MaxInFlight: 3})) // so does this limiter
			name = "no longer limited"
		}
		leases := make([]chan Lease, 8)
		var round, workers sync.WaitGroup
		for i := range leases {
			leases[i] = make(chan Lease, 1)
			workers.Go(func() {
				for l := range leases[i] {
					l.Release()
					round.Done()
				}
			})
		}
		for range loops / 5 {
			l := take(t, g, 1)
			round.Add(len(leases))
			for _, c := range leases {
				c <- l
			}
			round.Wait()
			if l.Live() {
				t.Fatalf("%s: live after eight releases", name)
			}
		}
		for _, c := range leases {
			close(c)
		}
		workers.Wait()
		if st := g.Stats(); st.StaleReleases != uint64(loops/5*7) || st.Granted != st.Released || st.InUse != 0 {
			t.Errorf("%s: %+v", name, st)
		}
		admitsFullSet(t, g)
	}
}

// A second release from within the first one's event does nothing either.
func TestReleaseWithinARelease(t *testing.T) {
	var l Lease
	again := ObserverFunc(func(e Event) {
		if e.Kind == EventReleased {
			l.Release()
		}
	})
	a := gateOf(t, Config{Name: "a", MaxInFlight: 1, Track: true})
	b := gateOf(t, Config{Name: "b", MaxInFlight: 1, Observers: []Observer{again}})
	chain, err := NewChain(a, b)
	must(err)
	l, err = chain.Acquire(context.Background(), Call{})
	must(err)
	done := make(chan bool)
	go func() {
		l.Release()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("Release hangs")
	}
	admitsFullSet(t, a)
}

// A release says how its call ended, and a limiter hears it.
func TestReleaseAsReachesTheLimiter(t *testing.T) {
	lim := &scriptedLimiter{limit: 2}
	g := gateOf(t, Config{MaxInFlight: 2, Limiter: lim})
	for o := OutcomeDone; o <= OutcomeAborted; o++ {
		l := take(t, g, 1)
		lim.seen = nil
		l.ReleaseAs(o)
		l.ReleaseAs(OutcomeOverloaded) // does nothing
		if len(lim.seen) != 1 {
			t.Errorf("%v: observed %q, want one finish", o, lim.seen)
		}
	}
}
