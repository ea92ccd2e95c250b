package forebaytest

import (
	"fmt"
	"testing"

	"example.com/forebay"
)

// CheckConserved fails the test if the books of the gates do not balance:
//
//	requests = decisions + waiting      over all of them together
//	granted  = released + leases out    for each
//	in flight ≤ the limit in force      for each
//
// requests is how many calls have arrived so far. A call through a chain is one,
// and all gates of the chain are given together; a call that was exempt is none.
// Ask when nobody is in the middle of arriving: after synctest.Wait, or at the
// end. After a limit was lowered more may run than it allows until they finish;
// ask after that.
func CheckConserved(t testing.TB, requests uint64, gates ...*forebay.Gate) {
	t.Helper()
	stats := make([]forebay.Stats, len(gates))
	for i, g := range gates {
		stats[i] = g.Stats()
	}
	for _, fault := range unbalanced(requests, stats) {
		t.Error(fault)
	}
}

// unbalanced returns what does not balance.
func unbalanced(requests uint64, stats []forebay.Stats) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var decided, waiting uint64
	for _, st := range stats {
		for _, n := range counters(st) {
			decided += n
		}
		waiting += uint64(st.Waiting)
		if st.Granted != st.Released+uint64(st.Calls) {
			fault("gate %q: %d leases granted, but %d released and %d out", st.Name, st.Granted, st.Released, st.Calls)
		}
		if st.InUse > st.Capacity {
			fault("gate %q: %d units in flight, but the limit is %d", st.Name, st.InUse, st.Capacity)
		}
	}
	if requests != decided+waiting {
		fault("%d requests, but %d decisions and %d waiting: %s", requests, decided, waiting, ledger(stats))
	}
	return faults
}

// counters returns the counter of each decision that a gate counts.
func counters(st forebay.Stats) map[forebay.Decision]uint64 {
	return map[forebay.Decision]uint64{
		forebay.Accepted:         st.Accepted,
		forebay.RejectedBusy:     st.RejectedBusy,
		forebay.RejectedTimeout:  st.RejectedTimeout,
		forebay.RejectedDeadline: st.RejectedDeadline,
		forebay.RejectedCaller:   st.RejectedCaller,
		forebay.RejectedTooLarge: st.RejectedTooLarge,
		forebay.RejectedDraining: st.RejectedDraining,
		forebay.RejectedStore:    st.RejectedStore,
		forebay.RejectedShed:     st.RejectedShed,
		forebay.Canceled:         st.Canceled,
	}
}

// ledger writes the counters of all gates out, for a message.
func ledger(stats []forebay.Stats) string {
	text := ""
	for _, st := range stats {
		text += fmt.Sprintf("[%s", st.Name)
		counted := counters(st)
		for d := forebay.Accepted; d <= forebay.Canceled; d++ {
			if counted[d] > 0 {
				text += fmt.Sprintf(" %s=%d", d, counted[d])
			}
		}
		text += fmt.Sprintf(" waiting=%d]", st.Waiting)
	}
	return text
}
