package forebaytest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// changeChecks are about what the operator does while callers come.
var changeChecks = []check{
	{"QU-10 a closed gate refuses at once", checkClosed},
	{"QU-09 a limit below what is in use starts nobody", checkShrink},
	{"a drain answers the line at once and lets the running finish", checkDrain},
	{"a drain that runs out of time still drains", checkDrainTimeout},
}

// setLimit moves the limit, or ends the check if the system cannot.
func (r *rig) setLimit(n int) {
	r.Helper()
	if r.sys.SetLimit == nil {
		r.Skip("the system has no SetLimit")
	}
	if err := r.sys.SetLimit(n); err != nil {
		r.Fatalf("SetLimit(%d): %v", n, err)
	}
	synctest.Wait()
}

// checkClosed closes an idle gate: not even one request gets through.
func checkClosed(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 2, MaxWait: time.Second, MaxWaiting: 5}, nil)
	r.setLimit(0)
	r.expectRefused(r.send("/a"), forebay.RejectedBusy, 0)
	r.expectRefused(r.send("/b"), forebay.RejectedBusy, 0)
	r.setLimit(2)
	r.finish()
	r.expectRan("/full", "/full")
}

// checkShrink lowers the limit from 10 to 3 while 10 run and 5 wait, lets them
// finish one by one, and raises it to 6.
func checkShrink(t testing.TB, open Opener) {
	const limit, line = 10, 5
	r := newRig(t, open, forebay.Config{MaxInFlight: limit, MaxWait: time.Second, MaxWaiting: line}, nil)
	r.burst(limit, "/runs")
	r.burst(line, "/waits")
	r.setLimit(3)
	if n := r.backend.InFlight(); n != limit {
		r.Errorf("%d run after the limit was lowered, want all %d", n, limit)
	}
	started := func(want int, after string) {
		r.Helper()
		if n := len(r.backend.Ran()) - limit; n != want {
			r.Errorf("%d of the line have started after %s, want %d", n, after, want)
		}
	}
	for i := range 7 {
		r.release(1)
		started(0, fmt.Sprintf("%d have finished", i+1))
	}
	r.release(1)
	started(1, "8 have finished")
	r.setLimit(6)
	started(4, "the limit was raised by 3")
	r.setLimit(limit)
	r.finish()
}

// drain begins a drain, with the given patience, and returns where its end will
// be told.
func (r *rig) drain(patience time.Duration) chan error {
	r.Helper()
	if r.sys.Drain == nil {
		r.Skip("the system has no Drain")
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r.Cleanup(cancel)
	go func() { ended <- r.sys.Drain(ctx) }()
	synctest.Wait()
	return ended
}

// checkDrain drains a gate with one running and one waiting.
func checkDrain(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 5}, nil)
	running := r.send("/running")
	waiting := r.send("/waiting")
	r.pass(10 * ms)
	ended := r.drain(time.Second)
	late := r.send("/late")
	for _, x := range []*exchange{waiting, late} {
		r.expectRefused(x, forebay.RejectedDraining, 10*ms)
		r.expectRetryAfter(x, 1, 30)
		if !x.closes {
			r.Errorf("%s: the answer keeps the connection, want Connection: close", x.path)
		}
	}
	r.expectUndecided(running)
	select {
	case err := <-ended:
		r.Errorf("the drain ended (%v) while a request runs", err)
	default:
	}
	r.pass(10 * ms)
	r.release(1)
	r.expectServed(running, 20*ms)
	select {
	case err := <-ended:
		if err != nil {
			r.Errorf("the drain ended with %v, want nil: nothing runs any more", err)
		}
	default:
		r.Errorf("nothing runs any more, but the drain has not ended")
	}
	r.resumeAndFinish()
}

// checkDrainTimeout drains with less patience than the work takes: the drain says
// so, and still nobody is admitted.
func checkDrainTimeout(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1}, nil)
	running := r.send("/running")
	ended := r.drain(50 * ms)
	r.pass(50 * ms)
	select {
	case err := <-ended:
		if err == nil {
			r.Errorf("the drain ended without an error while a request runs")
		}
	default:
		r.Errorf("the drain has not ended with its context")
	}
	r.expectUndecided(running)
	r.expectRefused(r.send("/late"), forebay.RejectedDraining, 50*ms)
	r.resumeAndFinish()
}

func (r *rig) resumeAndFinish() {
	r.Helper()
	if r.sys.Resume == nil {
		return
	}
	r.sys.Resume()
	r.finish()
}
