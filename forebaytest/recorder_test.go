package forebaytest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// record returns a gate of one slot that a recorder observes.
func record(t *testing.T) (*forebay.Gate, *Recorder) {
	rec := &Recorder{}
	return newGate(t, forebay.Config{Name: "one", MaxInFlight: 1, Observers: []forebay.Observer{rec}}), rec
}

func TestRecorder(t *testing.T) {
	g, rec := record(t)
	lease, err := g.Acquire(t.Context(), forebay.Call{Route: "/a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Acquire(t.Context(), forebay.Call{}); err == nil {
		t.Fatal("a full gate admits")
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	_, _ = g.Acquire(left, forebay.Call{})
	lease.Release()

	want := []forebay.Decision{forebay.Accepted, forebay.RejectedBusy, forebay.Canceled}
	if got := rec.Decisions(); !slices.Equal(got, want) {
		t.Errorf("Decisions = %v, want %v", got, want)
	}
	if n := rec.Count(forebay.RejectedBusy); n != 1 {
		t.Errorf("Count(RejectedBusy) = %d, want 1", n)
	}
	if n := rec.CountKind(forebay.EventReleased); n != 1 {
		t.Errorf("CountKind(EventReleased) = %d, want 1", n)
	}
	if got := rec.Events(); len(got) != 4 || got[0].Route != "/a" {
		t.Errorf("Events = %v, want four, the first of route /a", got)
	}
	rec.Check(t, g)
	CheckConserved(t, 3, g)
	rec.Reset()
	if n := len(rec.Events()); n != 0 {
		t.Errorf("%d events after Reset, want 0", n)
	}
}

func TestRecorderConcurrent(t *testing.T) {
	var rec Recorder
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				rec.Observe(forebay.Event{Decision: forebay.Accepted})
				rec.Count(forebay.Accepted)
			}
		})
	}
	wg.Wait()
	if n := rec.Count(forebay.Accepted); n != 800 {
		t.Errorf("Count = %d, want 800", n)
	}
}

// TestRecorderCheckFails shows that Check notices a missing and a surplus event.
func TestRecorderCheckFails(t *testing.T) {
	g, rec := record(t)
	lease, _ := g.Acquire(t.Context(), forebay.Call{})
	lease.Release()
	v := &verdict{TB: t}
	rec.Observe(forebay.Event{Gate: "one", Kind: forebay.EventReleased})
	rec.Observe(forebay.Event{Gate: "another", Kind: forebay.EventDecided, Decision: forebay.Accepted})
	rec.Check(v, g)
	rec.Reset()
	rec.Check(v, g)
	want := []string{
		`gate "one": 2 events of releases, but only 1 leases were given back`,
		`gate "one": 0 events of accepted, but the gate counted 1`,
	}
	if !slices.Equal(v.faults, want) {
		t.Errorf("Check says %q, want %q", v.faults, want)
	}
}

func TestCheckConserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, forebay.Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 2})
		lease, _ := g.Acquire(t.Context(), forebay.Call{})
		go func() {
			l, _ := g.Acquire(t.Context(), forebay.Call{})
			l.Release()
		}()
		synctest.Wait()
		CheckConserved(t, 2, g) // one runs, one waits
		lease.Release()
		synctest.Wait()
		CheckConserved(t, 2, g)
		v := &verdict{TB: t}
		CheckConserved(v, 3, g)
		if len(v.faults) != 1 || !strings.Contains(v.faults[0], "3 requests, but 2 decisions and 0 waiting: [gate accepted=2 waiting=0]") {
			t.Errorf("CheckConserved of one request too many says %q", v.faults)
		}
	})
}

func TestUnbalanced(t *testing.T) {
	for name, st := range map[string]forebay.Stats{
		"a lease is lost":         {Accepted: 2, Granted: 2, Released: 1, Capacity: 5},
		"the limit is exceeded":   {Accepted: 2, Granted: 2, Calls: 2, InUse: 2, Capacity: 1},
		"a decision is missing":   {Accepted: 1, Granted: 2, Released: 2, Capacity: 5},
		"a decision is too much":  {Accepted: 2, RejectedBusy: 1, Granted: 2, Released: 2, Capacity: 5},
		"who waits is decided":    {Accepted: 2, Waiting: 1, Granted: 2, Released: 2, Capacity: 5},
		"a release is too much":   {Accepted: 2, Granted: 2, Released: 3, Capacity: 5},
		"a lease is out for free": {Accepted: 2, Granted: 2, Released: 2, Calls: 1, Capacity: 5},
	} {
		if faults := unbalanced(2, []forebay.Stats{st}); len(faults) != 1 {
			t.Errorf("%s: %q, want one fault", name, faults)
		}
	}
	good := forebay.Stats{Accepted: 1, RejectedBusy: 1, Granted: 1, Calls: 1, InUse: 3, Capacity: 3}
	if faults := unbalanced(2, []forebay.Stats{good}); len(faults) > 0 {
		t.Errorf("balanced books: %q", faults)
	}
}
