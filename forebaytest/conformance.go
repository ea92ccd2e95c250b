package forebaytest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"example.com/forebay"
)

// Opener builds the system under test: a gate of configuration c in front of
// backend. It is called inside a synctest bubble, several times in a run; what
// the system has to clean up goes to t.Cleanup. It may add to c what the client
// cannot see (observers, Track), and fails t if it cannot build.
type Opener func(t testing.TB, c forebay.Config, backend http.Handler) *System

// System is a gate in front of an HTTP handler, as [Conformance] sees it. Handler
// and Stats are required; a check that needs something else is skipped where that
// is nil. All of it is called by many goroutines.
type System struct {
	// Handler is the whole of it: the suite puts it behind a [Server] of its own.
	Handler http.Handler
	// Stats returns the picture of every gate that a request passes, each once.
	// One decision is counted for a request, at whichever of them.
	Stats func() []forebay.Stats
	// Drain stops admitting and returns when nothing runs any more, or with an
	// error when ctx ends.
	Drain func(ctx context.Context) error
	// Resume ends a drain.
	Resume func()
	// SetLimit moves the limit, in units; 0 closes.
	SetLimit func(n int) error
	// SetCost marks a request so that it takes that many units. Nil: every request
	// takes one.
	SetCost func(r *http.Request, cost int)
	// ReleasesDeparted says that the slot of a call whose caller leaves while it
	// runs comes back at once, whatever the backend still does, as with a proxy
	// that does not wait for its upstream. Checks of the contrary are skipped.
	ReleasesDeparted bool
}

// NewSystem returns the system of a handler that is gated by the given gates in
// this process. The last of them, which should have the configuration under test,
// is the one whose limit moves; all of them drain.
func NewSystem(h http.Handler, gates ...*forebay.Gate) *System {
	if len(gates) == 0 {
		panic("forebaytest: NewSystem without a gate")
	}
	return &System{
		Handler: h,
		Stats: func() []forebay.Stats {
			var all []forebay.Stats
			for _, g := range gates {
				all = append(all, g.Stats())
			}
			return all
		},
		Drain: func(ctx context.Context) error { return drainAll(ctx, gates) },
		Resume: func() {
			for _, g := range gates {
				g.Resume()
			}
		},
		SetLimit: gates[len(gates)-1].SetLimit,
	}
}

// drainAll drains all gates at the same time.
func drainAll(ctx context.Context, gates []*forebay.Gate) error {
	errs := make([]error, len(gates))
	var wg sync.WaitGroup
	for i, g := range gates {
		wg.Go(func() { errs[i] = g.Drain(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// check is one thing that every system has to do. It runs in a bubble, reports
// through t only, and never waits for what may not come.
type check struct {
	name string // begins with the ids of the cases that it stands for
	run  func(t testing.TB, open Opener)
}

// checks returns the whole suite.
func checks() []check {
	return slices.Concat(boundChecks, lineChecks, leaveChecks, releaseChecks, wireChecks, changeChecks)
}

// Conformance checks, from the outside and over HTTP, that what open builds is a
// gate: that it holds its limit whatever callers and handlers do, keeps its line
// short and fair, refuses in the form that clients are promised, and loses
// nothing. Each check is a subtest, named after the cases that it stands for, in
// a synctest bubble of its own, and takes no real time. At the end of each a full
// set of calls is admitted and the books balance.
//
// A bubble holds only goroutines and timers that were begun in it: open has to
// build everything anew, and nothing of it may use the network.
func Conformance(t *testing.T, open Opener) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t, open) })
		})
	}
}
