package forebaytest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// boundChecks are about how many run at once.
var boundChecks = []check{
	{"QU-05 a burst never exceeds the limit", checkBurst},
	{"QU-17 no patience refuses at once", checkNoPatience},
	{"QU-06 cost counts", checkCost},
	{"QU-03 a heavy caller that leaves unblocks the light ones", checkHeavyLeaver},
	{"SL-14 streams that are reset keep what they run on", checkResets},
}

const ms = time.Millisecond

// checkBurst releases 1000 requests by one barrier on a gate of 10 with a line of
// 40: exactly 50 are served, ten every 10 ms, and the others refused at once.
func checkBurst(t testing.TB, open Opener) {
	const requests, limit, line, work = 1000, 10, 40, 10 * ms
	r := newRig(t, open, forebay.Config{
		MaxInFlight: limit, MaxWait: time.Second, MaxWaiting: line,
	}, &Backend{Work: work})
	all := r.burst(requests, "/burst")
	if n := count(all, refusedFor(forebay.RejectedBusy)); n != requests-limit-line {
		r.Errorf("%d of the burst were refused at once, want %d", n, requests-limit-line)
	}
	for round := 1; round <= (limit+line)/limit; round++ {
		r.pass(work)
		if n := count(all, (*exchange).served); n != round*limit {
			r.Errorf("%d were served after %v, want %d", n, r.watch.elapsed(), round*limit)
		}
	}
	if peak := r.backend.Peak(); peak != limit {
		r.Errorf("%d requests ran at once, want exactly %d", peak, limit)
	}
	r.finish()
}

// checkNoPatience fills a gate whose callers may not wait: the next is refused in
// the same instant, and neither kept nor let in.
func checkNoPatience(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 2}, nil)
	a, b := r.send("/a"), r.send("/b")
	for range 3 {
		r.expectRefused(r.send("/c"), forebay.RejectedBusy, 0)
	}
	r.expectUndecided(a)
	r.expectUndecided(b)
	r.pass(10 * ms)
	r.release(1)
	r.expectServed(a, 10*ms)
	r.expectUndecided(r.send("/d"))
	r.finish()
	r.expectRan("/a", "/b", "/d", "/full", "/full")
}

// costs returns a mark for requests of that cost, and false if the system knows
// no cost, in which case the check is over.
func (r *rig) costs(n int) func(*http.Request) {
	r.Helper()
	if r.sys.SetCost == nil {
		r.Skip("the system has no cost")
	}
	return func(req *http.Request) { r.sys.SetCost(req, n) }
}

// checkCost sends calls of cost 8 to a gate of 10: the second has to wait though
// it is one request only, and a light one may not slip past it.
func checkCost(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 10, MaxWait: time.Second, MaxWaiting: 5}, nil)
	heavy := r.costs(8)
	first := r.send("/first", heavy)
	r.send("/second", heavy)
	r.send("/light")
	r.expectRan("/first")
	if in := r.sys.Stats()[0].InUse; in != 8 {
		r.Errorf("in use are %d units, want 8", in)
	}
	r.pass(20 * ms)
	r.release(1)
	r.expectServed(first, 20*ms)
	if n := r.backend.InFlight(); n != 2 { // both start in the same instant
		r.Errorf("%d run after the first has finished, want the second and the light one", n)
	}
	r.finish()
}

// checkHeavyLeaver lets a heavy caller at the head of the line leave. Those behind
// it fit, and nothing else happens that could wake them.
func checkHeavyLeaver(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 4, MaxWait: time.Second, MaxWaiting: 5}, nil)
	r.send("/three", r.costs(3))
	heavy := r.send("/heavy", r.costs(4))
	r.send("/light")
	r.expectRan("/three")
	r.leave(heavy)
	r.expectRan("/three", "/light")
	r.finish()
}

// checkResets opens a hundred streams of one HTTP/2 connection and resets them a
// millisecond later. Ten run on, since the work ignores its caller, and keep
// their slots; the others leave the line and free their places.
func checkResets(t testing.TB, open Opener) {
	const streams, limit, work = 100, 10, 200 * ms
	r := newRig(t, open, forebay.Config{
		MaxInFlight: limit, MaxWait: time.Second, MaxWaiting: streams,
	}, &Backend{Work: work})
	r.holdsDeparted()
	var all []*exchange
	for range streams {
		all = append(all, r.start(r.ClientHTTP2(), "/reset"))
	}
	synctest.Wait()
	r.pass(1 * ms)
	for _, x := range all {
		x.left.Store(true)
		x.stop()
	}
	synctest.Wait()
	after := r.send("/after")
	if n := r.backend.InFlight(); n != limit {
		r.Errorf("%d run after the resets, want %d: work that goes on keeps its slot", n, limit)
	}
	r.pass(2*work - r.watch.elapsed())
	r.expectServed(after, 2*work)
	if n := len(r.backend.Ran()); n != limit+1 {
		r.Errorf("%d requests ran, want %d: those that were reset in line never run", n, limit+1)
	}
	r.finish()
}
