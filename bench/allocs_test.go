package main

import (
	"context"
	"net/http"
	"testing"

	"example.com/forebay"
)

// Allocation counts are the same on every machine, so they are tested, where
// times are only looked at.
func TestForebayAllocatesNothing(t *testing.T) {
	bare := newGate(forebay.Config{MaxInFlight: pairLimit})
	tracked := newGate(forebay.Config{MaxInFlight: pairLimit, Track: true})
	full := fullGate(forebay.Config{})
	lined, leave := fullLine()
	defer leave()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		what string
		loop loop
	}{
		{"acquire and release", acquirePairs(context.Background(), bare)},
		{"acquire and release with a context that can end", acquirePairs(ctx, bare)},
		{"try and release", tryPairs(bare)},
		{"acquire and release, tracked", acquirePairs(context.Background(), tracked)},
		{"acquire and release, a limit that finds itself", acquirePairs(context.Background(), probed())},
		{"acquire and release, lanes and fairness", callsInLanes()},
		{"refusal by a full gate", refusals(full)},
		{"refusal to try", tryRefusals(full)},
		{"refusal by a full line", refusals(lined)},
	} {
		c.loop(64) // what is made once is made now
		if n := testing.AllocsPerRun(100, func() { c.loop(1) }); n != 0 {
			t.Errorf("%s: %g allocations, want 0", c.what, n)
		}
	}
}

func TestAcceptedRequestAllocatesNothing(t *testing.T) {
	for _, m := range middlewares(nothing{}) {
		if m.name != wrapAccepted && m.name != groupsAccepted {
			continue
		}
		w, r := newDiscard(), newRequest()
		if n := testing.AllocsPerRun(100, func() { m.handler.ServeHTTP(w, r) }); n != 0 {
			t.Errorf("%s: %g allocations, want 0", m.name, n)
		}
		if w.status != http.StatusOK {
			t.Errorf("%s: status %d, want 200", m.name, w.status)
		}
	}
}

// A refusal's answer has an id of its own, which somebody must keep.
func TestRefusedRequestAllocatesLittle(t *testing.T) {
	const most = 8
	for _, m := range middlewares(nothing{}) {
		if m.name != wrapRefused && m.name != groupsRefused {
			continue
		}
		w, r := newDiscard(), newRequest()
		n := testing.AllocsPerRun(100, func() { w.reset(); m.handler.ServeHTTP(w, r) })
		if n > most {
			t.Errorf("%s: %g allocations, want at most %d", m.name, n, most)
		}
		t.Logf("%s: %g allocations", m.name, n)
	}
}
