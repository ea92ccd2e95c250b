package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/forebay"
)

const (
	noLanes = `
gates: {a: {max_in_flight: 1, max_wait: 60s, max_waiting: 10}}
routes: [{match: /top/, gate: a}, {match: /, gate: a}]
`
	oneLane = `
lanes: {top: {rank: 1}}
gates: {a: {max_in_flight: 1, max_wait: 60s, max_waiting: 10}}
routes: [{match: /top/, gate: a, lane: top}, {match: /, gate: a}]
`
)

// laneIs waits until a lane has so many units in flight and calls in line.
func (r *rig) laneIs(gate, lane string, inUse, waiting int) {
	r.Helper()
	g, err := r.gate(gate)
	if err != nil {
		r.Fatal(err)
	}
	eventually(r, fmt.Sprintf("lane %q of %s has %d in flight and %d in line", lane, gate, inUse, waiting), func() bool {
		for _, l := range g.Stats().Lanes {
			if l.Name == lane {
				return l.InUse == inUse && l.Waiting == waiting
			}
		}
		return false
	})
}

// TestReloadChangesLanes: what runs and who waits keep slot and place, and whoever comes
// next goes by the lanes that are in force then.
func TestReloadChangesLanes(t *testing.T) {
	r := start(t, noLanes)
	plain := r.call(3, "/hold")
	r.gateIs("a", 1, 2)
	r.reload(oneLane)
	r.laneIs("a", "", 1, 2)
	top := r.call(1, "/top/hold")
	r.laneIs("a", "top", 0, 1)
	r.letGo(1)
	r.laneIs("a", "top", 1, 0) // past two who came before
	r.laneIs("a", "", 0, 2)
	r.reload(noLanes)
	g := r.gateIs("a", 1, 2)
	if lanes := g.Stats().Lanes; lanes != nil {
		t.Errorf("lanes %+v are left", lanes)
	}
	r.letGo(3)
	plain.want(3, http.StatusOK)
	top.want(1, http.StatusOK)
	if st := r.gateIs("a", 0, 0).Stats(); st.Accepted != 4 || st.Rejected() != 0 {
		t.Errorf("%d accepted, %d refused; want 4, 0", st.Accepted, st.Rejected())
	}
}

// TestFailedReloadKeepsLanes: a mistake in one lane changes none.
func TestFailedReloadKeepsLanes(t *testing.T) {
	r := start(t, oneLane)
	r.write(strings.Replace(oneLane, "{rank: 1}", "{rank: 1, reserved: 1}", 1))
	if err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "the lanes of gate a reserve top 1 = 1 units, and its max_in_flight is 1") {
		t.Fatalf("Reload: %v", err)
	}
	top := r.call(1, "/top/hold")
	r.laneIs("a", "top", 1, 0)
	r.letGo(1)
	top.want(1, http.StatusOK)
}

// TestLaneIsSeen: a call's lane is in the log, in the metrics, with the holders, and in
// the story of its refusal.
func TestLaneIsSeen(t *testing.T) {
	r := start(t, oneLane)
	top := r.call(2, "/top/hold")
	r.laneIs("a", "top", 1, 1)
	for metric, want := range map[string]string{
		`forebay_lane_in_flight{gate="a",lane="top"}`: "1", `forebay_lane_waiting{gate="a",lane="top"}`: "1",
		`forebay_lane_in_flight{gate="a",lane=""}`: "0", `forebay_lane_waiting{gate="a",lane=""}`: "0",
	} {
		if got := r.scrape(metric); got != want {
			t.Errorf("%s = %q, want %s", metric, got, want)
		}
	}
	if got := r.ask("GET", "/holders/a", "").body; !strings.Contains(got, `"lane":"top"`) {
		t.Errorf("holders: %s", got)
	}
	if got := r.ask("GET", "/stats/a", "").body; !strings.Contains(got, `"name":"top"`) {
		t.Errorf("stats: %s", got)
	}
	r.logged(`"decision":"accepted"`, `"lane":"top"`, `"route":"/top/"`)
	r.letGo(2)
	top.want(2, http.StatusOK)
	r.gateIs("a", 0, 0)
	r.reload(strings.Replace(oneLane, "max_in_flight: 1", "max_in_flight: closed", 1))
	id := r.get("/top/x").header.Get("X-Request-Id")
	if s := r.explained(id)[0]; s.Lane != "top" || s.Decision != "rejected_busy" {
		t.Errorf("story %+v", s)
	}
}

// TestLanesComeFromRoutesAlone: whatever a stranger's headers say, and however it writes
// the path, its call has the lane of its route.
func TestLanesComeFromRoutesAlone(t *testing.T) {
	r := start(t, oneLane)
	for _, headers := range [][]string{
		{"Lane", "top"}, {"X-Lane", "top"}, {"X-Forebay-Lane", "top"}, {"X-Priority", "1"}, {"Priority", "u=0"},
	} {
		if got := r.get("/", headers...); got.status != http.StatusOK {
			t.Fatalf("status %d", got.status)
		}
	}
	for _, path := range []string{"/x/..%2ftop/", "//top/", "/TOP/"} {
		r.get(path)
	}
	g, _ := r.gate("a")
	if got, want := g.Stats().Lanes[0], (forebay.LaneStats{Name: "top"}); got != want {
		t.Errorf("lane top is %+v, want %+v", got, want)
	}
	r.get("/top/")
	if got := g.Stats().Lanes[0].Granted; got != 1 {
		t.Errorf("%d were let in by lane top, want the one of its route", got)
	}
}

// TestRetriesStepBack: who was refused comes again behind those who come first, also after
// a reload that changes nothing about it.
func TestRetriesStepBack(t *testing.T) {
	const retries = "retries: {attempt_header: X-Retry-Attempt, key_header: Idempotency-Key}\n"
	r := start(t, retries+strings.Replace(oneLane, "max_in_flight: 1", "max_in_flight: closed", 1))
	if got := r.get("/top/", "Idempotency-Key", "k"); got.status != http.StatusServiceUnavailable {
		t.Fatalf("status %d of a closed gate", got.status)
	}
	r.reload(retries + oneLane)
	running := r.call(2, "/hold")
	r.laneIs("a", "", 1, 1)
	waiting := make(chan reply, 3)
	ask := func(headers ...string) { go func() { waiting <- r.get("/top/", headers...) }() }
	ask("Idempotency-Key", "k")
	r.laneIs("a", "", 1, 2)
	ask("X-Retry-Attempt", "1")
	r.laneIs("a", "", 1, 3)
	ask("Idempotency-Key", "other", "X-Retry-Attempt", "0")
	r.laneIs("a", "top", 0, 1)
	r.reload(oneLane) // nobody steps back any more
	ask("X-Retry-Attempt", "1")
	r.laneIs("a", "top", 0, 2)
	r.letGo(2)
	running.want(2, http.StatusOK)
	for range 4 {
		if got := <-waiting; got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}
