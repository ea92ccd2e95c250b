//go:build unix

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRefusal is acceptance 3: what a full gate answers, header by header and byte by
// byte of the body.
func TestRefusal(t *testing.T) {
	b := newBackend(t)
	p := start(t, "upstream: "+b.URL+`
request_id: {trust: everybody}
gates: {reports: {max_in_flight: 1, max_wait: 20ms, max_waiting: 1}}
routes: [{match: /, gate: reports}]
`)
	c := p.call(1, "/hold")
	p.gateIs("reports", 1, 0)
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /reports/7 HTTP/1.1\r\nHost: x\r\nX-Request-Id: 4bf92f35\r\nConnection: close\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(text), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	if lines[0] != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("status line %q", lines[0])
	}
	if want := `{"error":"server_busy","reason":"rejected_timeout","gate":"reports","requestId":"4bf92f35"}`; body != want {
		t.Errorf("body\n%s\nwant\n%s", body, want)
	}
	want := map[string]string{
		"Content-Type":   "application/json",
		"Cache-Control":  "no-store",
		"X-Request-Id":   "4bf92f35",
		"Proxy-Status":   `forebay; error=connection_limit_reached; details="reports rejected_timeout"`,
		"Content-Length": strconv.Itoa(len(body)),
		"Connection":     "close", // asked for
	}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Date":
		case "Retry-After":
			if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 3 {
				t.Errorf("Retry-After is %q; with nothing known about the rate it is 1 to 3", value)
			}
			delete(want, name)
		default:
			if want[name] != value {
				t.Errorf("header %s, want %q", line, want[name])
			}
			delete(want, name)
		}
	}
	if len(want) > 0 {
		t.Errorf("headers missing: %v", want)
	}
	b.free(t, 1)
	c.all(1)
}

// decided is what the four witnesses say about one decision.
type decided struct{ wire, logged, metric, admin int }

const everyDecision = `
drain_timeout: 60s
log: {decisions: all}
gates:
  a: {max_in_flight: 1}
  line: {max_in_flight: 1, max_wait: %s, max_waiting: 2}
  shut: {max_in_flight: closed}
  each: {max_in_flight: 2, per_caller: {max_in_flight: 1}}
routes:
  - {match: /, gate: a}
  - {match: /line/, gate: line}
  - {match: /shut/, gate: shut}
  - {match: /each/, gate: each}
  - {match: /free/, exempt: true}
upstream: %s
`

// TestDecisionsAgree is acceptance 3 and QU-19: each decision that a request can meet
// in the program, with log, metric, admin port and client telling the same.
// rejected_deadline needs a deadline of the caller and rejected_too_large a cost,
// which no configuration of this version gives a request.
func TestDecisionsAgree(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(everyDecision, "50ms", b.URL))
	wire := map[string]int{}
	note := func(decision string, got reply, status int) {
		t.Helper()
		wire[decision]++
		if got.status != status || status >= 400 && !strings.Contains(got.body, `"reason":"`+decision+`"`) {
			t.Errorf("%s: %d %s %v", decision, got.status, got.body, got.err)
		}
	}
	for range 3 {
		note("accepted", p.get("/x"), 200)
		note("exempt", p.get("/free/x"), 200)
		note("rejected_busy", p.get("/shut/x"), 503)
	}
	holder := p.call(1, "/line/hold")
	p.gateIs("line", 1, 0)
	note("rejected_timeout", p.get("/line/x"), 503)
	b.free(t, 1)
	wire["accepted"] += holder.all(1)[200]
	p.gateIs("line", 0, 0) // a moment after the reply
	holder = p.call(1, "/each/hold")
	p.gateIs("each", 1, 0)
	note("rejected_caller", p.get("/each/x"), 429)
	b.free(t, 1)
	wire["accepted"] += holder.all(1)[200]
	p.gateIs("each", 0, 0)
	p.write(fmt.Sprintf(everyDecision, "1h", b.URL))
	p.ask("POST", "/reload", "")
	p.leaveTheLine(b, wire)
	p.ask("POST", "/drain", "")
	note("rejected_draining", p.get("/x"), 503)
	note("rejected_draining", p.get("/line/x"), 503)
	p.ask("DELETE", "/drain", "")
	note("accepted", p.get("/x"), 200)
	p.compare(wire)
}

// leaveTheLine has the line filled, two refused, and those in line leave.
func (p *program) leaveTheLine(b *backend, wire map[string]int) {
	p.Helper()
	holder := p.call(1, "/line/hold")
	p.gateIs("line", 1, 0)
	inLine := p.call(2, "/line/x")
	p.gateIs("line", 1, 2)
	for range 2 {
		if got := p.get("/line/x"); got.status != 503 || !strings.Contains(got.body, "rejected_busy") {
			p.Errorf("past a full line: %+v", got)
		}
		wire["rejected_busy"]++
	}
	inLine.leave()
	p.gateIs("line", 1, 0)
	wire["canceled"] += inLine.all(2)[0]
	b.free(p, 1)
	wire["accepted"] += holder.all(1)[200]
	p.gateIs("line", 0, 0)
}

// compare asks all witnesses for all decisions.
func (p *program) compare(wire map[string]int) {
	p.Helper()
	all := map[string]*decided{}
	of := func(decision string) *decided {
		if all[decision] == nil {
			all[decision] = &decided{}
		}
		return all[decision]
	}
	for d, n := range wire {
		of(d).wire = n
	}
	for name, n := range p.metrics() {
		if labels, ok := strings.CutPrefix(name, "forebay_decisions_total{"); ok {
			_, d, _ := strings.Cut(labels, `decision="`)
			d, _, _ = strings.Cut(d, `"`)
			of(d).metric += int(n)
		}
	}
	for _, gate := range []string{"a", "line", "shut", "each"} {
		st := p.stats(gate)
		of("accepted").admin += int(st.Accepted)
		of("rejected_busy").admin += int(st.RejectedBusy)
		of("rejected_timeout").admin += int(st.RejectedTimeout)
		of("rejected_caller").admin += int(st.RejectedCaller)
		of("rejected_draining").admin += int(st.RejectedDraining)
		of("canceled").admin += int(st.Canceled)
	}
	of("exempt").admin = of("exempt").wire // no gate knows of it
	p.signal(syscall.SIGTERM)              // the log is whole afterwards
	if code := p.exit(); code != 0 {
		p.Errorf("exit code %d, want 0", code)
	}
	leftOut := strings.Contains(p.stderr.String(), `"left_out"`)
	for line := range strings.Lines(p.stderr.String()) {
		if d := field(line, "decision"); d != "" {
			of(d).logged++
		}
	}
	if leftOut {
		p.Error("lines were left out of the log; the test sends too much at once")
	}
	met := 0
	for _, d := range slices.Sorted(maps.Keys(all)) {
		got := *all[d]
		if got.wire > 0 {
			met++
		}
		if got.logged != got.wire || got.metric != got.wire || got.admin != got.wire {
			p.Errorf("%s: %+v", d, got)
		}
	}
	if met != 7 {
		p.Errorf("%d decisions were met, want 7", met)
	}
}

// TestQU19EmptyReply is QU-19: a full line closes no connection without an answer, on
// whichever request of a connection.
func TestQU19EmptyReply(t *testing.T) {
	b := newBackend(t)
	p := start(t, "upstream: "+b.URL+"\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
	c := p.call(1, "/hold")
	p.gateIs("a", 1, 0)
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const n = 50
	fmt.Fprint(conn, strings.Repeat("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", n)) // one after the other in one piece
	rd := bufio.NewReader(conn)
	for i := range n {
		res, err := http.ReadResponse(rd, nil)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("answer %d: %v, %v", i, res, err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "rejected_busy") {
			t.Fatalf("answer %d: %s, %v", i, body, err)
		}
	}
	if got := p.metrics()[`forebay_decisions_total{decision="rejected_busy",gate="a",lane="",route="/"}`]; got != n {
		t.Errorf("the metric says %v refusals, want %d", got, n)
	}
	b.free(t, 1)
	c.all(1)
}
