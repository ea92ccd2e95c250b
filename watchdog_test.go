package forebay

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// overdue words the reports of overdue leases since the last look.
func (l *eventLog) overdue() (words []string) {
	for _, e := range l.take() {
		if e.Kind == EventOverdue {
			words = append(words, e.RequestID+" "+e.Held.String())
		}
	}
	return words
}

func acquireAs(t testing.TB, g *Gate, id string) Lease {
	t.Helper()
	l, err := g.Acquire(context.Background(), Call{RequestID: id, Route: "/" + id})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Each lease is reported once, when it has been held for exactly MaxHold, and keeps
// its slot.
func TestWatchdogReportsEachLeaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventLog{}
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 3, MaxHold: time.Minute, Observers: []Observer{log}})
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := log.overdue(); !slices.Equal(got, want) {
				t.Errorf("overdue %q, want %q", got, want)
			}
		}
		a := acquireAs(t, g, "a")
		time.Sleep(500 * time.Millisecond)
		b := acquireAs(t, g, "b")
		c := acquireAs(t, g, "c")
		expect(59*time.Second + 500*time.Millisecond - 1)
		expect(1, "a 1m0s")
		if h := g.Holders(); len(h) != 3 || !h[0].Overdue || h[1].Overdue {
			t.Errorf("holders %+v", h)
		}
		c.Release()
		expect(500*time.Millisecond - 1)
		expect(1, "b 1m0s")
		expect(time.Hour)
		if _, ok := g.TryAcquire(Call{Cost: 2}); ok {
			t.Error("the slot of an overdue lease was given away")
		}
		shows(t, g, "2/3, accepted 3, busy 1")
		a.Release()
		d := acquireAs(t, g, "d") // it is watched again
		expect(time.Minute, "d 1m0s")
		if st := g.Stats(); st.Overdue != 3 {
			t.Errorf("%d overdue, want 3", st.Overdue)
		}
		b.Release()
		d.Release()
		if g.watch.set != nil {
			t.Error("the watch goes on though nobody holds a lease")
		}
	})
}

func TestWatchdogEventSaysWhoHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventLog{}
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 3, MaxWait: time.Hour, MaxHold: time.Minute, Observers: []Observer{log}})
		l, err := g.Acquire(context.Background(), Call{Route: "/reports", RequestID: "7", RemoteIP: "192.0.2.7", Cost: 3})
		must(err)
		waits := queued(t, context.Background(), g, Call{})
		log.take()
		time.Sleep(time.Minute)
		synctest.Wait()
		want := Event{
			Kind: EventOverdue, Gate: "reports", Route: "/reports", RequestID: "7", RemoteIP: "192.0.2.7",
			Cost: 3, Held: time.Minute, InFlight: 3, Waiting: 1, Limit: 3,
		}
		if got := log.take(); len(got) != 1 || got[0] != want {
			t.Errorf("events %+v, want %+v", got, want)
		}
		l.Release()
		waits.granted(t, time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := g.Stats().Overdue; got != 2 {
			t.Errorf("%d overdue, want who has waited as well", got)
		}
		waits.lease.Release()
	})
}

// Held for less than MaxHold: no report, however long the gate is in use.
func TestWatchdogLeavesShortLeasesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 2, MaxHold: time.Minute})
		for range 100 {
			l, m := take(t, g, 1), take(t, g, 1)
			time.Sleep(40 * time.Second)
			m.Release()
			m = take(t, g, 1)
			time.Sleep(20*time.Second - 1)
			l.Release()
			m.Release()
		}
		time.Sleep(time.Hour)
		if st := g.Stats(); st.Overdue != 0 || g.watch.set != nil {
			t.Errorf("%d overdue, watch %v", st.Overdue, g.watch.set)
		}
	})
}

// A lease that begins as the watchdog looks is not overlooked.
func TestLeaseBeginsAsTheWatchdogLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 300, MaxHold: time.Minute})
		for i := range 300 {
			old := take(t, g, 1)
			time.AfterFunc(time.Minute, old.Release)
			time.Sleep(time.Minute)
			before := g.overdue.Load()
			l := take(t, g, 1)
			synctest.Wait()
			reported := g.overdue.Load() - before // old may have been
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := g.overdue.Load() - before - reported; n != 1 {
				t.Fatalf("round %d: %d reports, want one", i, n)
			}
			l.Release()
		}
	})
}

// MaxHold may come, change and go while leases are out.
func TestWatchdogIsReconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 9, MaxHold: time.Hour})
		l := take(t, g, 1)
		must(g.Reconfigure(Config{MaxInFlight: 9, MaxHold: time.Minute}))
		m := take(t, g, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := g.Stats().Overdue; n != 2 {
			t.Errorf("%d overdue after a minute, want both", n)
		}
		must(g.Reconfigure(Config{MaxInFlight: 9}))
		n := take(t, g, 1)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := g.Stats().Overdue; n != 2 {
			t.Errorf("%d overdue without a MaxHold, want no more than before", n)
		}
		for _, l := range []Lease{l, m, n} {
			l.Release()
		}
		admitsFullSet(t, g)
	})
}

// The watchdog looks at leases under the gate's lock while others give theirs back.
func TestWatchdogAndReleasesDoNotBlockEachOther(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 64, MaxHold: 2 * time.Microsecond})
	rounds := 5000
	if testing.Short() {
		rounds = 1000
	}
	done := make(chan bool)
	go func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range rounds {
					if l, err := g.Acquire(context.Background(), Call{}); err == nil {
						l.Release()
					}
				}
			})
		}
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the watchdog and a release wait for each other")
	}
	if st := g.Stats(); st.InUse != 0 || st.Granted != st.Released {
		t.Errorf("%+v", st)
	}
}
