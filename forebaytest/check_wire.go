package forebaytest

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

// wireChecks are about how a refusal looks to the client.
var wireChecks = []check{
	{"QU-19 a refusal is a complete answer", checkRefusal},
	{"RJ-05 every reason that waiting cures has a Retry-After", checkReasons},
	{"RJ-04 Retry-After is whole seconds within its bounds", checkRetryAfter},
	{"RJ-06 Retry-After is spread", checkSpread},
	{"RJ-09 429 when configured", checkStatus},
	{"RJ-05 what never fits is 413 without Retry-After", checkTooLarge},
	{"RJ-13 HEAD then GET on one connection while full", checkHead},
	{"RJ-14 problem details for those who ask", checkProblem},
	{"RJ-08 preflights pass a full gate", checkPreflight},
	{"the request id is repeated if harmless", checkHarmlessID},
	{"the request id is replaced if harmful", checkHarmfulID},
}

// fullRig returns a rig with one slot, which is taken.
func fullRig(t testing.TB, open Opener, f forebay.Refusal) *rig {
	t.Helper()
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, Refusal: f}, nil)
	r.send("/held")
	return r
}

// with returns a mark that sets a header as it is.
func with(name, value string) func(*http.Request) {
	return func(req *http.Request) { req.Header[name] = []string{value} }
}

// expectHeader fails the check unless the answer has this value, once.
func (r *rig) expectHeader(x *exchange, name, want string) {
	r.Helper()
	if got := x.header.Values(name); !slices.Equal(got, []string{want}) {
		r.Errorf("%s is %q, want %q once", name, got, want)
	}
}

// checkRefusal reads one refusal to the last byte.
func checkRefusal(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	x := r.send("/refused", with("X-Request-Id", "4bf92f35"))
	r.expectRefused(x, forebay.RejectedBusy, 0)
	r.expectHeader(x, "Content-Type", "application/json")
	r.expectHeader(x, "Cache-Control", "no-store")
	r.expectHeader(x, "X-Request-Id", "4bf92f35")
	r.expectHeader(x, "Content-Length", strconv.Itoa(len(x.body)))
	r.expectHeader(x, "Proxy-Status", `forebay; error=connection_limit_reached; details="`+gateName+` rejected_busy"`)
	r.expectRetryAfter(x, 1, 30)
	if x.closes {
		r.Errorf("the refusal closes the connection, want it kept: only a drain ends it")
	}
	want := map[string]any{
		"error": "server_busy", "reason": "rejected_busy", "gate": gateName, "requestId": "4bf92f35",
	}
	got := map[string]any{}
	if err := json.Unmarshal([]byte(x.body), &got); err != nil || len(got) != len(want) {
		r.Errorf("the body is %q (%v), want JSON with %v", x.body, err, want)
	}
	for key, value := range want {
		if got[key] != value {
			r.Errorf("%s in the body is %v, want %v", key, got[key], value)
		}
	}
	r.finish()
}

// retryAfter returns the Retry-After of an answer, -1 if it is not one whole
// number of seconds.
func (x *exchange) retryAfter() int {
	values := x.header.Values("Retry-After")
	if len(values) != 1 {
		return -1
	}
	n, err := strconv.Atoi(values[0])
	if err != nil || strconv.Itoa(n) != values[0] {
		return -1
	}
	return n
}

func (r *rig) expectRetryAfter(x *exchange, least, most int) {
	r.Helper()
	if n := x.retryAfter(); n < least || n > most {
		r.Errorf("Retry-After of %s is %q, want whole seconds from %d to %d", x.outcome(), x.header.Values("Retry-After"), least, most)
	}
}

// checkReasons meets the reasons that a gate of one process can have, one after
// the other, except the drain's, which has a check of its own.
func checkReasons(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1, MaxWait: 50 * ms, MaxWaiting: 1}, nil)
	r.send("/held")
	timeout := r.send("/waits")
	busy := r.send("/busy")
	r.pass(50 * ms)
	r.expectRefused(busy, forebay.RejectedBusy, 0)
	r.expectRefused(timeout, forebay.RejectedTimeout, 50*ms)
	all := []*exchange{timeout, busy}
	if r.sys.SetLimit != nil {
		r.setLimit(0)
		closed := r.send("/closed")
		r.expectRefused(closed, forebay.RejectedBusy, 50*ms)
		all = append(all, closed)
		r.setLimit(1)
	}
	for _, x := range all {
		r.expectRetryAfter(x, 1, 30)
		r.expectHeader(x, "Cache-Control", "no-store")
	}
	r.finish()
}

// checkRetryAfter sends many refusals of a gate with bounds of its own: none is
// outside, and none is a fraction.
func checkRetryAfter(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{RetryAfter: forebay.RetryAfter{Min: 2500 * ms, Max: 4 * time.Second}})
	for range 50 {
		r.expectRetryAfter(r.send("/bounded"), 3, 4)
	}
	r.finish()
}

// checkSpread sends many refusals at once: not all may be sent back at the same
// second. By chance alone they would be once in 3^99 runs.
func checkSpread(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	seen := map[int]bool{}
	for _, x := range r.burst(100, "/crowd") {
		seen[x.retryAfter()] = true
	}
	if len(seen) < 2 {
		r.Errorf("100 refused clients were told the same Retry-After, want it spread")
	}
	r.finish()
}

// checkStatus configures 429.
func checkStatus(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{Status: http.StatusTooManyRequests})
	x := r.send("/refused")
	if x.status != http.StatusTooManyRequests || x.refusal().Reason != "rejected_busy" {
		r.Errorf("a refusal is %q, want %d rejected_busy", x.outcome(), http.StatusTooManyRequests)
	}
	r.expectRetryAfter(x, 1, 30)
	r.finish()
}

// checkTooLarge asks for more than the gate ever has. Waiting cures nothing, and
// so the client is not told to.
func checkTooLarge(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 3, MaxWait: time.Second, MaxWaiting: 3}, nil)
	x := r.send("/large", r.costs(4))
	r.expectRefused(x, forebay.RejectedTooLarge, 0)
	if after, ok := x.header["Retry-After"]; ok {
		r.Errorf("Retry-After is %q, want none", after)
	}
	if got := x.refusal().Error; got != "too_large" {
		r.Errorf("error in the body is %q, want too_large", got)
	}
	r.expectHeader(x, "Cache-Control", "no-store")
	r.finish()
}

// checkHead refuses a HEAD and then two GETs on one connection: the first has no
// body, and the connection goes on.
func checkHead(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	w := r.wire()
	w.expectBody(w.ask(http.MethodHead, "/head"), http.StatusServiceUnavailable, "")
	w.expectBody(w.ask(http.MethodGet, "/get"), http.StatusServiceUnavailable, "rejected_busy")
	r.backend.Open()
	r.pass(0)
	w.expectBody(w.ask(http.MethodGet, "/get"), http.StatusOK, "ok")
	r.backend.Shut()
	r.finish()
}

// expectBody reads the body of an answer and fails the check unless the status is
// as wanted and part is in the body; an empty part means an empty body.
func (w *wire) expectBody(resp *http.Response, status int, part string) {
	r := w.rig
	r.Helper()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != status || err != nil || !strings.Contains(string(body), part) || (part == "") != (len(body) == 0) {
		r.Errorf("%s is answered by %d %q (%v), want %d and %q", resp.Request.Method, resp.StatusCode, body, err, status, part)
	}
	if resp.Close {
		r.Errorf("%s: the answer closes the connection", resp.Request.Method)
	}
	if n := w.from.Buffered(); n > 0 {
		rest, _ := w.from.Peek(n)
		r.Errorf("%s: after the answer came %q", resp.Request.Method, rest)
	}
}

// checkProblem asks for RFC 9457, and then for anything.
func checkProblem(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	x := r.send("/problem", with("Accept", "application/problem+json"))
	r.expectHeader(x, "Content-Type", "application/problem+json")
	var p struct{ Status int }
	if err := json.Unmarshal([]byte(x.body), &p); err != nil || p.Status != http.StatusServiceUnavailable {
		r.Errorf("the body is %q (%v), want problem details with status 503", x.body, err)
	}
	for _, accept := range []string{"", "*/*", "application/json", ";;nonsense"} {
		x := r.send("/other", with("Accept", accept))
		r.expectHeader(x, "Content-Type", "application/json")
	}
	page := r.send("/page", with("Accept", "text/html,application/xhtml+xml,*/*;q=0.8"))
	page.left.Store(true) // its reason is not in JSON
	r.expectHeader(page, "Content-Type", "text/html; charset=utf-8")
	if !strings.Contains(page.body, "try again") || page.status != http.StatusServiceUnavailable {
		r.Errorf("a browser gets %d %q, want a page", page.status, page.body)
	}
	r.finish()
}

// checkPreflight asks a closed gate for leave to ask: that is never refused, and a
// plain OPTIONS is.
func checkPreflight(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 1}, nil)
	r.setLimit(0)
	r.backend.Open()
	x := r.send("/preflight", options, with("Origin", "https://page.example"), with("Access-Control-Request-Method", "PUT"))
	if !x.over() || x.status != http.StatusOK {
		r.Errorf("a preflight ended as %q, want the backend's answer", x.outcome())
	}
	r.exchanges = nil // it passes no gate, and so is in no book
	r.sent.Store(0)
	r.expectRefused(r.send("/plain", options), forebay.RejectedBusy, 0)
	r.backend.Shut()
	r.setLimit(1)
	r.finish()
}

func options(req *http.Request) { req.Method = http.MethodOptions }

// checkHarmlessID sends ids that can stand in a header, a log line and JSON.
func checkHarmlessID(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	for _, id := range []string{"4bf92f35", "A.b-c_d", "0af7651916cd43dd8448eb211c80319c", strings.Repeat("x", 64)} {
		x := r.send("/refused", with("X-Request-Id", id))
		r.expectHeader(x, "X-Request-Id", id)
		if got := x.refusal().RequestID; got != id {
			r.Errorf("requestId in the body is %q, want %q", got, id)
		}
	}
	r.finish()
}

// checkHarmfulID sends ids that must not be repeated, and none: the answer has
// another one, in the header and in a body that is still JSON.
func checkHarmfulID(t testing.TB, open Opener) {
	r := fullRig(t, open, forebay.Refusal{})
	seen := map[string]bool{}
	for _, id := range []string{"", `x","admin":"`, "<script>", "a b", "\x80\xff", "caf\u00e9", strings.Repeat("x", 4000)} {
		x := r.send("/refused", with("X-Request-Id", id))
		made := x.refusal().RequestID
		if made == "" || made == id || seen[made] {
			r.Errorf("for the id %.20q the requestId in the body %.80q is %.20q, want a new one", id, x.body, made)
		}
		seen[made] = true
		r.expectHeader(x, "X-Request-Id", made)
	}
	r.finish()
}
