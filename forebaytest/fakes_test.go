package forebaytest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

func TestLimit(t *testing.T) {
	limit := &Limit{}
	g := newGate(t, forebay.Config{MaxInFlight: 3, Limiter: limit})
	a, _ := g.Acquire(t.Context(), forebay.Call{})
	if got := g.Stats().Capacity; got != 3 {
		t.Errorf("Capacity = %d with nothing set, want 3 as configured", got)
	}
	limit.Set(1)
	a.Release()
	if got := g.Stats().Capacity; got != 1 {
		t.Errorf("Capacity = %d after Set(1) and an observation, want 1", got)
	}
	var kinds []forebay.ObservationKind
	for _, o := range limit.Observations() {
		kinds = append(kinds, o.Kind)
	}
	want := []forebay.ObservationKind{forebay.ObservedChange, forebay.ObservedStart, forebay.ObservedFinish}
	if !slices.Equal(kinds, want) {
		t.Errorf("Observations are of kinds %v, want %v", kinds, want)
	}
	limit.Set(0)
	if got := limit.Observe(&forebay.Observation{Limit: 7}); got != 7 {
		t.Errorf("after Set(0) it wants %d, want 7, the one in force", got)
	}
	limit.Reset()
	if n := len(limit.Observations()); n != 0 {
		t.Errorf("%d observations after Reset, want 0", n)
	}
	defer func() {
		if recover() == nil {
			t.Errorf("Set(-1) did not panic")
		}
	}()
	limit.Set(-1)
}

func TestBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{}
		client := Serve(t, b)
		answers := make(chan string, 3)
		for _, path := range []string{"/a", "/b?x=1", "/c"} {
			go func() { answers <- fetch(t, client, path) }()
			synctest.Wait()
		}
		if b.InFlight() != 3 || b.Peak() != 3 {
			t.Errorf("InFlight, Peak = %d, %d, want 3, 3", b.InFlight(), b.Peak())
		}
		if got, want := b.Ran(), []string{"/a", "/b?x=1", "/c"}; !slices.Equal(got, want) {
			t.Errorf("Ran = %q, want %q", got, want)
		}
		if n := b.Release(2); n != 2 {
			t.Errorf("Release(2) = %d", n)
		}
		synctest.Wait()
		if b.InFlight() != 1 || b.Peak() != 3 || len(answers) != 2 {
			t.Errorf("InFlight, Peak, answers = %d, %d, %d, want 1, 3, 2", b.InFlight(), b.Peak(), len(answers))
		}
		if n := b.Release(5); n != 1 {
			t.Errorf("Release(5) of one that runs = %d, want 1", n)
		}
		if n := b.ReleaseAll(); n != 0 {
			t.Errorf("ReleaseAll of none = %d, want 0", n)
		}
		b.Open()
		if got := fetch(t, client, "/d"); got != "ok" {
			t.Errorf("an open backend answers %q, want ok", got)
		}
		synctest.Wait() // the others have read their answers
	})
}

func TestBackendWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{Work: 20 * time.Millisecond}
		client, start := Serve(t, b), time.Now()
		fetch(t, client, "/a")
		if took := time.Since(start); took != b.Work {
			t.Errorf("it took %v, want %v", took, b.Work)
		}
		if n := b.ReleaseAll(); n != 0 {
			t.Errorf("%d could still be let go after the work, want 0", n)
		}
	})
}

// TestBackendDeparted runs one request for a caller that has left before, and one
// whose caller leaves meanwhile, which is nobody's fault.
func TestBackendDeparted(t *testing.T) {
	b := &Backend{Work: time.Millisecond}
	ctx, leave := context.WithCancel(t.Context())
	b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/there", nil))
	leave()
	b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/gone", nil))
	if got := b.Departed(); !slices.Equal(got, []string{"/gone"}) {
		t.Errorf("Departed = %q, want /gone", got)
	}
}
