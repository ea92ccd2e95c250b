package forebaytest

import (
	"fmt"
	"testing"
	"time"

	"example.com/forebay"
)

// lineChecks are about those who wait.
var lineChecks = []check{
	{"QU-11 the line is bounded in length", checkLength},
	{"QU-11 patience counts from arrival", checkPatience},
	{"QU-12 first in, first out", checkOrder},
	{"QU-01 a wait that times out takes no slot with it", checkTimeouts},
}

// checkLength sends 300 requests at once to a gate of 1 with a line of 10. At no
// instant more than 10 wait, and the others need not wait for their answer.
func checkLength(t testing.TB, open Opener) {
	const requests, line, patience = 300, 10, 100 * ms
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: patience, MaxWaiting: line}, nil)
	first := r.send("/first")
	all := r.burst(requests, "/more")
	if n := count(all, refusedFor(forebay.RejectedBusy)); n != requests-line {
		r.Errorf("%d were refused at once, want %d: all but those in line", n, requests-line)
	}
	if n := r.waiting(); n != line {
		r.Errorf("%d wait, want %d", n, line)
	}
	r.pass(patience)
	if n := count(all, refusedFor(forebay.RejectedTimeout)); n != line {
		r.Errorf("%d were refused when their patience ended, want %d", n, line)
	}
	r.expectUndecided(first)
	r.finish()
}

// waiting returns how many calls wait, at all gates of the system together.
func (r *rig) waiting() (n int) {
	for _, st := range r.sys.Stats() {
		n += st.Waiting
	}
	return n
}

// checkPatience lets callers join the line one after the other: each has its
// whole patience and no more, whatever happens before it.
func checkPatience(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: 100 * ms, MaxWaiting: 5}, nil)
	a := r.send("/a")
	r.pass(10 * ms)
	b := r.send("/b")
	r.pass(30 * ms)
	c := r.send("/c")
	r.pass(30 * ms)
	d := r.send("/d")
	r.pass(25 * ms)
	r.release(1)
	r.expectServed(a, 95*ms)
	r.pass(44 * ms)
	r.expectUndecided(c)
	r.pass(1 * ms)
	r.expectRefused(c, forebay.RejectedTimeout, 140*ms)
	r.pass(30 * ms)
	r.expectRefused(d, forebay.RejectedTimeout, 170*ms)
	r.release(1)
	r.expectServed(b, 170*ms)
	r.finish()
	r.expectRan("/a", "/b", "/full")
}

// checkOrder lets eight callers join the line one after the other: they run in
// that order.
func checkOrder(t testing.TB, open Opener) {
	const callers = 8
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: callers}, nil)
	r.send("/0")
	want := []string{"/0"}
	for i := range callers {
		path := fmt.Sprintf("/%d", i+1)
		r.send(path)
		want = append(want, path)
	}
	for range callers {
		r.pass(1 * ms)
		r.release(1)
	}
	r.expectRan(want...)
	r.finish()
}

// checkTimeouts lets as many callers as there are slots wait in vain. When the
// slots are free again, all of them are.
func checkTimeouts(t testing.TB, open Opener) {
	const limit = 8
	r := newRig(t, open, forebay.Config{MaxInFlight: limit, MaxWait: 50 * ms, MaxWaiting: limit}, nil)
	held := r.burst(limit, "/held")
	for round := range 2 {
		vain := r.burst(limit, "/vain")
		r.pass(50 * ms)
		for _, x := range vain {
			r.expectRefused(x, forebay.RejectedTimeout, time.Duration(round+1)*50*ms)
		}
	}
	r.release(limit)
	for _, x := range held {
		r.expectServed(x, 100*ms)
	}
	r.finish()
}
