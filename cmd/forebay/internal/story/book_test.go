package story

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// refusal is an event of a refused call.
func refusal(gate, id string) forebay.Event {
	return forebay.Event{
		Gate: gate, Route: "GET /reports/", RequestID: id, RemoteIP: "192.0.2.77", Decision: forebay.RejectedTimeout,
		Cost: 1, Waited: 100 * time.Millisecond, InFlight: 4, Waiting: 3, Limit: 4,
	}
}

func accepted(gate, id string) forebay.Event {
	return forebay.Event{Gate: gate, Route: "GET /reports/", RequestID: id, Decision: forebay.Accepted, Cost: 1, InFlight: 1, Limit: 4}
}

// one returns the only story of an id.
func one(t *testing.T, b *Book, id string) Story {
	t.Helper()
	found := b.Find(id)
	if len(found) != 1 {
		t.Fatalf("%d stories of %q, want 1: %+v", len(found), id, found)
	}
	return found[0]
}

// A client that uses another's id, as the id of its requests or as its own, adds a story
// and hides none.
func TestNobodyHidesAnothersStory(t *testing.T) {
	b := NewBook()
	b.Observe(refusal("reports", "ours"))
	b.Answered("ours", "", 503, 2)
	victim := one(t, b, "ours")
	for i := range 2 * keptOthers { // more than there is room for beside it
		id := fmt.Sprint("other", i)
		b.Observe(accepted("reports", id))
		b.Answered(id, "ours", 200, 0)
		b.Observe(accepted("reports", victim.ID))
	}
	b.Answered("ours", "", 200, 77) // by a later request of that id, whose decision is not known
	found := b.Find("ours")
	last := found[len(found)-1]
	if len(found) < 2 || last.ID != victim.ID || last.Decision != "rejected_timeout" {
		t.Fatalf("%d stories, the oldest %+v; want that of %+v", len(found), last, victim)
	}
	if found[0].ClientID != "ours" || found[0].RequestID == "ours" {
		t.Errorf("the latest is %+v; want one that its client called so", found[0])
	}
	byID := b.Find(victim.ID)
	if got := byID[len(byID)-1]; got.RequestID != "ours" {
		t.Errorf("by the story's own id: %+v", got)
	}
}

// What is told of a call that is not known is told of no other.
func TestAnswersOfTheUnknown(t *testing.T) {
	b := NewBook()
	b.Observe(refusal("reports", "known"))
	for i := range 10 * indexed { // some have its place in the table
		id := fmt.Sprint("unknown", i)
		b.Answered(id, "theirs", 503, 9)
		b.Observe(forebay.Event{Kind: forebay.EventReleased, Gate: "reports", RequestID: id})
	}
	if s := one(t, b, "known"); s.Status != 0 || s.ClientID != "" || s.Ended != "" {
		t.Errorf("%+v", s)
	}
}

// What one gate goes through costs another nothing, and all of it stays bounded.
func TestAStormKeepsTheOthersRefusals(t *testing.T) {
	b := NewBook()
	b.Observe(refusal("quiet", "rare"))
	for i := range keptRefusals + 1000 {
		b.Observe(refusal("storm", fmt.Sprint(i)))
	}
	one(t, b, "rare")
	one(t, b, fmt.Sprint(keptRefusals+999))
	if found := b.Find("0"); len(found) != 0 {
		t.Errorf("the first of the storm is kept: %+v", found)
	}
	kept := b.Kept()
	if kept.Refusals > keptRefusals || kept.Refusals < keptRefusals-2*pages {
		t.Errorf("%d refusals are kept, want nearly %d", kept.Refusals, keptRefusals)
	}
	if kept.RefusalsSince.IsZero() || kept.RefusalsSince.After(time.Now()) {
		t.Errorf("refusals since %v, of those that are given up", kept.RefusalsSince)
	}
	if b.refused.taken > b.refused.most {
		t.Errorf("%d chunks, at most %d", b.refused.taken, b.refused.most)
	}
}

// With more gates than room everybody's latest go round.
func TestMoreGatesThanRoom(t *testing.T) {
	b := NewBook()
	for i := range 3 * keptRefusals / pages {
		b.Observe(refusal(fmt.Sprint("gate", i), fmt.Sprint(i)))
	}
	one(t, b, fmt.Sprint(3*keptRefusals/pages-1))
	if n := len(b.refused.byGate); n > keptRefusals/pages {
		t.Errorf("room for %d gates is kept, want at most %d", n, keptRefusals/pages)
	}
	for gate, own := range b.refused.byGate {
		if len(own) != 1 {
			t.Errorf("%s has %d chunks", gate, len(own))
		}
	}
}

// Refusals are kept longer than everything else.
func TestRefusalsAreKeptLongest(t *testing.T) {
	b := NewBook()
	b.Observe(accepted("reports", "served"))
	b.Observe(refusal("reports", "refused"))
	for i := range keptOthers + pages {
		b.Observe(accepted("reports", fmt.Sprint(i)))
	}
	one(t, b, "refused")
	if found := b.Find("served"); len(found) != 0 {
		t.Errorf("an accepted call outlives %d others", keptOthers)
	}
}

func TestAnotherRunsIDIsUnknown(t *testing.T) {
	a, b := NewBook(), NewBook()
	a.Observe(refusal("reports", "x"))
	b.Observe(refusal("reports", "y"))
	a.tag, b.tag = "AAAA", "BBBB"
	id := one(t, a, "x").ID
	if len(a.Find(id)) != 1 || len(b.Find(id)) != 0 {
		t.Errorf("%q is known to another run, or not to its own", id)
	}
	for _, id := range []string{"", "AAAA.", "AAAA.0", "AAAA.01", "AAAA.+1", "AAAA.2", "AAAA1", "aaaa.1"} {
		if len(a.Find(id)) != 0 {
			t.Errorf("%q has a story, and is no id of one", id)
		}
	}
}

// TestHoldersOfTheMoment: a refusal tells who held the slots when it was made, by route.
func TestHoldersOfTheMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBook()
		g, err := forebay.New(forebay.Config{
			Name: "reports", MaxInFlight: 3, MaxWait: 100 * time.Millisecond, Track: true, Observers: []forebay.Observer{b},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Watch(map[string][]string{"GET /slow": {"orders", "reports"}}, g)
		acquire := func(route, id string) (forebay.Lease, error) {
			return g.Acquire(t.Context(), forebay.Call{Route: route, RequestID: id})
		}
		first, _ := acquire("GET /slow", "1")
		time.Sleep(2 * time.Second)
		_, _ = acquire("GET /slow", "2")
		_, _ = acquire("GET /quick", "3")
		time.Sleep(time.Second)
		b.Tick(time.Now())
		if _, err := acquire("GET /slow", "refused"); err == nil {
			t.Fatal("a fourth is let in")
		}
		b.Answered("refused", "theirs", 503, 2)
		s := one(t, b, "theirs")
		if s.Holders == nil || s.Holders.Calls != 3 || len(s.Holders.Routes) != 2 {
			t.Fatalf("holders %+v", s.Holders)
		}
		if r := s.Holders.Routes[0]; r != (RouteHolders{"GET /slow", 2, 3100}) {
			t.Errorf("the most: %+v", r)
		}
		if r := s.Holders.Routes[1]; r != (RouteHolders{"GET /quick", 1, 1100}) {
			t.Errorf("the rest: %+v", r)
		}
		if s.WaitedMS != 100 || s.MaxWaitMS != 100 || s.InFlight != 3 || s.Limit != 3 || s.RetryAfter != 2 || s.Status != 503 ||
			len(s.Gates) != 2 || !s.At.Equal(time.Now()) {
			t.Errorf("story %+v", s)
		}
		first.ReleaseAs(forebay.OutcomeAborted)
		_, _ = acquire("GET /quick", "4")
		time.Sleep(lookEvery)
		if _, err := acquire("GET /slow", "later"); err == nil {
			t.Fatal("a fourth is let in")
		}
		if s := one(t, b, "later"); s.Holders.Routes[0].Route != "GET /quick" {
			t.Errorf("the picture is an old one: %+v", s.Holders)
		}
		if s := one(t, b, "1"); s.Ended != "aborted" || s.HeldMS != 3100 {
			t.Errorf("of the call that ended: %+v", s)
		}
	})
}

// TestALookIsShared: in a storm the holders are looked at now and then, not by each.
func TestALookIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBook()
		g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 1, Track: true, Observers: []forebay.Observer{b}})
		if err != nil {
			t.Fatal(err)
		}
		b.Watch(nil, g)
		_, _ = g.Acquire(t.Context(), forebay.Call{})
		for range 1000 {
			_, _ = g.Acquire(t.Context(), forebay.Call{RequestID: "refused"})
		}
		looks := map[*picture]bool{}
		for p := range b.refused.all() {
			looks[p.picture] = true
		}
		if len(looks) != 1 || looks[nil] {
			t.Errorf("%d looks of 1000 refusals at one instant, want 1", len(looks))
		}
	})
}

// TestNothingIsAllocated: neither by a call that is let in nor by one that is refused,
// but for the room itself.
func TestNothingIsAllocated(t *testing.T) {
	b := NewBook()
	g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 4})
	if err != nil {
		t.Fatal(err)
	}
	b.Watch(nil, g)
	in, out, end := accepted("reports", "a"), refusal("reports", "r"), accepted("reports", "a")
	end.Kind, end.Decision = forebay.EventReleased, forebay.Undecided
	for range keptOthers + keptRefusals { // until the room is used again
		b.Observe(in)
		b.Observe(out)
	}
	got := testing.AllocsPerRun(1000, func() {
		b.Observe(in)
		b.Observe(end)
		b.Observe(out)
		b.Answered("r", "", 503, 1)
	})
	if got > 0 {
		t.Errorf("%v allocations for a call that is let in and one that is refused, want 0", got)
	}
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	b := NewBook()
	g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 2, Track: true, Observers: []forebay.Observer{b}})
	if err != nil {
		t.Fatal(err)
	}
	b.Watch(nil, g)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 500 {
				id := fmt.Sprint(i, n)
				if lease, err := g.Acquire(t.Context(), forebay.Call{RequestID: id}); err == nil {
					lease.Release()
				}
				b.Answered(id, "x", 503, 1)
				if n%100 == 0 {
					b.Tick(time.Now())
					b.Watch(nil, g)
					b.Find("x")
					b.Refusals(10)
				}
			}
		})
	}
	all.Wait()
	if k := b.Kept(); k.Refusals+k.Others != 2000 {
		t.Errorf("%+v, want 2000 in all", k)
	}
}

func BenchmarkAccepted(b *testing.B) {
	book := NewBook()
	in, end := accepted("reports", "4bf92f35a1b2c3d4"), accepted("reports", "4bf92f35a1b2c3d4")
	end.Kind, end.Decision = forebay.EventReleased, forebay.Undecided
	b.ReportAllocs()
	for b.Loop() {
		book.Observe(in)
		book.Observe(end)
	}
}

func BenchmarkRefused(b *testing.B) {
	book := NewBook()
	out := refusal("reports", "4bf92f35a1b2c3d4")
	b.ReportAllocs()
	for b.Loop() {
		book.Observe(out)
		book.Answered("4bf92f35a1b2c3d4", "", 503, 1)
	}
}
