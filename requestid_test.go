package forebay

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHarmlessRequestIDsAreKept(t *testing.T) {
	for _, id := range []string{
		"a", "4bf92f35", "Az09-_.:/+=@", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		strings.Repeat("a", 128),
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Request-Id", id)
		if got := requestID(httptest.NewRecorder(), r); got != id {
			t.Errorf("%q became %q", id, got)
		}
	}
}

var harmfulIDs = []string{
	"", " ", "a b", `a"b`, `a\b`, "a'b", "a\r\nSet-Cookie: x", "a\nb", "a\x00b", "a\x7fb", "a\tb",
	"<script>", "a,b", "a;b", "{a}", "é", "a\u2028b", "\xff", "日本", "%0d%0a",
	strings.Repeat("a", 129), strings.Repeat("a", 100_000),
}

func TestHarmfulRequestIDsAreReplaced(t *testing.T) {
	made := map[string]bool{}
	for _, id := range harmfulIDs {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Request-Id"] = []string{id}
		got := requestID(httptest.NewRecorder(), r)
		if len(got) != 16 || strings.Trim(got, "0123456789abcdef") != "" {
			t.Errorf("%q became %q", id, got)
		}
		if made[got] {
			t.Errorf("%q was made twice", got)
		}
		made[got] = true
	}
}

// The id is the same in header, body, decision and whatever the client sent.
func TestRequestIDIsTheSameEverywhere(t *testing.T) {
	for _, observed := range []bool{false, true} {
		for _, sent := range append([]string{"4bf92f35"}, harmfulIDs...) {
			seen := &httpEvents{}
			config := Config{MaxInFlight: 1}
			if observed {
				config.Observers = []Observer{seen}
			}
			g := httpGate(t, config)
			lease, _ := g.TryAcquire(Call{})
			r := httptest.NewRequest("GET", "/", nil)
			r.Header["X-Request-Id"] = []string{sent}
			w := httptest.NewRecorder()
			g.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(w, r)
			lease.Release()

			body := parseRefusal(t, w.Body.Bytes())
			ids := w.Header()["X-Request-Id"]
			if len(ids) != 1 || ids[0] != body.RequestID || (sent == "4bf92f35") != (body.RequestID == sent) {
				t.Errorf("sent %q, header %q, body %q", sent, ids, body.RequestID)
			}
			for _, e := range seen.all() {
				if e.Decision == RejectedBusy && e.RequestID != body.RequestID {
					t.Errorf("sent %q, event %q, body %q", sent, e.RequestID, body.RequestID)
				}
			}
		}
	}
}

// What can come over a real connection, with everything that a client may send.
func TestRequestIDOverTheWire(t *testing.T) {
	_, srv := fullServer(t, 1, asItIs)
	for _, sent := range []string{"4bf92f35", `a"b`, "a b", "é", "\xff", strings.Repeat("a", 129)} {
		conn := dial(t, srv)
		conn.send("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + sent + "\r\n\r\n")
		res := conn.answer("GET")
		body := parseRefusal(t, res.body)
		if id := res.Header.Get("X-Request-Id"); id != body.RequestID || (id == sent) != (sent == "4bf92f35") {
			t.Errorf("sent %q, header %q, body %q", sent, id, body.RequestID)
		}
	}
}

// Ids are made only when somebody sees them: holders and events have one, and the
// calls of a gate that nobody watches have none.
func TestRequestIDOnlyWhenSomebodySeesIt(t *testing.T) {
	for name, config := range map[string]Config{
		"tracked":  {MaxInFlight: 1, Track: true},
		"observed": {MaxInFlight: 1, Observers: []Observer{&httpEvents{}}},
		"bare":     {MaxInFlight: 1},
		"waits":    {MaxInFlight: 1, MaxWait: 1},
	} {
		g := httpGate(t, config)
		h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			for _, holder := range g.Holders() {
				if len(holder.RequestID) != 16 || holder.RemoteIP != "192.0.2.1" {
					t.Errorf("%s: holder %+v", name, holder)
				}
			}
		}))
		r := httptest.NewRequest("GET", "/", nil)
		w := &touchedWriter{header: http.Header{}}
		allocates := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) })
		if seen := name == "tracked" || name == "observed"; !seen && allocates > 0 {
			t.Errorf("%s: %v allocations for an accepted request", name, allocates)
		}
	}
}

func TestRemoteIP(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:1234":      "192.0.2.1",
		"[2001:db8::1]:443":   "2001:db8::1",
		"[fe80::1%eth0]:4711": "fe80::1",
		"@":                   "@",
		"":                    "",
		"pipe":                "pipe",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = addr
		if got := remoteIP(r); got != want {
			t.Errorf("%q: %q, want %q", addr, got, want)
		}
	}
}

// An id that the answer says already is the request's, also for a refusal.
func TestRequestIDOfTheAnswerWins(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1})
	lease, _ := g.TryAcquire(Call{})
	defer lease.Release()
	r := httptest.NewRequest("GET", "/reports/7", nil)
	r.RemoteAddr = "192.0.2.7:4711"
	w := httptest.NewRecorder()
	call := CallOf(w, r)
	if call.RemoteIP != "192.0.2.7" || !harmlessID(call.RequestID) {
		t.Errorf("CallOf = %+v", call)
	}
	_, err := g.Acquire(r.Context(), call)
	Refuse(w, r, err)
	if got := w.Header().Get("X-Request-Id"); got != call.RequestID {
		t.Errorf("the answer is called %q, the call %q", got, call.RequestID)
	}
	if !strings.Contains(w.Body.String(), call.RequestID) {
		t.Errorf("the body %s does not name the call %q", w.Body, call.RequestID)
	}
}
