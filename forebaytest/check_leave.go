package forebaytest

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// leaveChecks are about callers that do not wait for their answer.
var leaveChecks = []check{
	{"QU-02 who left in line never runs", checkDeparted},
	{"QU-03 who leaves the line frees the place at once", checkPlace},
	{"SL-13 callers that leave at any moment lose no slot", checkAnyMoment},
	{"SL-13 work goes on with its slot when its caller leaves", checkAbandoned},
}

// checkDeparted lets the first of two in line leave: the slot goes to the second.
func checkDeparted(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 2}, nil)
	a := r.send("/a")
	b := r.send("/b")
	c := r.send("/c")
	r.pass(10 * ms)
	r.leave(b)
	r.pass(10 * ms)
	r.release(1)
	r.expectServed(a, 20*ms)
	r.expectUndecided(c)
	r.release(1)
	r.expectServed(c, 20*ms)
	r.finish()
	r.expectRan("/a", "/c", "/full")
}

// checkPlace lets the only one in line leave: the next may have the place, though
// nothing else has happened.
func checkPlace(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 1}, nil)
	r.send("/a")
	b := r.send("/b")
	r.expectRefused(r.send("/full-line"), forebay.RejectedBusy, 0)
	r.leave(b)
	if n := r.waiting(); n != 0 {
		r.Errorf("%d wait after the only one in line has left, want 0", n)
	}
	c := r.send("/c")
	r.expectUndecided(c)
	r.pass(10 * ms)
	r.release(1)
	r.release(1)
	r.expectServed(c, 10*ms)
	r.finish()
}

// checkAnyMoment sends 1000 requests whose callers leave at random moments of the
// first 5 ms, while slots change hands all the time.
func checkAnyMoment(t testing.TB, open Opener) {
	const requests, limit = 1000, 10
	r := newRig(t, open, forebay.Config{
		MaxInFlight: limit, MaxWait: 4 * ms, MaxWaiting: requests / 2,
	}, &Backend{Work: 100 * time.Microsecond})
	r.holdsDeparted()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	all := r.burst(requests, "/hasty")
	for _, x := range all {
		moment := time.Duration(1 + random.Int64N(int64(5*ms)))
		time.AfterFunc(moment, func() {
			if !x.over() {
				x.left.Store(true)
			}
			x.stop()
		})
	}
	synctest.Wait()
	r.pass(10 * ms)
	if n := r.backend.InFlight(); n != 0 {
		r.Errorf("%d still run after all have left, want 0", n)
	}
	r.finish()
	if r.Failed() {
		r.Logf("the moments were those of the seed %d", seed)
	}
}

// checkAbandoned lets the callers of two running requests leave. The work goes
// on, and nobody may run beside it.
func checkAbandoned(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 2}, nil)
	r.holdsDeparted()
	a, b := r.send("/a"), r.send("/b")
	r.leave(a)
	r.leave(b)
	r.expectRefused(r.send("/c"), forebay.RejectedBusy, 0)
	r.release(2)
	r.finish()
	r.expectRan("/a", "/b", "/full", "/full")
}

// holdsDeparted ends the check if the system says that it gives the slot of a
// call away while the work for its departed caller goes on.
func (r *rig) holdsDeparted() {
	r.Helper()
	if r.sys.ReleasesDeparted {
		r.Skip("the system releases the slots of the departed")
	}
}
