package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// stream is a request whose answer has begun and not ended.
type stream struct {
	*http.Response
	lines *bufio.Reader
}

// stream asks for an answer that goes on, and returns when it has begun.
func (r *rig) stream(path string) *stream {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.data+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = res.Body.Close() })
	return &stream{res, bufio.NewReader(res.Body)}
}

// first reads the first line.
func (s *stream) first(t *testing.T, want string) {
	t.Helper()
	if line, err := s.lines.ReadString('\n'); line != want+"\n" || err != nil {
		t.Errorf("the stream begins with %q, %v; want %q", line, err, want)
	}
}

// silent checks that nothing of what the log says blames the upstream or the caller.
func (r *rig) silent() {
	r.Helper()
	text, _ := os.ReadFile(r.log)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "did not answer") || strings.Contains(line, "caller left") {
			r.Errorf("the log says %s", line)
		}
	}
}

const streamGates = "gates: {a: {max_in_flight: 1, streams: %s}, sockets: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n"

// TestSL07ProgramMovesStreams: event streams and upgrades take a slot of their own gate,
// or are refused by it in place of their first byte, and nobody is blamed for that.
func TestSL07ProgramMovesStreams(t *testing.T) {
	r := start(t, fmt.Sprintf(streamGates, "sockets"))
	events := r.stream("/events")
	events.first(t, "data: 1")
	r.gateIs("sockets", 1, 0)
	r.gateIs("a", 0, 0)
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("beside the stream: %d %s", got.status, got.body)
	}
	for _, header := range [][]string{nil, {"Connection", "Upgrade", "Upgrade", "echo"}} {
		path := "/events"
		if header != nil {
			path = "/echo"
		}
		got := r.get(path, header...)
		if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"gate":"sockets"`) || got.header.Get("Retry-After") == "" {
			t.Errorf("a second stream at %s: %d %s", path, got.status, got.body)
		}
	}
	eventually(t, "the backend runs the first stream alone", func() bool { return r.backend.running.Load() == 1 })
	r.letGo(1)
	if rest, err := io.ReadAll(events.lines); err != nil || string(rest) != "\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
	r.gateIs("sockets", 0, 0)
	tn := r.tunnel("/echo")
	r.gateIs("sockets", 1, 0)
	if g := r.gateIs("a", 0, 0); !tn.echoes() || g.Stats().StaleReleases > 0 {
		t.Errorf("the tunnel is deaf, or %d releases came twice", g.Stats().StaleReleases)
	}
	tn.Close()
	r.gateIs("sockets", 0, 0)
	r.silent()
}

// TestSL07ProgramStreamRules: hold, release and first_byte, each changed by a reload.
func TestSL07ProgramStreamRules(t *testing.T) {
	r := start(t, fmt.Sprintf(streamGates, "hold"))
	for _, c := range []struct {
		rules         string
		path, first   string
		inA, inSocket int // while the answer goes on
	}{
		{"hold", "/events", "data: 1", 1, 0},
		{"release", "/events", "data: 1", 0, 0},
		{"release", "/stream", "begun", 1, 0}, // which is none
		{"sockets", "/events", "data: 1", 0, 1},
		{"hold, hold: first_byte", "/stream", "begun", 0, 0},
		{"hold, hold: handler", "/stream", "begun", 1, 0},
	} {
		r.reload(fmt.Sprintf(streamGates, c.rules))
		s := r.stream(c.path)
		s.first(t, c.first)
		r.gateIs("a", c.inA, 0)
		r.gateIs("sockets", c.inSocket, 0)
		r.letGo(1)
		if _, err := io.ReadAll(s.lines); err != nil {
			t.Errorf("streams: %s, %s: %v", c.rules, c.path, err)
		}
		r.gateIs("a", 0, 0)
		r.gateIs("sockets", 0, 0)
	}
	r.silent()
}

// TestSL07ProgramStreamsEnd: with the connection to the upstream, and without blame.
func TestSL07ProgramStreamsEnd(t *testing.T) {
	for limit, why := range map[string]string{"max_life": "it has lasted for 100ms", "max_idle": "nothing has come or gone for 100ms"} {
		r := start(t, fmt.Sprintf(streamGates, "{"+limit+": 100ms}"))
		s := r.stream("/events")
		s.first(t, "data: 1")
		if _, err := io.ReadAll(s.lines); err == nil {
			t.Errorf("%s: the stream ends as if it were whole", limit)
		}
		r.gateIs("a", 0, 0)
		tn := r.tunnel("/echo")
		if line, err := tn.rd.ReadString('\n'); err == nil {
			t.Errorf("%s: the tunnel says %q", limit, line)
		}
		r.gateIs("a", 0, 0)
		eventually(t, "the backend is rid of them", func() bool { return r.backend.running.Load() == 0 })
		eventually(t, "both are in the log, with the reason", func() bool {
			text, _ := os.ReadFile(r.log)
			return strings.Count(string(text), `"msg":"a stream was ended by the rules of its gate","request_id":"`) == 2 &&
				strings.Count(string(text), why) == 2
		})
		r.silent()
	}
}

// TestStreamsFollowTheirGate: a reload may put another gate of the same name in the
// place of the one that streams move to.
func TestStreamsFollowTheirGate(t *testing.T) {
	r := startWith(t, "", fmt.Sprintf(streamGates, "sockets"), newBackend(t), newLedger().openStore)
	first := r.stream("/events")
	first.first(t, "data: 1")
	old := r.gateIs("sockets", 1, 0)
	r.reload(fmt.Sprintf(streamGates, "sockets") + "cluster: {redis: redis://127.0.0.1, gates: [sockets]}\n")
	if r.gateIs("sockets", 0, 0) == old {
		t.Error("the gate has joined the cluster as the same one")
	}
	second := r.stream("/events") // for which the old one has no slot
	second.first(t, "data: 1")
	r.gateIs("sockets", 1, 0)
	r.letGo(2)
	for _, s := range []*stream{first, second} {
		_, _ = io.ReadAll(s.lines)
	}
	r.gateIs("sockets", 0, 0)
}
