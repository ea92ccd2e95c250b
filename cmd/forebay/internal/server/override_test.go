package server

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"example.com/forebay/cmd/forebay/internal/admin"
)

// TestOverride: a limit set by hand is in force at once, is shown, and is taken back.
func TestOverride(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	got := r.ask("PUT", "/gates/b/max_in_flight", `{"max_in_flight":7,"why":"a test"}`)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"was":2`) {
		t.Errorf("PUT: %d %s", got.status, got.body)
	}
	r.limitIs("b", 7)
	r.logged(`"msg":"limit overridden"`, `"gate":"b"`, `"limit":7`, `"was":2`, `"why":"a test"`, `"by":"127.0.0.1"`)
	if got := r.scrape(`forebay_override_limit{gate="b"}`); got != "7" {
		t.Errorf("the metric says %q, want 7", got)
	}
	if got := r.scrape(`forebay_override_until_timestamp_seconds{gate="b"}`); got != "0" {
		t.Errorf("the end is %q, want 0, since there is none", got)
	}
	if since, err := strconv.ParseFloat(r.scrape(`forebay_override_since_timestamp_seconds{gate="b"}`), 64); err != nil || since < 1e9 {
		t.Errorf("since %v, %v", since, err)
	}
	if got := r.ask("PUT", "/gates/b/max_in_flight", `{"max_in_flight":"closed"}`); got.status != http.StatusOK || !strings.Contains(got.body, `"was":2`) {
		t.Errorf("a second PUT: %d %s; what was is the configured limit still", got.status, got.body)
	}
	if got := r.get("/b/x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("closed by hand: status %d, want 503", got.status)
	}
	if got := r.ask("DELETE", "/gates/b/max_in_flight", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"limit":2`) {
		t.Errorf("DELETE: %d %s", got.status, got.body)
	}
	r.limitIs("b", 2)
	r.logged(`"msg":"limit as configured again"`, `"was_set_to":0`, `"by":"127.0.0.1"`)
	if got := r.scrape(`forebay_override_limit{gate="b"}`); got != "" {
		t.Errorf("the metric still says %q", got)
	}
	if got := r.ask("DELETE", "/gates/b/max_in_flight", ""); got.status != http.StatusNotFound {
		t.Errorf("a second DELETE: status %d, want 404", got.status)
	}
	if got := r.ask("PUT", "/gates/nobody/max_in_flight", `{"max_in_flight":1}`); got.status != http.StatusNotFound {
		t.Errorf("PUT to a gate that is not there: status %d, want 404", got.status)
	}
}

// limitIs waits until a gate has that limit.
func (r *rig) limitIs(name string, limit int) {
	r.Helper()
	eventually(r, fmt.Sprintf("the limit of %s is %d", name, limit), func() bool {
		g, err := r.gate(name)
		return err == nil && g.Stats().Capacity == limit
	})
}

// TestOverrideEnds: one with an end reverts by itself, and its timer does nothing to
// one that has taken its place.
func TestOverrideEnds(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	if err := r.SetOverride("b", 9, 1, admin.Reason{Why: "for a nanosecond"}); err != nil {
		t.Fatal(err)
	}
	r.limitIs("b", 2)
	if all := r.Overrides(); len(all) != 0 {
		t.Errorf("overrides = %v, want none", all)
	}
	r.logged(`"msg":"limit as configured again"`, `"gate":"b"`, `"limit":2`, `"why":"its time is over"`)
	if err := r.SetOverride("b", 9, patience, admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	r.Server.mu.Lock()
	first := r.overrides["b"]
	r.Server.mu.Unlock()
	if err := r.SetOverride("b", 8, 0, admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	r.endOverride(first, expired) // as a timer does that could not be stopped any more
	r.limitIs("b", 8)
}

// TestOverrideAndReload: one with an end survives a reload, and gives way to what is
// configured by then; one without gives way at once; none outlives its gate.
func TestOverrideAndReload(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	set := func(n int, lasts string) {
		t.Helper()
		if got := r.ask("PUT", "/gates/b/max_in_flight", fmt.Sprintf(`{"max_in_flight":%d%s}`, n, lasts)); got.status != http.StatusOK {
			t.Fatalf("PUT: %d %s", got.status, got.body)
		}
	}
	set(9, `,"for":"1h"`)
	r.reload(fmt.Sprintf(twoGates, 4))
	r.limitIs("b", 9)
	if got := r.ask("GET", "/gates/b/max_in_flight", "").body; !strings.Contains(got, `"max_in_flight":4,"limit":9`) || !strings.Contains(got, `"was":4`) {
		t.Errorf("after a reload: %s", got)
	}
	if err := r.ClearOverride("b", admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	r.limitIs("b", 4)
	set(9, "")
	r.reload(fmt.Sprintf(twoGates, 4)) // the same file
	r.limitIs("b", 4)
	if all := r.Overrides(); len(all) != 0 {
		t.Errorf("overrides = %v, want none", all)
	}
	set(9, `,"for":"1h"`)
	r.reload(strings.NewReplacer("  b: {max_in_flight: 4}\n", "", "gate: b", "gate: a").Replace(fmt.Sprintf(twoGates, 4)))
	if all := r.Overrides(); len(all) != 0 {
		t.Errorf("the gate is gone, and overrides = %v", all)
	}
	r.reload(fmt.Sprintf(twoGates, 4))
	r.limitIs("b", 4)
}

// TestOverrideSurvivesAFailedReload: nothing has changed then.
func TestOverrideSurvivesAFailedReload(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	if err := r.SetOverride("b", 9, 0, admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	r.write("gates: {}\n")
	if r.Reload(t.Context()) == nil {
		t.Fatal("no error")
	}
	r.limitIs("b", 9)
}
