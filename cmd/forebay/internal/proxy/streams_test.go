package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/forebay"
)

// TestSL07RefusedStreamIsNobodysFault: neither the upstream's nor the caller's, whether
// it is an answer or an upgrade.
func TestSL07RefusedStreamIsNobodysFault(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	if err := sockets.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, Streams: forebay.Streams{Gate: sockets}})
	g := inFront(t, up, nil, gate.Wrap)
	for _, headers := range [][]string{nil, {"Connection", "Upgrade", "Upgrade", "echo"}} {
		res, body := g.get("GET", "/", nil, headers...)
		if res.StatusCode != 503 || !strings.Contains(body, `"gate":"sockets"`) {
			t.Errorf("%v: %d %s", headers, res.StatusCode, body)
		}
		if r := g.result(); r.Status != 503 || r.Err != nil || r.Outcome != forebay.OutcomeIgnored {
			t.Errorf("%v: result %+v", headers, r)
		}
	}
	eventually(t, "the slots are free", func() bool { return gate.Stats().Calls == 0 })
}
