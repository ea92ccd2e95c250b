package forebaytest

import (
	"slices"
	"sync"
	"testing"

	"example.com/forebay"
)

// Recorder is a [forebay.Observer] that keeps every event. The zero value is
// ready; it is safe for concurrent use. Events of different calls arrive in the
// order in which their goroutines report them, which is the order of the gate
// only as far as the test itself keeps them apart.
type Recorder struct {
	mu     sync.Mutex // guards events
	events []forebay.Event
}

// Observe keeps the event.
func (r *Recorder) Observe(e forebay.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns a copy of everything seen so far, in order of arrival.
func (r *Recorder) Events() []forebay.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Decisions returns the decisions seen so far, in order of arrival, without the
// releases and the overdue leases between them.
func (r *Recorder) Decisions() []forebay.Decision {
	var all []forebay.Decision
	for _, e := range r.Events() {
		if e.Kind == forebay.EventDecided {
			all = append(all, e.Decision)
		}
	}
	return all
}

// Count returns how many calls got the decision d.
func (r *Recorder) Count(d forebay.Decision) int {
	n := 0
	for _, got := range r.Decisions() {
		if got == d {
			n++
		}
	}
	return n
}

// CountKind returns how many events of the kind k were seen: decisions, releases
// or overdue leases.
func (r *Recorder) CountKind(k forebay.EventKind) int {
	n := 0
	for _, e := range r.Events() {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// Reset forgets everything seen so far.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Check fails the test if what was observed of g disagrees with what g counted:
// one event for each decision, and releases no more than leases given back (a
// lease whose caller left in the very instant of the grant, and one of a chain
// that was unwound, ends without an event). The recorder must have observed g,
// of whatever else, from its start, without a Reset, and nobody may be at work.
func (r *Recorder) Check(t testing.TB, g *forebay.Gate) {
	t.Helper()
	seen, releases := map[forebay.Decision]uint64{}, uint64(0)
	for _, e := range r.Events() {
		switch {
		case e.Gate != g.Name():
		case e.Kind == forebay.EventDecided:
			seen[e.Decision]++
		case e.Kind == forebay.EventReleased:
			releases++
		}
	}
	st := g.Stats()
	for d, counted := range counters(st) {
		if seen[d] != counted {
			t.Errorf("gate %q: %d events of %s, but the gate counted %d", g.Name(), seen[d], d, counted)
		}
	}
	if releases > st.Released {
		t.Errorf("gate %q: %d events of releases, but only %d leases were given back", g.Name(), releases, st.Released)
	}
}
