package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/forebay/cmd/forebay/internal/admin"
)

const autoGate = `
gates:
  a: {max_in_flight: %s, max_wait: 60s}
  rest: {max_in_flight: %d}
routes:
  - {match: /, gate: a}
  - {match: /rest/, gate: rest}
`

// auto is what the admin port says of the limiter of gate a.
func (r *rig) auto() *admin.Auto {
	r.Helper()
	var st struct{ Auto *admin.Auto }
	if err := json.Unmarshal([]byte(r.ask("GET", "/stats/a", "").body), &st); err != nil {
		r.Fatal(err)
	}
	return st.Auto
}

// refuses has the upstream refuse most calls until the limit has fallen.
func (r *rig) refuses() *admin.Auto {
	r.Helper()
	was := r.auto()
	eventually(r, "the limit falls", func() bool {
		r.wave()
		return r.auto().Centre < was.Centre
	})
	return r.auto()
}

// wave has the upstream refuse fifteen calls at once, and serve one.
func (r *rig) wave() {
	r.Helper()
	served, refused := r.call(1, "/hold"), r.call(15, "/full/hold")
	eventually(r, "all have come", func() bool {
		g, err := r.gate("a")
		st := g.Stats()
		return err == nil && st.Calls+st.Waiting == 16
	})
	r.letGo(16)
	served.want(1, http.StatusOK)
	refused.want(15, http.StatusServiceUnavailable)
	r.gateIs("a", 0, 0)
}

// TestAuto: a limit that finds itself is in force, learns from the upstream's refusals,
// and says so.
func TestAuto(t *testing.T) {
	r := start(t, fmt.Sprintf(autoGate, "{auto: {min: 2, max: 40, start: 30, deadline: 2s}}", 1))
	if a := r.auto(); a == nil || a.Centre != 30 || a.Min != 2 || a.Max != 40 || a.DeadlineMS != 2000 || a.Reason != "start" || len(a.Last) != 0 {
		t.Fatalf("at first %+v", a)
	}
	a := r.refuses()
	if a.Reason != "overloaded" || a.Moves == 0 || len(a.Last) == 0 || a.Last[0].From != 30 || a.Last[0].Why != "overloaded" || a.Last[0].At.IsZero() {
		t.Errorf("then %+v", a)
	}
	r.logged(`"msg":"a limit has moved"`, `"gate":"a"`, `"from":30`, `"why":"overloaded"`)
	if r.scrape(`forebay_adaptive_moves_total{gate="a",reason="overloaded"}`) == "0" || r.scrape(`forebay_adaptive_moves_total{gate="a",reason="climb"}`) != "0" ||
		r.scrape(`forebay_adaptive_centre{gate="a"}`) != fmt.Sprint(a.Centre) || r.scrape(`forebay_adaptive_last_move_timestamp_seconds{gate="a"}`) == "" ||
		r.scrape(`forebay_adaptive_phase{gate="a",phase="above"}`) != "1" || r.scrape(`forebay_adaptive_centre{gate="rest"}`) != "" {
		t.Errorf("metrics: %s", r.ask("GET", "/metrics", "").body)
	}
	if got := r.ask("GET", "/stats/rest", "").body; strings.Contains(got, `"auto"`) {
		t.Errorf("a gate with a number: %s", got)
	}
	if got := r.ask("GET", "/gates/a/max_in_flight", "").body; !strings.Contains(got, `"max_in_flight":30,"auto":true`) {
		t.Errorf("GET /gates/a/max_in_flight: %s", got)
	}
}

// TestAutoAndReload: what was learnt goes on; other settings change no more than they must.
func TestAutoAndReload(t *testing.T) {
	r := start(t, fmt.Sprintf(autoGate, "auto", 1))
	before := r.refuses()
	still := func(what string, same ...func(a *admin.Auto) bool) *admin.Auto {
		t.Helper()
		a := r.auto()
		if a == nil || a.Moves < before.Moves || a.Last[0] != before.Last[0] {
			t.Fatalf("%s: %+v, and it was %+v", what, a, before)
		}
		for _, f := range same {
			if !f(a) {
				t.Errorf("%s: %+v, and it was %+v", what, a, before)
			}
		}
		return a
	}
	stays := func(a *admin.Auto) bool { return a.Centre == before.Centre && a.Moves == before.Moves }
	r.reload(fmt.Sprintf(autoGate, "auto", 1))
	still("the same", stays)
	r.reload(fmt.Sprintf(autoGate, "auto", 2))
	still("another gate is", stays)
	r.reload(fmt.Sprintf(autoGate, "auto, max_waiting: 70", 2))
	still("another line", stays)
	r.reload(fmt.Sprintf(autoGate, "{auto: {deadline: 3s, start: 9}}", 2))
	if a := still("another deadline", stays); a.DeadlineMS != 3000 {
		t.Errorf("another deadline: %+v", a)
	}
	r.reload(fmt.Sprintf(autoGate, "{auto: {max: 5}}", 2))
	if a := still("a lower maximum"); a.Max != 5 || a.Centre != 5 || a.Limit > 5 {
		t.Errorf("a lower maximum: %+v", a)
	}
	r.reload(fmt.Sprintf(autoGate, "7", 2))
	if a := r.auto(); a != nil {
		t.Errorf("a number: %+v", a)
	}
	r.limitIs("a", 7)
	r.reload(fmt.Sprintf(autoGate, "auto", 2))
	if a := r.auto(); a == nil || a.Centre != 7 || a.Moves != 0 {
		t.Errorf("from a number it goes on from there: %+v", a)
	}
	r.reload(fmt.Sprintf(autoGate, "closed", 2))
	r.limitIs("a", 0)
	r.reload(fmt.Sprintf(autoGate, "auto", 2))
	r.limitIs("a", r.auto().Limit)
}

// TestAutoAndOverride: a limit that was set by hand stays, whatever happens, and then the
// limiter goes on from where it was.
func TestAutoAndOverride(t *testing.T) {
	r := start(t, fmt.Sprintf(autoGate, "auto", 1))
	before := r.auto()
	put := func(what string) {
		t.Helper()
		if got := r.ask("PUT", "/gates/a/max_in_flight", what); got.status != http.StatusOK || !strings.Contains(got.body, `"auto":true`) {
			t.Errorf("PUT %s: %d %s", what, got.status, got.body)
		}
	}
	full := func() {
		t.Helper()
		for range 50 {
			r.get("/full")
		}
	}
	goesOn := func(what string) {
		t.Helper()
		a := r.auto()
		if a.Centre != before.Centre || a.Moves != 0 || a.SetTo != 0 {
			t.Errorf("%s: %+v, and it was %+v", what, a, before)
		}
		r.limitIs("a", a.Limit)
	}
	put(`{"max_in_flight":3}`)
	full()
	r.limitIs("a", 3)
	if a := r.auto(); a.SetTo != 3 || a.Moves != 0 {
		t.Errorf("set by hand: %+v", a)
	}
	r.ask("DELETE", "/gates/a/max_in_flight", "")
	goesOn("cleared")

	put(`{"max_in_flight":"closed"}`)
	full()
	r.limitIs("a", 0)
	put(`{"max_in_flight":500}`)
	for range 5 {
		r.wave()
	}
	r.limitIs("a", 500)
	r.reload(fmt.Sprintf(autoGate, "auto", 1))
	goesOn("without an end, and reloaded")

	put(`{"max_in_flight":"closed"}`)
	r.reload(fmt.Sprintf(autoGate, "auto", 2))
	goesOn("closed, and reloaded")

	put(`{"max_in_flight":3,"for":"1h"}`)
	r.reload(fmt.Sprintf(autoGate, "{auto: {deadline: 2s}}", 1))
	full()
	r.limitIs("a", 3)
	r.reload(fmt.Sprintf(autoGate, "9", 1))
	r.limitIs("a", 3)
	r.reload(fmt.Sprintf(autoGate, "auto", 1))
	r.limitIs("a", 3)
	full()
	r.limitIs("a", 3)
	r.ask("DELETE", "/gates/a/max_in_flight", "")
	if a := r.auto(); a.SetTo != 0 || a.Moves != 0 {
		t.Errorf("in the end: %+v", a)
	}
	r.limitIs("a", r.auto().Limit)

	if err := r.SetOverride("a", 4, 1, admin.Reason{}); err != nil { // a nanosecond
		t.Fatal(err)
	}
	eventually(t, "it is over", func() bool { return len(r.Overrides()) == 0 })
	r.limitIs("a", r.auto().Limit)
	if err := r.SetOverride("a", -1, 0, admin.Reason{}); err == nil || r.auto().SetTo != 0 {
		t.Errorf("a limit that is none: %v, %+v", err, r.auto())
	}
}
