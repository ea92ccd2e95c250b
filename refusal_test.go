package forebay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/forebay/internal/feed"
)

// refusalBody is what clients read in a refusal.
type refusalBody struct {
	Type      *string `json:"type"`
	Title     *string `json:"title"`
	Status    *int    `json:"status"`
	Error     string  `json:"error"`
	Reason    string  `json:"reason"`
	Gate      string  `json:"gate"`
	RequestID string  `json:"requestId"`
}

// parseRefusal fails on whatever is not exactly one JSON object of known keys.
func parseRefusal(t testing.TB, body []byte) (got refusalBody) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil || d.More() || !json.Valid(body) {
		t.Errorf("body %q: %v", body, err)
	}
	return got
}

// refusedDecisions are those that end in an answer.
var refusedDecisions = []Decision{RejectedBusy, RejectedTimeout, RejectedDeadline, RejectedTooLarge, RejectedDraining, RejectedStore}

// rejectedBy is the error with which a gate refuses.
func rejectedBy(g *Gate, d Decision) error { return g.settings.Load().rejected[d] }

// refusedWith records one refusal of a request that is called 4bf92f35.
func refusedWith(g *Gate, d Decision, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Request-Id", "4bf92f35")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Refuse(w, r, rejectedBy(g, d))
	return w
}

var dateLine = regexp.MustCompile(`Date: [^\r]*\r\n`)

// The refusal, byte for byte.
func TestRefusalOnTheWire(t *testing.T) {
	const plain = "HTTP/1.1 503 Service Unavailable\r\n" +
		"Cache-Control: no-store\r\n" +
		"Content-Type: application/json\r\n" +
		"Proxy-Status: forebay; error=connection_limit_reached; details=\"reports %[1]s\"\r\n" +
		"Retry-After: 2\r\n" +
		"X-Request-Id: 4bf92f35\r\n" +
		"Content-Length: %[2]d\r\n\r\n%[3]s"
	full := func(reason string) string {
		body := `{"error":"server_busy","reason":"` + reason + `","gate":"reports","requestId":"4bf92f35"}`
		return fmt.Sprintf(plain, reason, len(body), body)
	}
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1})
	for d, want := range map[Decision]string{
		RejectedBusy:     full("rejected_busy"),
		RejectedTimeout:  full("rejected_timeout"),
		RejectedDeadline: full("rejected_deadline"),
		RejectedStore:    full("rejected_store"),
		RejectedDraining: strings.Replace(full("rejected_draining"), "Content-Type", "Connection: close\r\nContent-Type", 1),
		RejectedTooLarge: "HTTP/1.1 413 Request Entity Too Large\r\n" +
			"Cache-Control: no-store\r\n" +
			"Content-Type: application/json\r\n" +
			"Proxy-Status: forebay; error=http_request_denied; details=\"reports rejected_too_large\"\r\n" +
			"X-Request-Id: 4bf92f35\r\n" +
			"Content-Length: 92\r\n\r\n" +
			`{"error":"too_large","reason":"rejected_too_large","gate":"reports","requestId":"4bf92f35"}`,
	} {
		srv, _ := listen(t, 1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Refuse(w, r, rejectedBy(g, d))
		}))
		conn := dial(t, srv)
		conn.send("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: 4bf92f35\r\nConnection: close\r\n\r\n")
		got := dateLine.ReplaceAllString(conn.rest(), "")
		want = strings.Replace(want, "Content-Length: 92", fmt.Sprint("Content-Length: ", len(want)-strings.Index(want, "\r\n\r\n")-4), 1)
		// The client asked for the close, so net/http says it in every answer.
		if got = strings.Replace(got, "Connection: close\r\n", "", 1); d == RejectedDraining {
			want = strings.Replace(want, "Connection: close\r\n", "", 1)
		}
		if got != want {
			t.Errorf("%v:\n got %q\nwant %q", d, got, want)
		}
	}
}

func TestProblemOnTheWire(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Refusal: Refusal{Problem: true}})
	for d, want := range map[Decision]string{
		RejectedBusy: `{"type":"about:blank","title":"Service Unavailable","status":503,` +
			`"error":"server_busy","reason":"rejected_busy","gate":"reports","requestId":"4bf92f35"}`,
		RejectedTooLarge: `{"type":"about:blank","title":"Request Entity Too Large","status":413,` +
			`"error":"too_large","reason":"rejected_too_large","gate":"reports","requestId":"4bf92f35"}`,
	} {
		w := refusedWith(g, d)
		if got := w.Body.String(); got != want || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%v: %v %s\nwant %s", d, w.Header(), got, want)
		}
	}
}

// Every combination of what can be set gives valid JSON and tells what it may.
func TestRefusalInEveryCombination(t *testing.T) {
	for i := range 1 << 3 {
		for _, status := range []int{0, 429, 499, 503, 599} {
			look := Refusal{Status: status, Problem: i&1 > 0, HideGate: i&2 > 0, HideReason: i&4 > 0}
			g := httpGate(t, Config{Name: "a-Z_9./:", MaxInFlight: 1, Refusal: look})
			for _, d := range refusedDecisions {
				checkRefusal(t, g, look, d)
			}
		}
	}
}

func checkRefusal(t *testing.T, g *Gate, look Refusal, d Decision) {
	t.Helper()
	w := refusedWith(g, d)
	want := refusalBody{Error: "server_busy", Reason: d.String(), Gate: g.Name(), RequestID: "4bf92f35"}
	status := 503
	if look.Status != 0 {
		status = look.Status
	}
	if d == RejectedTooLarge {
		status, want.Error = 413, "too_large"
	}
	if look.HideGate {
		want.Gate = ""
	}
	if look.HideReason {
		want.Reason = ""
	}
	got := parseRefusal(t, w.Body.Bytes())
	if got.Problem() != look.Problem || w.Code != status {
		t.Errorf("%+v %v: %d, problem %v", look, d, w.Code, got.Problem())
	}
	if look.Problem && (*got.Type != "about:blank" || *got.Title != http.StatusText(status) || *got.Status != status) {
		t.Errorf("%+v %v: %q %q %d", look, d, *got.Type, *got.Title, *got.Status)
	}
	got.Type, got.Title, got.Status = nil, nil, nil
	if got != want {
		t.Errorf("%+v %v: %+v, want %+v", look, d, got, want)
	}
	if retry := w.Header().Get("Retry-After"); (retry == "") != (d == RejectedTooLarge) {
		t.Errorf("%+v %v: Retry-After %q", look, d, retry)
	}
	told := strings.TrimSpace(want.Gate + " " + want.Reason)
	checkProxyStatus(t, w.Header()["Proxy-Status"], told)
	if all := fmt.Sprint(w.Header(), w.Body); look.HideGate && strings.Contains(all, g.Name()) ||
		look.HideReason && strings.Contains(all, d.String()) {
		t.Errorf("%+v %v tells what is hidden: %s", look, d, all)
	}
}

// Problem reports whether the body has all that a problem has, or nothing of it.
func (b refusalBody) Problem() bool { return b.Type != nil && b.Title != nil && b.Status != nil }

var sfItem = regexp.MustCompile(`^forebay; error=([a-z_]+)(?:; details="([ -!#-\[\]-~]*)")?$`)

// checkProxyStatus parses the header as the list of RFC 9209: one item, a token
// with parameters, of which error is a token and details a string of RFC 9651.
func checkProxyStatus(t *testing.T, lines []string, details string) {
	t.Helper()
	if len(lines) != 1 {
		t.Errorf("Proxy-Status %q", lines)
		return
	}
	m := sfItem.FindStringSubmatch(lines[0])
	known := []string{"connection_limit_reached", "http_request_denied"}
	if m == nil || !slices.Contains(known, m[1]) || m[2] != details {
		t.Errorf("Proxy-Status %q, want details %q", lines[0], details)
	}
}

// RJ-05 and TM-04: each reason is provoked alone. The word is the same in the
// error, the event, the body and the header; one count moves; and there is a
// Retry-After wherever waiting helps.
func TestRJ05TM04EachReasonAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		config  Config
		want    Decision
		provoke func(t *testing.T, g *Gate) (context.Context, Call)
	}{
		{"no slot, no line", Config{}, RejectedBusy, provokeFull},
		{"line full", Config{MaxWait: time.Minute, MaxWaiting: 1}, RejectedBusy, provokeLineFull},
		{"patience over", Config{MaxWait: time.Millisecond}, RejectedTimeout, provokeFull},
		{"deadline", Config{MaxWait: time.Minute}, RejectedDeadline, provokeDeadline},
		{"closed", Config{}, RejectedBusy, provokeClosed},
		{"draining", Config{}, RejectedDraining, provokeDraining},
		{"the store is away", Config{Cluster: &source{}}, RejectedStore, provokeStore},
		{"the store does not answer", Config{Cluster: &source{}}, RejectedStore, provokeNothing},
		{"can never fit", Config{}, RejectedTooLarge, provokeTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := &httpEvents{}
			c.config.Name, c.config.MaxInFlight, c.config.Observers = "reports", 1, []Observer{seen}
			g := httpGate(t, c.config)
			ctx, call := c.provoke(t, g)
			before, past := g.Stats(), len(seen.all())

			call.RequestID = "4bf92f35"
			_, err := g.Acquire(ctx, call)
			w := httptest.NewRecorder()
			Refuse(w, httptest.NewRequest("GET", "/", nil), fmt.Errorf("serve: %w", err))

			body := parseRefusal(t, w.Body.Bytes())
			var rejected *RejectedError
			if !errors.As(err, &rejected) || rejected.Decision() != c.want || rejected.Gate() != g {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if e := seen.all()[past]; e.Decision != c.want || body.Reason != c.want.String() || e.RequestID != "4bf92f35" {
				t.Errorf("event %+v, body %+v", e, body)
			}
			checkProxyStatus(t, w.Header()["Proxy-Status"], "reports "+c.want.String())
			if got := w.Header().Get("Retry-After"); (got != "") != (c.want != RejectedTooLarge) {
				t.Errorf("Retry-After %q", got)
			}
			after := g.Stats()
			if n := countOf(after, c.want) - countOf(before, c.want); n != 1 || after.Rejected()-before.Rejected() != 1 {
				t.Errorf("%d of %v, %d refusals", n, c.want, after.Rejected()-before.Rejected())
			}
		})
	}
}

func countOf(st Stats, d Decision) uint64 {
	return map[Decision]uint64{
		RejectedBusy: st.RejectedBusy, RejectedTimeout: st.RejectedTimeout, RejectedDeadline: st.RejectedDeadline,
		RejectedTooLarge: st.RejectedTooLarge, RejectedDraining: st.RejectedDraining,
		RejectedStore: st.RejectedStore,
	}[d]
}

func provokeFull(t *testing.T, g *Gate) (context.Context, Call) {
	lease, _ := g.Acquire(t.Context(), Call{})
	t.Cleanup(lease.Release)
	return t.Context(), Call{}
}

func provokeStore(t *testing.T, g *Gate) (context.Context, Call) {
	g.Config().Cluster.(*source).Alone(feed.Alone{Refuse: true})
	return t.Context(), Call{}
}

func provokeNothing(t *testing.T, _ *Gate) (context.Context, Call) { return t.Context(), Call{} }

func provokeLineFull(t *testing.T, g *Gate) (context.Context, Call) {
	ctx, call := provokeFull(t, g)
	waits, leave := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = g.Acquire(waits, Call{})
	}()
	waitUntil(t, "somebody waits", func() bool { return g.Stats().Waiting == 1 })
	t.Cleanup(func() { leave(); <-gone })
	return ctx, call
}

func provokeDeadline(t *testing.T, g *Gate) (context.Context, Call) {
	ctx, call := provokeFull(t, g)
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	t.Cleanup(cancel)
	return ctx, call
}

func provokeClosed(t *testing.T, g *Gate) (context.Context, Call) {
	if err := g.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	return t.Context(), Call{}
}

func provokeDraining(t *testing.T, g *Gate) (context.Context, Call) {
	if err := g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	return t.Context(), Call{}
}

func provokeTooLarge(t *testing.T, _ *Gate) (context.Context, Call) {
	return t.Context(), Call{Cost: 2}
}
