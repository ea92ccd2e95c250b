package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/forebaytest"
)

// TestLifetime ends requests to the program in every way that there is, over HTTP/1.1
// and HTTP/2, and finds every slot back, under the rules that say when a slot is given
// back, and with either transport.
func TestLifetime(t *testing.T) {
	for _, c := range []struct{ name, transport, rules string }{
		{"as it comes", "lean", ""},
		{"with rules", "standard", ", hold: first_byte, streams: {slot: release, max_life: 1h, max_idle: 1h}"},
		{"upstream_done", "lean", ", hold: upstream_done"},
	} {
		t.Run(c.name, func(t *testing.T) { forebaytest.Lifetime(t, programWith(c.transport, c.rules)) })
	}
}

// answers is how many requests have ended, as the metrics say.
func (s *Server) answers() (n float64) {
	w := httptest.NewRecorder()
	s.metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if rest, ok := strings.CutPrefix(line, "http_server_request_duration_seconds_count{"); ok {
			count, _ := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
			n += count
		}
	}
	return n
}

// programWith opens the program in front of a backend on a socket of its own. Its gate
// has the limits that the suite asks for, and further rules.
func programWith(transport, rules string) forebaytest.Opener {
	return func(t testing.TB, c forebay.Config, backend http.Handler) *forebaytest.System {
		upstream := forebaytest.NewLoopback(t, backend)
		text := fmt.Sprintf("upstream: %s\ntransport: %s\nintake: {discard_time: 200ms}\nlog: {to: %q, decisions: all}\nspool: {memory: 1MiB, per_answer: 64KiB, directory: %q, disk: 1MiB}\ngates: {a: {max_in_flight: %d, max_wait: %s, max_waiting: %d, refuse: {retry_after: 1s}%s}}\nroutes: [{match: /, gate: a}]\n",
			upstream.URL(), transport, filepath.Join(t.TempDir(), "log.json"), t.TempDir(), c.MaxInFlight, c.MaxWait, c.MaxWaiting, rules)
		s, err := New(Options{Version: "test", Load: func() (*config.Config, error) { return config.Parse("forebay.yaml", []byte(text)) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			eventually(t, "there is an answer for each decision", func() bool { return s.answers() == float64(s.Gates()[0].Stats().Decisions()) })
			s.close()
			s.state.Load().proxy.Close()
			_ = s.log.Close()
		})
		g := s.Gates()[0]
		system := forebaytest.NewSystem(s, g)
		system.ReleasesDeparted = true
		system.Drain = func(ctx context.Context) error { return g.Drain(ctx) }
		return system
	}
}
