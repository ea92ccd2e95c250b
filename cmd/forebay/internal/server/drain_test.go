package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
)

const oneSlot = `
drain_timeout: %s
gates:
  a: {max_in_flight: 1, max_wait: 60s, max_waiting: 30}
routes:
  - {match: /, gate: a}
  - {match: /free/, exempt: true}
`

// dial opens a connection on which nothing is sent.
func (r *rig) dial() net.Conn {
	r.Helper()
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// TestDrainByOperator: POST /drain refuses, DELETE /drain admits again, the program
// stays; what runs goes on.
func TestDrainByOperator(t *testing.T) {
	r := start(t, fmt.Sprintf(oneSlot, "30s"))
	c := r.call(1, "/hold")
	r.gateIs("a", 1, 0)
	inLine := r.call(3, "/hold")
	r.gateIs("a", 1, 3)
	if got := r.ask("POST", "/drain", ""); got.status != http.StatusOK || got.body != `{"status":"draining","in_flight":1,"waiting":0}`+"\n" {
		t.Errorf("POST /drain: %d %s", got.status, got.body)
	}
	inLine.want(3, http.StatusServiceUnavailable)
	if got := r.get("/x"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_draining") || got.header.Get("Retry-After") == "" {
		t.Errorf("a new request: %d %v %s", got.status, got.header, got.body)
	}
	if got := r.get("/free/x"); got.status != http.StatusOK {
		t.Errorf("an exempt one: %d", got.status)
	}
	for path, want := range map[string]int{"/health": 503, "/ready": 503, "/stats": 200} {
		if got := r.ask("GET", path, ""); got.status != want {
			t.Errorf("%s while draining: %d, want %d", path, got.status, want)
		}
	}
	r.letGo(1)
	c.want(1, http.StatusOK)
	if got := r.ask("DELETE", "/drain", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"status":"ok"`) {
		t.Errorf("DELETE /drain: %d %s", got.status, got.body)
	}
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
	if got := r.ask("GET", "/ready", ""); got.status != http.StatusOK {
		t.Errorf("/ready afterwards: %d", got.status)
	}
}

// TestOP01OP03Exit is OP-01 and OP-03: the line is answered at once, new requests are refused
// and their connections closed, what runs finishes, taken-over connections too, and
// nobody can resume.
func TestOP01OP03Exit(t *testing.T) {
	r := start(t, strings.Replace(fmt.Sprintf(oneSlot, "60s"), "max_in_flight: 1", "max_in_flight: 2", 1))
	tn := r.tunnel("/echo")
	r.gateIs("a", 1, 0)
	c := r.call(1, "/hold")
	r.gateIs("a", 2, 0)
	inLine := r.call(20, "/hold")
	r.gateIs("a", 2, 20)
	r.cancel()
	inLine.want(20, http.StatusServiceUnavailable)
	got := r.get("/x")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_draining") {
		t.Errorf("a new request: %d %s", got.status, got.body)
	}
	if got := r.ask("DELETE", "/drain", ""); !strings.Contains(got.body, `"status":"draining"`) {
		t.Errorf("DELETE /drain on the way out: %s", got.body)
	}
	if got := r.get("/x"); got.status != http.StatusServiceUnavailable {
		t.Errorf("after that: %d", got.status)
	}
	if !tn.echoes() {
		t.Error("the tunnel is cut before its time")
	}
	r.letGo(1)
	c.want(1, http.StatusOK)
	tn.Close()
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	r.logged(`"msg":"drained; bye"`)
}

// TestOP01ExitWaitsForExemptTunnels: net/http forgets connections that were taken over,
// and no gate knows of an exempt one.
func TestOP01ExitWaitsForExemptTunnels(t *testing.T) {
	r := start(t, "drain_timeout: 60s\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}, {match: /echo, exempt: true}]\n")
	tn := r.tunnel("/echo")
	r.cancel()
	r.logged(`"msg":"draining before exit"`)
	eventually(t, "the port is closed", func() bool {
		conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if !tn.echoes() {
		t.Error("the tunnel is cut before its time")
	}
	tn.Close()
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestOP02ExitIsNotDelayed is OP-02: connections that idle, or on which nothing has come
// yet, neither delay the exit nor make it one in disorder. With drain_timeout at its
// longest the test would not end.
func TestOP02ExitIsNotDelayed(t *testing.T) {
	r := start(t, fmt.Sprintf(oneSlot, "24h"))
	idle := make([]net.Conn, 5)
	for i := range idle {
		idle[i] = r.dial()
		fmt.Fprint(idle[i], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(idle[i]), nil); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", res, err)
		}
	}
	silent := r.dial()
	r.gateIs("a", 0, 0)
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the silent connection is open still: %v", err)
	}
}

// TestOP02ExitWithSilentConnections: five seconds, which net/http waits for a connection
// on which nothing has come yet, are longer than this drain_timeout, and nothing is
// lost in them.
func TestOP02ExitWithSilentConnections(t *testing.T) {
	r := start(t, fmt.Sprintf(oneSlot, "2s"))
	silent := r.dial()
	if got := r.get("/x"); got.status != http.StatusOK { // so the one before is accepted too
		t.Fatal(got)
	}
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	silent.Close()
}

// TestExitInDisorder: drain_timeout ends with calls, streams and tunnels that run;
// they are cut, their slots come back, and the exit code is 1.
func TestExitInDisorder(t *testing.T) {
	r := start(t, strings.Replace(fmt.Sprintf(oneSlot, "50ms"), "max_in_flight: 1", "max_in_flight: 3", 1))
	tn := r.tunnel("/echo")
	c := r.call(1, "/hold")
	stream := r.call(1, "/stream")
	g := r.gateIs("a", 3, 0)
	inLine := r.call(5, "/hold")
	r.gateIs("a", 3, 5)
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	inLine.want(5, http.StatusServiceUnavailable)
	if got := <-c.replies; got.status == http.StatusOK {
		t.Errorf("the held call: %+v", got)
	}
	if got := <-stream.replies; got.status == http.StatusOK {
		t.Errorf("the stream ended as if it were whole: %+v", got)
	}
	if tn.echoes() {
		t.Error("the tunnel still leads somewhere")
	}
	if st := g.Stats(); st.InUse != 0 || st.Waiting != 0 {
		t.Errorf("in use %d, waiting %d after the exit; want none", st.InUse, st.Waiting)
	}
	r.logged("drain_timeout is over", `"in_flight":3`)
}

// TestOP03ExitRefusesTheLineOfAGateThatIsGone: its line is answered at once too, and its
// calls are waited for.
func TestOP03ExitRefusesTheLineOfAGateThatIsGone(t *testing.T) {
	r := start(t, "drain_timeout: 24h\n"+fmt.Sprintf(oneGate, 1))
	c := r.call(1, "/a/hold")
	r.gateIs("a", 1, 0)
	inLine := r.call(3, "/a/hold")
	r.gateIs("a", 1, 3)
	r.reload("drain_timeout: 24h\n" + withoutA)
	r.cancel()
	inLine.want(3, http.StatusServiceUnavailable)
	r.letGo(1)
	c.want(1, http.StatusOK)
	if code := r.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestRunWithoutAPort: what cannot be had is said, with the remedy.
func TestRunWithoutAPort(t *testing.T) {
	noLeaks(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	text := "listen: 127.0.0.1:0\nadmin: " + taken.Addr().String() + "\nupstream: http://127.0.0.1:1\n" + withoutA
	s, err := New(Options{Load: func() (*config.Config, error) { return config.Parse("", []byte(text)) }})
	if err != nil {
		t.Fatal(err)
	}
	code, err := s.Run(t.Context())
	if code != 2 || err == nil || !strings.Contains(err.Error(), "admin "+taken.Addr().String()+": another program listens there") {
		t.Errorf("Run = %d, %v", code, err)
	}
}
