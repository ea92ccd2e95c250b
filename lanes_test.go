package forebay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var twoLanes = []Lane{{Name: "orders", Rank: 1, Reserved: 1}, {Name: "reports", Rank: 2}}

// takeIn returns a lease that the gate must give at once in that lane.
func takeIn(t testing.TB, g *Gate, lane string) Lease {
	t.Helper()
	l, ok := g.TryAcquire(Call{Lane: lane})
	if !ok {
		t.Fatalf("gate %q gave %q no lease: %s", g.Name(), lane, state(t, g))
	}
	return l
}

func lanesOf(g *Gate) string {
	var words []string
	for _, l := range g.Stats().Lanes {
		words = append(words, l.Name+strings.Repeat("x", l.InUse)+strings.Repeat(".", l.Waiting))
	}
	return strings.Join(words, " ")
}

func TestLanesByRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 3, MaxWait: time.Second, MaxWaiting: 3, Lanes: twoLanes})
		none, reports := takeIn(t, g, "elsewhere"), takeIn(t, g, "reports")
		if _, ok := g.TryAcquire(Call{Lane: "reports"}); ok {
			t.Error("reports got what is kept for orders")
		}
		orders := takeIn(t, g, "orders")
		n := queued(t, context.Background(), g, Call{})
		r := queued(t, context.Background(), g, Call{Lane: "reports"})
		o := queued(t, context.Background(), g, Call{Lane: "orders"})
		if got := lanesOf(g); got != "ordersx. reportsx. x." {
			t.Errorf("lanes: %s", got)
		}
		again := queued(t, context.Background(), g, Call{Lane: "orders", Again: true})
		n.refused(t, RejectedShed, 0) // the retry comes in as a report, which is above none
		none.Release()
		o.granted(t, 0)
		reports.Release()
		r.granted(t, 0)
		orders.Release()
		again.granted(t, 0)
		for _, l := range []Lease{o.lease, r.lease, again.lease} {
			l.Release()
		}
	})
}

func TestEventsNameTheLane(t *testing.T) {
	var seen []string
	g := gateOf(t, Config{MaxInFlight: 2, Lanes: twoLanes, Track: true, Observers: []Observer{ObserverFunc(func(e Event) {
		seen = append(seen, e.Kind.String()+" "+e.Decision.String()+" "+e.Lane)
	})}})
	l := takeIn(t, g, "orders")
	if h := g.Holders(); len(h) != 1 || h[0].Lane != "orders" {
		t.Errorf("holders: %+v", h)
	}
	l.Release()
	takeIn(t, g, "unheard of").Release()
	want := "decided accepted orders,released undecided orders,decided accepted ,released undecided "
	if got := strings.Join(seen, ","); got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A route says in which lane its requests come; another reading of the path that brings
// a request to another route's gates takes its lane away.
func TestRoutesHaveLanes(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 9, Lanes: twoLanes})
	other := gateOf(t, Config{Name: "other", MaxInFlight: 9, Lanes: twoLanes[1:]})
	gs, err := NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/orders/", Gates: []*Gate{g}, Lane: "orders"},
		{Match: "/both/", Gates: []*Gate{g, other}, Lane: "orders"},
		{Match: "/reports/", Gates: []*Gate{other}, Lane: "reports"},
		{Match: "/", Gates: []*Gate{g}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/orders/1": "orders", "/both/1": "orders", "/": "", "/reports/../orders/1": "", "/orders/../reports/1": "", "/x/../orders/1": "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		if p := gs.Lookup(r); p.Lane != want {
			t.Errorf("%s has the lane %q, want %q", path, p.Lane, want)
		}
	}
	seen := ""
	h := gs.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = lanesOf(g) + "|" + lanesOf(other) }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/both/1", nil))
	if seen != "ordersx reports |reports x" {
		t.Errorf("while it runs: %s", seen)
	}

	_, err = NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/a", Gates: []*Gate{other}, Lane: "orders"},
		{Match: "/b", Exempt: true, Lane: "orders"},
	}})
	for _, want := range []string{`none of its gates has the lane "orders"`, "it is exempt and has a lane"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewGroups: %v; want %s", err, want)
		}
	}
}

// A route says what its requests take; another reading of a path cannot make it less.
func TestRoutesHaveCosts(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 9})
	gs, err := NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/export/", Gates: []*Gate{g}, Cost: 4},
		{Match: "/", Gates: []*Gate{g}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/export/1": 4, "/": 1, "/x/../export/1": 4, "/export/../x": 4} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		if p := gs.Lookup(r); p.Cost != want {
			t.Errorf("%s costs %d, want %d", path, p.Cost, want)
		}
	}
	seen := 0
	h := gs.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = g.Stats().InUse }))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/export/1", nil))
	if seen != 4 || g.Stats().InUse != 0 {
		t.Errorf("%d units run meanwhile, %d after", seen, g.Stats().InUse)
	}
	_, err = NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/a", Gates: []*Gate{g}, Cost: -1}, {Match: "/b", Exempt: true, Cost: 2},
	}})
	for _, want := range []string{"its cost is -1; it must be 0 (meaning 1) to 1048575", "it is exempt and has a cost"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewGroups: %v; want %s", err, want)
		}
	}
}

// Who is sent out of the line for somebody else is told to come again.
func TestShedIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{Name: "db", MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 1, Lanes: []Lane{{Name: "top", Rank: 1}}})
		l := takeIn(t, g, "")
		low := queued(t, context.Background(), g, Call{})
		queued(t, context.Background(), g, Call{Lane: "top"})
		low.refused(t, RejectedShed, 0)
		w := httptest.NewRecorder()
		Refuse(w, httptest.NewRequest("GET", "/", nil), low.err)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"reason":"rejected_shed"`) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
		if !errors.Is(low.err, ErrRejected) || !RejectedShed.Refused() {
			t.Error("it is no refusal")
		}
		l.Release()
	})
}

// A caller's crowd keeps nobody else out of the line.
func TestFairLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 2, PerCaller: PerCaller{Fair: true}})
		l := takeAs(t, g, "crowd")
		first := queued(t, context.Background(), g, Call{Caller: "crowd"})
		second := queued(t, context.Background(), g, Call{Caller: "crowd"})
		light := queued(t, context.Background(), g, Call{Caller: "light"})
		second.refused(t, RejectedCaller, 0)
		if again := attemptAt(context.Background(), g, Call{Caller: "crowd"}); true {
			again.refused(t, RejectedBusy, 0)
		}
		l.Release()
		first.granted(t, 0)
		first.lease.Release()
		light.granted(t, 0)
		light.lease.Release()
		shows(t, g, "0/1, accepted 3, busy 1, capped 1")
	})
}

// Lanes come and go while calls run and wait.
func TestReconfigureLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{MaxInFlight: 2, MaxWait: time.Second, MaxWaiting: 4, Lanes: []Lane{{Name: "a", Rank: 1}, {Name: "b", Rank: 2}}}
		g := gateOf(t, c)
		a, b := takeIn(t, g, "a"), takeIn(t, g, "b")
		wait := queued(t, context.Background(), g, Call{Lane: "b"})
		c.Lanes = []Lane{{Name: "c", Rank: 1}, {Name: "a", Rank: 2}}
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		if got := lanesOf(g); got != "c ax x." {
			t.Errorf("lanes: %s", got)
		}
		b.Release()
		wait.granted(t, 0)
		c.Lanes = nil
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		if g.Stats().Lanes != nil {
			t.Errorf("lanes: %s", lanesOf(g))
		}
		a.Release()
		wait.lease.Release()
		shows(t, g, "0/2, accepted 3")
		if l := take(t, g, 1); !l.Live() {
			t.Error("it gives nothing")
		} else {
			l.Release()
		}
	})
}

func TestLanesAreChecked(t *testing.T) {
	_, err := New(Config{MaxInFlight: 4, Lanes: []Lane{
		{Name: "", Rank: 1}, {Name: "a", Rank: 0}, {Name: "a", Rank: 2, Reserved: -1}, {Name: "c", Rank: 1, Reserved: 4},
		{Name: "g", Rank: 1, Reserved: 3, MaxShare: .5}, {Name: "d", Rank: 1, Share: .7, MaxShare: .5}, {Name: "e", Rank: 1, Share: 1.5}, {Name: "f", Rank: 1001, MaxShare: -1},
	}})
	for _, want := range []string{
		`Lanes[0].Name is ""; it must be 1 to 64 letters`, `Lanes[1] ("a"): Rank is 0; it must be 1 (goes first) to 1000`,
		`Lanes[2] ("a") is there twice`, `Reserved is -1`, "Reserved is 3, more than its MaxShare of 0.5 lets it use of 4", "Lanes reserve 7 units of 4; at least one must be left",
		"MaxShare is 0.5, below its Share of 0.7", "Share is 1.5; it must be 0 (none) to 1", "Rank is 1001", "MaxShare is -1",
		"Lanes have shares of 2.2; together they must be at most 1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: no %q in\n%v", want, err)
		}
	}
	if _, err := New(Config{MaxInFlight: 4, Lanes: make([]Lane, 16)}); err == nil || !strings.Contains(err.Error(), "there are 16 Lanes; at most 15") {
		t.Errorf("New: %v", err)
	}
}

// A gate with lanes and fair callers allocates nothing for a call that need not wait.
func TestLanesAllocateNothing(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 4, Lanes: twoLanes, PerCaller: PerCaller{Fair: true}, Track: true})
	call := Call{Lane: "orders", Caller: "a"}
	if n := testing.AllocsPerRun(100, func() { l, _ := g.TryAcquire(call); l.Release() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
