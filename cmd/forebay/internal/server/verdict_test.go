package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

// TestVerdictIsToldEverywhere: in /stats, on the page, in the metrics and, when it comes
// and when it goes, in the log.
func TestVerdictIsToldEverywhere(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	if got := r.ask("GET", "/stats", "").body; !strings.Contains(got, `"verdicts":[]`) {
		t.Errorf("at the start: %s", got)
	}
	for range 12 { // seconds, of simulated calls
		for range 100 {
			r.seen.Observe(forebay.Event{Gate: "b", Decision: forebay.RejectedBusy, Limit: 2})
			r.seen.Early("b")
		}
		r.say(r.seen.Tick(.1))
	}
	const metric = `forebay_verdict{gate="b",verdict="retry_storm"}`
	if got := r.scrape(metric); got != "1" {
		t.Errorf("%s is %q", metric, got)
	}
	if got := r.scrape(`forebay_early_retries_total{gate="b"}`); got != "1200" {
		t.Errorf("early retries %q", got)
	}
	for path, want := range map[string]string{"/stats": `"verdict":"retry_storm"`, "/": "<strong>b: retry_storm.</strong>", "/history/b": `"early":100`} {
		if got := r.ask("GET", path, "").body; !strings.Contains(got, want) {
			t.Errorf("%s has no %s: %s", path, want, got)
		}
	}
	r.logged(`"level":"WARN"`, `"msg":"verdict"`, `"gate":"b"`, `"verdict":"retry_storm"`, `"remedy":"make the callers heed Retry-After`)
	for range 40 {
		r.say(r.seen.Tick(.1))
	}
	r.logged(`"level":"INFO"`, `"msg":"verdict is over"`, `"gate":"b"`, `"verdict":"retry_storm"`)
	if got := r.scrape(metric); got != "" {
		t.Errorf("%s is still %q", metric, got)
	}
}

// TestLongWaitsAreTold: in the log, the metrics and /health, which stays ok.
func TestLongWaitsAreTold(t *testing.T) {
	r := start(t, "gates:\n  g: {max_in_flight: 2, max_wait: 100ms}\nroutes: [{match: /, gate: g}]\n")
	for range 30 {
		for range 100 {
			r.seen.Observe(forebay.Event{Gate: "g", Decision: forebay.Accepted, Waited: 80 * time.Millisecond, Limit: 2})
		}
		r.say(r.seen.Tick(.1))
	}
	r.logged(`"msg":"calls wait for long"`, `"gate":"g"`, `of at most 100ms`)
	if got := r.scrape(`forebay_waits_long{gate="g"}`); got != "1" {
		t.Errorf("the metric is %q", got)
	}
	var health struct {
		Status string
		Gates  []struct {
			Name      string
			WaitsLong bool `json:"waits_long"`
		}
	}
	if err := json.Unmarshal([]byte(r.ask("GET", "/health", "").body), &health); err != nil {
		t.Fatal(err)
	}
	if health.Status != "ok" || len(health.Gates) != 1 || !health.Gates[0].WaitsLong {
		t.Errorf("/health says %+v", health)
	}
	for range 40 {
		r.say(r.seen.Tick(.1))
	}
	r.logged(`"msg":"calls do not wait for long any more"`)
}

// TestEarlyRetriesAreSeen: the same request of the same client before its Retry-After is
// over, and nothing else.
func TestEarlyRetriesAreSeen(t *testing.T) {
	r := start(t, "gates:\n  b: {max_in_flight: 2, refuse: {retry_after: 10m}}\nroutes: [{match: /, gate: b}]\n")
	running := r.call(2, "/b/hold")
	r.gateIs("b", 2, 0)
	early := func() string { return r.scrape(`forebay_early_retries_total{gate="b"}`) }
	ask := func(path string, headers ...string) {
		t.Helper()
		if got := r.get(path, headers...); got.status != http.StatusServiceUnavailable {
			t.Fatalf("%s: status %d", path, got.status)
		}
	}
	ask("/b/x?1")
	ask("/b/x?2")
	ask("/b/x?1", "User-Agent", "another")
	ask("/b/x?1", "Cookie", "another=1")
	ask("/b/x?1", "Authorization", "another")
	if got := early(); got != "0" {
		t.Errorf("%s early retries of others' requests, want none", got)
	}
	ask("/b/x?1")
	if got := early(); got != "1" {
		t.Errorf("%s early retries, want 1", got)
	}
	r.letGo(2)
	running.want(2, http.StatusOK)
}

// TestRetriesEndWithTheirTime: who comes when it was told to is not early, and then looking
// costs nothing any more.
func TestRetriesEndWithTheirTime(t *testing.T) {
	rt := newRetries()
	req, err := http.NewRequest(http.MethodGet, "http://x/y", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.RemoteAddr = "192.0.2.7:1"
	if rt.isEarly(req) {
		t.Error("early, and told nothing")
	}
	rt.tell(req, time.Hour)
	if !rt.isEarly(req) {
		t.Error("an hour is not over")
	}
	rt.began = rt.began.Add(-2 * time.Hour) // so long ago
	if rt.isEarly(req) || rt.last.Load() != 0 {
		t.Error("early after its time")
	}
	rt.tell(req, grace) // no time at all
	if rt.isEarly(req) {
		t.Error("early after no time")
	}
}

// TestBlockedWritersAreCounted: for as long as a client reads nothing, and no longer.
func TestBlockedWritersAreCounted(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 2))
	blocked := r.seen.Blocked("b")
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /b/large HTTP/1.1\r\nHost: x\r\n\r\n")
	eventually(t, "the writer waits", func() bool { return blocked.Load() == 1 })
	conn.Close()
	eventually(t, "the writer waits no more", func() bool { return blocked.Load() == 0 })
	r.gateIs("b", 0, 0)
}

// TestRetriesOfManyClients: of two that have the same place in the table one is forgotten,
// and neither is taken for the other.
func TestRetriesOfManyClients(t *testing.T) {
	rt := newRetries()
	client := func(n int) *http.Request {
		req, err := http.NewRequest(http.MethodGet, "http://x/y", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr, req.RequestURI = "192.0.2.7:1", fmt.Sprint("/", n)
		return req
	}
	for n := range toldPlaces {
		rt.tell(client(n), time.Hour)
	}
	for n := range 10 * toldPlaces {
		if n >= toldPlaces && rt.isEarly(client(n)) {
			t.Fatalf("client %d is early, and was told nothing", n)
		}
	}
}

// TestEventsOutliveTheTimeForARequest: a stream has no end that a request has.
func TestEventsOutliveTheTimeForARequest(t *testing.T) {
	r := start(t, "timeouts: {read_header: 100ms}\n"+fmt.Sprintf(twoGates, 2))
	res, err := r.client.Get(r.admin + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for events := 0; events < 2; { // a second apart
		if !lines.Scan() {
			t.Fatalf("the stream ends after %d events: %v", events, lines.Err())
		}
		if strings.HasPrefix(lines.Text(), "data: {") {
			events++
		}
	}
}
