package admin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/story"
)

func TestStatsShowWhatTheGatesDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program(t, "reports", "orders")
		h := Handler(p, metricsHandler(), local)
		lease := hold(t, p.gates[0], "r1")
		time.Sleep(time.Millisecond)
		hold(t, p.gates[0], "r2")
		refuse(t, p.gates[0])
		time.Sleep(1500 * time.Millisecond)
		one := decoded[map[string]any](t, ask(h, "GET /stats/reports", ""), 200)
		for key, want := range map[string]string{"name": "reports", "capacity": "2", "available": "0", "in_use": "2", "waiting": "0", "rejected_busy": "1", "accepted": "2"} {
			if got := text(one[key]); got != want {
				t.Errorf("%s = %s, want %s", key, got, want)
			}
		}
		oldest := one["oldest_holder"].(map[string]any)
		if oldest["request_id"] != "r1" || oldest["remote_ip"] != "anon:192.0.2.77" || oldest["held_ms"] != 1501.0 {
			t.Errorf("oldest_holder = %v", oldest)
		}
		all := decoded[programStats](t, ask(h, "GET /stats", ""), 200)
		if len(all.Gates) != 2 || all.Gates[1].Name != "orders" || all.Program.Version != "v1.2.3" || all.Draining || all.Intake != p.Intake() {
			t.Errorf("stats = %+v", all)
		}
		lease.Release()
		if st := decoded[gateStats](t, ask(h, "GET /stats/reports", ""), 200); st.InUse != 1 || st.Released != 1 {
			t.Errorf("after a release: %+v", st)
		}
	})
}

func TestHoldersOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := program(t, "reports", "orders")
		h := Handler(p, metricsHandler(), local)
		hold(t, p.gates[0], "old")
		time.Sleep(time.Second)
		hold(t, p.gates[0], "young")
		type list struct {
			Gates []gateHolders `json:"gates"`
		}
		got := decoded[list](t, ask(h, "GET /holders", ""), 200).Gates
		if len(got) != 2 || len(got[0].Holders) != 2 || len(got[1].Holders) != 0 || !got[0].Tracks {
			t.Fatalf("holders = %+v", got)
		}
		old := got[0].Holders[0]
		if old.RequestID != "old" || old.HeldMS != 1000 || old.RemoteIP != "anon:192.0.2.77" || old.Route != "GET /reports/" || got[0].Holders[1].RequestID != "young" {
			t.Errorf("holders = %+v", got[0].Holders)
		}
		if one := decoded[gateHolders](t, ask(h, "GET /holders/reports", ""), 200); len(one.Holders) != 2 {
			t.Errorf("holders of one = %+v", one)
		}
		bare := decoded[gateHolders](t, ask(Handler(p, metricsHandler(), Options{Loopback: true}), "GET /holders/reports", ""), 200)
		wantString(t, "address without a way to show it", bare.Holders[0].RemoteIP, "")
	})
}

func TestManyHoldersAreCutOff(t *testing.T) {
	p := &fakeProgram{book: story.NewBook(), gates: []*forebay.Gate{newGate(t, forebay.Config{Name: "wide", MaxInFlight: 5000})}}
	for range 3000 {
		hold(t, p.gates[0], "x")
	}
	got := decoded[gateHolders](t, ask(Handler(p, metricsHandler(), local), "GET /holders/wide", ""), 200)
	if len(got.Holders) != maxHolders || got.LeftOut != 2000 {
		t.Errorf("%d holders, %d left out", len(got.Holders), got.LeftOut)
	}
}

func TestUnknownNamesSayWhatExists(t *testing.T) {
	h := Handler(program(t, "reports", "a/b"), metricsHandler(), local)
	for _, path := range []string{"/stats/nope", "/holders/nope", "/gates/nope/max_in_flight", "/stats/reports/", "/stats/../stats"} {
		got := decoded[failure](t, ask(h, "GET "+path, ""), 404)
		if !slices.Equal(got.Gates, []string{"reports", "a/b"}) {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if st := decoded[gateStats](t, ask(h, "GET /stats/a/b", ""), 200); st.Name != "a/b" {
		t.Errorf("a gate with a slash: %+v", st)
	}
	if st := decoded[gateStats](t, ask(h, "GET /stats/a%2Fb", ""), 200); st.Name != "a/b" {
		t.Errorf("a gate with an escaped slash: %+v", st)
	}
	for _, path := range []string{"/nope", "/stats/", "//", "/health/", "/gates//max_in_flight", "/gates/reports", "/metrics/x"} {
		got := decoded[failure](t, ask(h, "GET "+path, ""), 404)
		if !slices.Contains(got.Endpoints, "GET,HEAD /stats/{gate}") || !slices.Contains(got.Endpoints, "DELETE,POST /drain") {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

func TestWrongMethodsSayWhichAreRight(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	for _, c := range []struct{ what, allow string }{
		{"POST /health", "GET, HEAD"}, {"PUT /stats", "GET, HEAD"}, {"OPTIONS /metrics", "GET, HEAD"}, {"DELETE /", "GET, HEAD"},
		{"GET /reload", "POST"}, {"GET /drain", "DELETE, POST"}, {"HEAD /drain", "DELETE, POST"},
		{"POST /gates/reports/max_in_flight", "DELETE, GET, HEAD, PUT"}, {"FOO1 /stats/reports", "GET, HEAD"},
	} {
		w := ask(h, c.what, "")
		if w.Code != 405 || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s: %d, Allow %q, want 405 and %q", c.what, w.Code, w.Header().Get("Allow"), c.allow)
		}
	}
	if p.reloads != 0 || p.Draining() {
		t.Error("a wrong method changed something")
	}
}

func TestHeadAnswersWithoutABody(t *testing.T) {
	h := Handler(program(t, "reports"), metricsHandler(), local)
	for _, path := range []string{"/", "/health", "/ready", "/stats", "/stats/reports", "/holders", "/gates", "/gates/reports/max_in_flight"} {
		if w := ask(h, "HEAD "+path, ""); w.Code != 200 || w.Body.Len() != 0 || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("HEAD %s: %d with %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if w := ask(h, "HEAD /stats/nope", ""); w.Code != 404 || w.Body.Len() != 0 {
		t.Errorf("HEAD of a gate that is not: %d with %d bytes", w.Code, w.Body.Len())
	}
}

func TestPageHasLinksThatWork(t *testing.T) {
	p := &fakeProgram{book: story.NewBook(), gates: []*forebay.Gate{newGate(t, forebay.Config{Name: "a/b"})}}
	h := Handler(p, metricsHandler(), local)
	w := ask(h, "GET /", "")
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	links := strings.Split(w.Body.String(), `href="`)[1:]
	if len(links) < 8 {
		t.Errorf("%d links", len(links))
	}
	for _, link := range links {
		path, _, _ := strings.Cut(link, `"`)
		if got := ask(h, "GET "+path, ""); got.Code != 200 {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
}

// TestPageRunsOurScriptOnly: a browser takes the one that is in the page, by its hash, and
// no other; what comes from clients cannot become one.
func TestPageRunsOurScriptOnly(t *testing.T) {
	p := program(t, "reports")
	p.book.Observe(forebay.Event{Gate: "reports", Route: "<script>evil()</script>", RequestID: "x", Decision: forebay.RejectedBusy})
	w := ask(Handler(p, metricsHandler(), local), "GET /", "")
	parts := strings.Split(w.Body.String(), "<script>")
	if len(parts) != 2 {
		t.Fatalf("%d scripts, want 1:\n%s", len(parts)-1, w.Body)
	}
	script, _, _ := strings.Cut(parts[1], "</script>")
	hash := sha256.Sum256([]byte(script))
	want := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "';"
	if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, want) || strings.Contains(got, "unsafe-eval") {
		t.Errorf("the policy is %q, want %q in it", got, want)
	}
	if !strings.Contains(w.Body.String(), "&lt;script&gt;evil()") {
		t.Error("the last refusal is not on the page")
	}
}

func TestMetricsAreServedAsTheyAre(t *testing.T) {
	w := ask(Handler(program(t), metricsHandler(), local), "GET /metrics", "")
	wantString(t, "scrape", w.Body.String(), "forebay_limit 2\n")
}

func TestReload(t *testing.T) {
	p := program(t, "reports")
	h := Handler(p, metricsHandler(), local)
	got := decoded[map[string]any](t, ask(h, "POST /reload", ""), 200)
	if got["status"] != "reloaded" || got["config_hash"] != "ab12" {
		t.Errorf("answer = %v", got)
	}
	p.reloadErr = errors.New("forebay.yaml:3:5: max_in_flight is 0; it must be at least 1\nforebay.yaml:9:1: unknown key \"rutes\"; did you mean routes?\n")
	bad := decoded[failure](t, ask(h, "POST /reload", ""), 422)
	if len(bad.Problems) != 2 || !strings.HasPrefix(bad.Problems[1], "forebay.yaml:9:1: ") || bad.Error == "" {
		t.Errorf("answer = %+v", bad)
	}
	if w := ask(h, "POST /reload", "{}"); w.Code != 400 || p.reloads != 2 {
		t.Errorf("with a body: %d, %d reloads", w.Code, p.reloads)
	}
}

func TestReloadGoesOnWithoutWhoAsked(t *testing.T) {
	p := program(t, "reports")
	left, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequest("POST", "/reload", nil).WithContext(left)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	Handler(p, metricsHandler(), local).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestDrainAndResume(t *testing.T) {
	p := program(t, "reports", "orders")
	h := Handler(p, metricsHandler(), local)
	hold(t, p.gates[0], "x")
	if got := decoded[drained](t, ask(h, "POST /drain", ""), 200); got != (drained{"draining", 1, 0}) {
		t.Errorf("drain: %+v", got)
	}
	for _, path := range []string{"/health", "/ready"} {
		wantString(t, path, decoded[forebay.Report](t, ask(h, "GET "+path, ""), 503).Status, "draining")
	}
	if got := decoded[drained](t, ask(h, "DELETE /drain", ""), 200); got != (drained{"ok", 1, 0}) {
		t.Errorf("resume: %+v", got)
	}
	wantString(t, "ready", decoded[statusOnly](t, ask(h, "GET /ready", ""), 200).Status, "ready")
	if w := ask(h, "POST /drain", "now"); w.Code != http.StatusBadRequest || p.Draining() {
		t.Errorf("with a body: %d", w.Code)
	}
}
