package server

import (
	"fmt"
	"net/http"
	"testing"
)

const stillGates = "gates: {a: {max_in_flight: 1}}\nroutes: [{match: /free, exempt: true}, {match: /, gate: a}]\ntimeouts: {upstream_response: 1s, still_running: %s}\ndrain_timeout: %s\n"

// timesOut sends a request that is answered 504 while the backend works on.
func (r *rig) timesOut() {
	r.Helper()
	if got := r.get("/hold"); got.status != http.StatusGatewayTimeout {
		r.Errorf("%d %s", got.status, got.body)
	}
}

// TestSL12ProgramCountsWhatStillRuns: in the gate, in the metrics and in /stats, until the
// backend is done. A reload leaves it alone.
func TestSL12ProgramCountsWhatStillRuns(t *testing.T) {
	r := start(t, fmt.Sprintf(stillGates, "1h", "30s"))
	r.timesOut()
	g := r.gateIs("a", 1, 0)
	if got := r.scrape(`forebay_still_running{gate="a"}`); got != "1" || g.Stats().StillRunning != 1 {
		t.Errorf("forebay_still_running is %s", got)
	}
	if got := r.get("/x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("beside it: %d %s", got.status, got.body)
	}
	r.reload(fmt.Sprintf(stillGates, "1m", "30s"))
	r.gateIs("a", 1, 0)
	r.letGo(1)
	r.gateIs("a", 0, 0)
	if got := r.scrape(`forebay_still_running{gate="a"}`); got != "0" {
		t.Errorf("forebay_still_running is %s", got)
	}
}

// TestDrainWaitsForWhatStillRuns: as for every request that has a slot.
func TestDrainWaitsForWhatStillRuns(t *testing.T) {
	r := start(t, fmt.Sprintf(stillGates, "1h", "24h"))
	r.timesOut()
	r.cancel()
	r.logged("draining before exit")
	r.letGo(1)
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestDrainEndsWhatStillRuns: with drain_timeout, and says so.
func TestDrainEndsWhatStillRuns(t *testing.T) {
	r := start(t, fmt.Sprintf(stillGates, "1h", "100ms"))
	r.timesOut()
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	r.logged("drain_timeout is over", `"still_running":1`)
	eventually(t, "the backend is told", func() bool { return r.backend.running.Load() == 0 })
}
