package forebay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What others read by name.
func TestStatsAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "reports", MaxInFlight: 3, MaxWait: time.Second, Track: true})
		l := take(t, g, 2)
		text, err := json.Marshal(g.Stats())
		must(err)
		var got map[string]any
		must(json.Unmarshal(text, &got))
		for field, want := range map[string]any{
			"name": "reports", "capacity": 3.0, "available": 1.0, "in_use": 2.0, "calls": 1.0, "waiting": 0.0,
			"max_waiting": 6.0, "draining": false, "accepted": 1.0, "rejected_busy": 0.0, "rejected_timeout": 0.0,
			"rejected_deadline": 0.0, "rejected_caller": 0.0, "callers": 0.0, "callers_beyond": 0.0, "rejected_too_large": 0.0, "rejected_draining": 0.0, "canceled": 0.0, "rejected_store": 0.0,
			"granted": 1.0, "released": 0.0, "stale_releases": 0.0, "overdue": 0.0, "observer_panics": 0.0, "script_errors": 0.0,
		} {
			if got[field] != want {
				t.Errorf("%s is %v, want %v", field, got[field], want)
			}
		}
		if got["oldest_holder"] == nil {
			t.Error("no oldest_holder")
		}
		l.Release()
		text, err = json.Marshal(g.Stats())
		must(err)
		if strings.Contains(string(text), "oldest_holder") {
			t.Errorf("an oldest holder of an empty gate: %s", text)
		}
	})
}

// Conservation at every look, while calls come and go, lent or not.
func TestStatsAddUpAtEveryLook(t *testing.T) {
	for name, c := range map[string]Config{
		"lent":    {MaxInFlight: 8},
		"tracked": {MaxInFlight: 8, Track: true, MaxWait: time.Millisecond},
		"line":    {MaxInFlight: 2, MaxWait: time.Millisecond, MaxWaiting: 3},
	} {
		g := gateOf(t, c)
		var asked, answered atomic.Uint64
		var callers sync.WaitGroup
		for i := range 6 {
			callers.Go(func() {
				for range 1000 {
					asked.Add(1)
					l, err := g.Acquire(context.Background(), Call{Cost: 1 + i%2})
					answered.Add(1)
					if err == nil {
						l.Release()
					}
				}
			})
		}
		done := make(chan bool)
		go func() {
			callers.Wait()
			close(done)
		}()
		for looking := true; looking; {
			select {
			case <-done:
				looking = false
			default:
			}
			before := answered.Load()
			st := g.Stats()
			after := asked.Load()
			total := st.Decisions() + uint64(st.Waiting)
			if st.Granted != st.Released+uint64(st.Calls) || st.Available < 0 || st.InUse > st.Capacity || st.InUse < st.Calls ||
				st.Accepted != st.Granted || total < before || total > after {
				t.Fatalf("%s: between %d and %d calls: %+v", name, before, after, st)
			}
		}
		if st := g.Stats(); st.Decisions() != 6000 || st.InUse != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

func TestHoldersAreSortedByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 40, MaxWait: time.Second, Track: true})
		var leases []Lease
		for _, id := range []string{"a", "b", "c", "d"} {
			l, err := g.Acquire(context.Background(), Call{RequestID: id, Route: "/" + id, RemoteIP: "192.0.2.7", Cost: 2})
			must(err)
			leases = append(leases, l)
			time.Sleep(10 * time.Millisecond)
		}
		leases[1].Release()
		rest := take(t, g, 34)
		e := queued(t, context.Background(), g, Call{RequestID: "e"})
		time.Sleep(5 * time.Millisecond)
		leases[0].Release()
		e.granted(t, 5*time.Millisecond)
		ids := func() (ids []string) {
			for _, h := range g.Holders() {
				ids = append(ids, h.RequestID)
			}
			return ids
		}
		if got, want := ids(), []string{"c", "d", "", "e"}; !slices.Equal(got, want) {
			t.Errorf("holders %q, want %q", got, want)
		}
		h := g.Holders()[0]
		if h.Route != "/c" || h.RemoteIP != "192.0.2.7" || h.Cost != 2 || h.Held != 25*time.Millisecond || h.Waited != 0 || h.Overdue {
			t.Errorf("holder %+v", h)
		}
		if last := g.Holders()[3]; last.Waited != 5*time.Millisecond || last.Held != 0 || last.Since.Sub(h.Since) != 25*time.Millisecond {
			t.Errorf("holder %+v", last)
		}
		if old := g.Stats().OldestHolder; old == nil || *old != h {
			t.Errorf("oldest holder %+v, want %+v", old, h)
		}
		for _, l := range append(leases, rest, e.lease) {
			l.Release()
		}
		if n := len(g.Holders()); n != 0 {
			t.Errorf("%d holders of an empty gate", n)
		}
	})
}

func TestHoldersWithoutTrack(t *testing.T) {
	for _, c := range []Config{{MaxInFlight: 2}, {MaxInFlight: 2, Observers: []Observer{&eventLog{}}}} {
		g := gateOf(t, c)
		l, wide := take(t, g, 1), take(t, g, 1)
		if len(g.Holders()) != 0 || g.Stats().OldestHolder != nil {
			t.Error("a gate that does not track knows its holders")
		}
		l.Release()
		wide.Release()
	}
}

// Whoever looks at the holders meets calls that come and go, and tables that do.
func TestHoldersUnderLoad(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 200, Track: true})
	var looker sync.WaitGroup
	var stop atomic.Bool
	looker.Go(func() {
		for !stop.Load() {
			for _, h := range g.Holders() {
				if h.RequestID != "x" || h.Cost != 1 {
					t.Errorf("holder %+v", h)
				}
			}
		}
	})
	for range 30 {
		var leases []Lease
		for range 100 {
			l, err := g.Acquire(context.Background(), Call{RequestID: "x"})
			must(err)
			leases = append(leases, l)
		}
		for _, l := range leases {
			l.Release()
		}
		must(g.SetLimit(200)) // takes the room back, and drops what tables are empty
	}
	stop.Store(true)
	looker.Wait()
	shows(t, g, "0/200, accepted 3000")
}
