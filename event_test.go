package forebay

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One call, one decision, with the figures of its instant; and its release.
func TestEventsOfEachDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &eventLog{}
		g := gateOf(t, Config{
			Name: "reports", MaxInFlight: 4, MaxWait: 100 * time.Millisecond, MaxWaiting: 2,
			Track: true, Observers: []Observer{log},
		})
		call := Call{Route: "/reports", RequestID: "4bf92f35", RemoteIP: "192.0.2.7", Cost: 2}
		decided := func(d Decision, waited time.Duration, inFlight, waiting int) Event {
			return Event{
				Kind: EventDecided, Gate: "reports", Route: "/reports", RequestID: "4bf92f35", RemoteIP: "192.0.2.7",
				Decision: d, Cost: 2, Waited: waited, InFlight: inFlight, Waiting: waiting, Limit: 4,
			}
		}
		released := func(o Outcome, waited, held time.Duration, inFlight, waiting int) Event {
			e := decided(Undecided, waited, inFlight, waiting)
			e.Kind, e.Outcome, e.Held = EventReleased, o, held
			return e
		}
		saw := func(want ...Event) {
			t.Helper()
			synctest.Wait()
			got := log.take()
			if len(got) != len(want) {
				t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("event\n%+v\nwant\n%+v", got[i], want[i])
				}
			}
		}
		a := attemptAt(context.Background(), g, call)
		a.granted(t, 0)
		saw(decided(Accepted, 0, 2, 0))
		b := attemptAt(context.Background(), g, call)
		b.granted(t, 0)
		saw(decided(Accepted, 0, 4, 0))
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		defer cancel()
		late := queued(t, ctx, g, call)
		slow := queued(t, context.Background(), g, call)
		saw() // who waits is not decided
		attemptAt(context.Background(), g, call).refused(t, RejectedBusy, 0)
		saw(decided(RejectedBusy, 0, 4, 2))
		time.Sleep(30 * time.Millisecond)
		late.refused(t, RejectedDeadline, 30*time.Millisecond)
		saw(decided(RejectedDeadline, 30*time.Millisecond, 4, 1))
		left, leave := context.WithCancel(context.Background())
		gone := queued(t, left, g, call)
		time.Sleep(10 * time.Millisecond)
		leave()
		gone.refused(t, Canceled, 10*time.Millisecond)
		saw(decided(Canceled, 10*time.Millisecond, 4, 1))
		attemptAt(ended(), g, call).refused(t, Canceled, 0)
		saw(decided(Canceled, 0, 4, 1))
		time.Sleep(60 * time.Millisecond)
		slow.refused(t, RejectedTimeout, 100*time.Millisecond)
		saw(decided(RejectedTimeout, 100*time.Millisecond, 4, 0))
		served := queued(t, context.Background(), g, call)
		time.Sleep(20 * time.Millisecond)
		a.lease.ReleaseAs(OutcomeIgnored)
		a.lease.Release() // no event
		served.granted(t, 20*time.Millisecond)
		saw(released(OutcomeIgnored, 0, 120*time.Millisecond, 4, 0), decided(Accepted, 20*time.Millisecond, 4, 0))
		wide := call
		wide.Cost = 5
		attemptAt(context.Background(), g, wide).refused(t, RejectedTooLarge, 0)
		large := decided(RejectedTooLarge, 0, 4, 0)
		large.Cost = 5
		saw(large)
		d := drainAt(context.Background(), g)
		attemptAt(context.Background(), g, call).refused(t, RejectedDraining, 0)
		saw(decided(RejectedDraining, 0, 4, 0))
		time.Sleep(time.Millisecond)
		served.lease.Release()
		saw(released(OutcomeDone, 20*time.Millisecond, time.Millisecond, 2, 0))
		b.lease.ReleaseAs(OutcomeAborted)
		saw(released(OutcomeAborted, 0, 121*time.Millisecond, 0, 0))
		d.returns(t, "", time.Millisecond)
	})
}

// An observer may ask and change whatever it likes: no lock is held around it.
func TestObserverMayUseTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *Gate
		other := gateOf(t, Config{Name: "other", MaxInFlight: 1})
		var seen atomic.Int64
		observer := ObserverFunc(func(e Event) {
			n := seen.Add(1)
			if n > 10 {
				return
			}
			g.Stats()
			g.Holders()
			must(g.SetLimit(1 + int(n%2)))
			must(g.Reconfigure(g.Config()))
			if l, err := other.Acquire(context.Background(), Call{}); err == nil {
				l.Release()
			}
			if l, ok := g.TryAcquire(Call{}); ok { // which is an event as well
				l.Release()
			}
		})
		g = gateOf(t, Config{MaxInFlight: 2, MaxWait: time.Second, MaxHold: time.Minute, Observers: []Observer{observer}})
		l, err := g.Acquire(context.Background(), Call{})
		must(err)
		time.Sleep(2 * time.Minute) // overdue
		l.Release()
		if n := seen.Load(); n <= 10 {
			t.Errorf("%d events", n)
		}
		if st := g.Stats(); st.InUse != 0 || st.ObserverPanics != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// An observer that does not return holds up its own call, and nobody else.
func TestSlowObserverDoesNotStallTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := make(chan bool)
		g := gateOf(t, Config{MaxInFlight: 2, Observers: []Observer{ObserverFunc(func(e Event) {
			if e.Route == "/slow" {
				<-stall
			}
		})}})
		slow := queued(t, context.Background(), g, Call{Route: "/slow"})
		for range 100 {
			take(t, g, 1).Release()
		}
		shows(t, g, "1/2, accepted 101")
		stall <- true
		slow.granted(t, 0)
		go slow.lease.Release()
		synctest.Wait()
		shows(t, g, "0/2, accepted 101") // before its observer has returned
		stall <- true
	})
}

func TestPanicOfAnObserverIsContained(t *testing.T) {
	log := &eventLog{}
	bad := ObserverFunc(func(Event) { panic("broken") })
	g := gateOf(t, Config{MaxInFlight: 1, Observers: []Observer{bad, log, bad}})
	l := take(t, g, 1)
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("admitted above the limit")
	}
	l.Release()
	if n := len(log.take()); n != 3 {
		t.Errorf("%d events reached the other observer, want 3", n)
	}
	if st := g.Stats(); st.ObserverPanics != 6 || st.InUse != 0 {
		t.Errorf("%+v, want 6 panics contained", st)
	}
	admitsFullSet(t, g)
}

// Under load as well each call has one decision and each lease one release.
func TestEventsAddUpUnderLoad(t *testing.T) {
	var seen Recorder
	g := gateOf(t, Config{MaxInFlight: 2, MaxWait: 50 * time.Microsecond, Observers: []Observer{&seen}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if l, err := g.Acquire(context.Background(), Call{}); err == nil {
					l.Release()
					l.Release()
				}
			}
		})
	}
	wg.Wait()
	st := g.Stats()
	if seen.decisions.Load() != 4000 || st.Decisions() != 4000 || seen.releases.Load() != st.Accepted {
		t.Errorf("%d decisions and %d releases seen: %+v", seen.decisions.Load(), seen.releases.Load(), st)
	}
}

func TestKindsAndDecisionsHaveNames(t *testing.T) {
	for k, want := range map[EventKind]string{EventDecided: "decided", EventReleased: "released", EventOverdue: "overdue", 9: "unknown"} {
		if k.String() != want {
			t.Errorf("kind %d is %q, want %q", k, k, want)
		}
	}
	for d, want := range map[Decision]struct {
		name    string
		status  int
		refused bool
	}{
		Undecided: {"undecided", 200, false}, Accepted: {"accepted", 200, false}, Exempted: {"exempt", 200, false},
		RejectedBusy: {"rejected_busy", 503, true}, RejectedTimeout: {"rejected_timeout", 503, true},
		RejectedDeadline: {"rejected_deadline", 503, true}, RejectedTooLarge: {"rejected_too_large", 413, true},
		RejectedDraining: {"rejected_draining", 503, true}, RejectedStore: {"rejected_store", 503, true},
		Canceled: {"canceled", 499, false}, 99: {"unknown", 503, false},
	} {
		if d.String() != want.name || d.Status() != want.status || d.Refused() != want.refused {
			t.Errorf("decision %d: %q, %d, refused %v; want %v", d, d, d.Status(), d.Refused(), want)
		}
	}
}
