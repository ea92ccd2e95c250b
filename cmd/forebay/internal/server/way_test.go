package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAnswerHealth: a route can answer with the health on the data port, without a
// slot and with nothing but the status, and a reload does not call it well.
func TestAnswerHealth(t *testing.T) {
	text := "gates: {a: {max_in_flight: %s}}\nroutes: [{match: /, gate: a}, {match: /status, answer: health}]\n"
	r := start(t, fmt.Sprintf(text, "closed"))
	want := func(status int, body string) {
		t.Helper()
		if got := r.get("/status"); got.status != status || got.body != body+"\n" {
			t.Errorf("/status: %d %s; want %d %s", got.status, got.body, status, body)
		}
	}
	want(http.StatusOK, `{"status":"ok"}`)
	r.get("/x")
	want(http.StatusOK, `{"status":"degraded"}`)
	r.reload(fmt.Sprintf(text, "1"))
	want(http.StatusOK, `{"status":"degraded"}`)
	r.Drain()
	want(http.StatusServiceUnavailable, `{"status":"draining"}`)
	if n := r.backend.most.Load(); n != 0 {
		t.Errorf("the backend was asked %d times", n)
	}
}

// TestIdentity: whose request ids are kept, whose addresses are believed, and that
// backend, log, refusal and client agree about them.
func TestIdentity(t *testing.T) {
	const gates = "gates: {a: {max_in_flight: 1}, shut: {max_in_flight: closed}}\nroutes: [{match: /, gate: a}, {match: /shut/, gate: shut}]\n"
	for _, c := range []struct {
		name, config, header string
		id                   bool // what the client sends is kept
		ip                   string
	}{
		{"stranger", "", "X-Request-Id", false, "127.0.0.0"},
		{"trusted proxy", "trusted_proxies: [127.0.0.1]\n", "X-Request-Id", true, "203.0.113.0"},
		{"everybody", "request_id: {trust: everybody}\n", "X-Request-Id", true, "127.0.0.0"},
		{"nobody", "trusted_proxies: [127.0.0.1]\nrequest_id: {trust: nobody}\n", "X-Request-Id", false, "203.0.113.0"},
		{"another header", "trusted_proxies: [127.0.0.1]\nrequest_id: {header: X-Trace}\n", "X-Trace", true, "203.0.113.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, c.config+gates)
			sent := []string{c.header, "mine-1", "X-Forwarded-For", "198.51.100.9, 203.0.113.7"}
			got := r.get("/x", sent...)
			line := r.logged(`"decision":"accepted"`, `"remote_ip":"`+c.ip+`"`)
			id := field(line, "request_id")
			if kept := id == "mine-1"; kept != c.id {
				t.Errorf("logged id %q; kept = %v, want %v", id, kept, c.id)
			}
			if !strings.Contains(got.body, fmt.Sprintf("%q:[%q]", c.header, id)) {
				t.Errorf("the backend got another id than %q: %s", id, got.body)
			}
			refused := r.get("/shut/x", sent...)
			line = r.logged(`"decision":"rejected_busy"`, `"remote_ip":"`+c.ip+`"`)
			id = field(line, "request_id")
			if refused.header.Get("X-Request-Id") != id || !strings.Contains(refused.body, `"requestId":"`+id+`"`) {
				t.Errorf("log says %q, the refusal %q and %s", id, refused.header.Get("X-Request-Id"), refused.body)
			}
			if kept := id == "mine-1"; kept != c.id {
				t.Errorf("id of the refusal %q; kept = %v, want %v", id, kept, c.id)
			}
		})
	}
}

// field returns a text in a line of JSON.
func field(line, name string) string {
	_, rest, _ := strings.Cut(line, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestUpstreamFails: an upstream that does not answer, or half, and a caller that left,
// are logged, each once.
func TestUpstreamFails(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	c := r.call(1, "/hold")
	r.gateIs("a", 1, 0)
	c.leave()
	r.logged(`"level":"INFO","msg":"the caller left","status":499`)
	stream := r.dial()
	fmt.Fprint(stream, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("answer %v, %v", res, err)
	}
	r.backend.CloseClientConnections()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("half an answer counts as whole")
	}
	r.logged(`"level":"WARN","msg":"the upstream did not answer as it should","status":200`)
	r.backend.Listener.Close()
	r.backend.CloseClientConnections()
	if got := r.get("/x"); got.status != http.StatusBadGateway {
		t.Errorf("without an upstream: %+v", got)
	}
	r.logged(`"msg":"the upstream did not answer as it should","status":502`)
	r.gateIs("a", 0, 0)
}

// TestOP07Panic is OP-07: a panic ends its request alone, its connection is closed, and
// its own stack is in the log.
func TestOP07Panic(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	old := r.state.Load()
	bad := *old
	bad.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { breakDown() })
	r.state.Store(&bad)
	conn := r.dial()
	fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
		t.Errorf("an answer: %+v", res)
	}
	r.logged(`"msg":"a handler panicked"`, `"panic":"a bug"`, "breakDown")
	r.state.Store(old)
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("afterwards: %d", got.status)
	}
	eventually(t, "nobody is counted", func() bool { return r.running.size() == 0 })
}

func breakDown() { panic("a bug") }
