package forebaytest

import (
	"net/http"
	"slices"
	"testing/synctest"

	"example.com/forebay"
)

// finish ends a check: everything ends, then a full set of calls is admitted,
// nothing has broken the limit or run for nobody, and books, wire and backend
// tell the same. It must be called in a bubble.
func (r *rig) finish() {
	r.Helper()
	r.settle()
	r.fullSet()
	if peak := r.backend.Peak(); peak > r.limit {
		r.Errorf("%d requests ran at once, want at most %d", peak, r.limit)
	}
	if gone := r.backend.Departed(); len(gone) > 0 {
		r.Errorf("ran for callers that had left: %q", gone)
	}
	stats := r.sys.Stats()
	for _, fault := range unbalanced(r.sent.Load(), stats) {
		r.Errorf("books: %s", fault)
	}
	for _, st := range stats {
		if st.Calls != 0 || st.InUse != 0 || st.Waiting != 0 {
			r.Errorf("books: gate %q is idle, but has %d leases out, %d units in use, %d waiting", st.Name, st.Calls, st.InUse, st.Waiting)
		}
	}
	r.compareWire(stats)
}

// settle lets everything that runs or waits come to its end.
func (r *rig) settle() {
	r.Helper()
	for range len(r.exchanges) {
		if r.backend.ReleaseAll() == 0 {
			break
		}
		synctest.Wait()
	}
	r.pass(longest) // longer than every patience
	if n := r.backend.InFlight(); n != 0 {
		r.Errorf("%d requests still run", n)
	}
	for _, x := range r.exchanges {
		if !x.over() {
			r.Errorf("%s: still no answer at the end", x.path)
		}
	}
}

// fullSet sends as many requests as the limit, all of which must run at once.
func (r *rig) fullSet() {
	r.Helper()
	set := r.burst(r.limit, "/full")
	at := r.watch.elapsed()
	if n := r.backend.InFlight(); n != r.limit {
		r.Errorf("at the end %d of a full set of %d calls run at once", n, r.limit)
	}
	r.backend.ReleaseAll()
	synctest.Wait()
	for _, x := range set {
		r.expectServed(x, at)
	}
}

// compareWire compares what the clients were told with what the gates counted.
// Callers that left were told nothing, and may be in any counter.
func (r *rig) compareWire(stats []forebay.Stats) {
	r.Helper()
	counted, told := map[forebay.Decision]uint64{}, map[string]uint64{}
	for _, st := range stats {
		for d, n := range counters(st) {
			counted[d] += n
		}
	}
	var left uint64
	for _, x := range r.exchanges {
		switch {
		case x.left.Load():
			left++
		case x.refusal().Reason != "":
			told[x.refusal().Reason]++
		default:
			told[forebay.Accepted.String()]++
		}
	}
	for d, n := range counted {
		if d != forebay.Canceled && (told[d.String()] > n || told[d.String()]+left < n) {
			r.Errorf("wire: %d clients were told %s, but the gates counted %d", told[d.String()], d, n)
		}
	}
}

// count returns how many of the exchanges satisfy is.
func count(all []*exchange, is func(*exchange) bool) (n int) {
	for _, x := range all {
		if is(x) {
			n++
		}
	}
	return n
}

// served reports whether x was answered by the backend.
func (x *exchange) served() bool {
	return x.over() && x.status == http.StatusOK && x.err == nil
}

// refusedFor returns whether an exchange was refused for the reason d.
func refusedFor(d forebay.Decision) func(*exchange) bool {
	return func(x *exchange) bool { return x.over() && x.refusal().Reason == d.String() }
}

// expectRan fails the check unless just these ran, in this order.
func (r *rig) expectRan(want ...string) {
	r.Helper()
	if got := r.backend.Ran(); !slices.Equal(got, want) {
		r.Errorf("ran %q, want %q", got, want)
	}
}
