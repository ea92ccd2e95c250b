//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"example.com/forebay/forebaytest"
)

// TestThousandsOfIdleConnections: they cost no slot and keep nobody out, are answered when
// they ask again, keep the program from no end, and leave nothing behind.
func TestThousandsOfIdleConnections(t *testing.T) {
	const many = 2000
	raiseFiles(t, 2*many)
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "30s", 1, b.URL))
	before := p.idleUsage()
	conns := make([]*forebaytest.Raw, many)
	open := func() {
		for i := range conns {
			conns[i] = forebaytest.Dial(t, strings.TrimPrefix(p.data, "http://"))
		}
	}
	ask := func(some []*forebaytest.Raw) {
		for _, c := range some {
			c.Send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
			if a := c.Answer("GET"); a.StatusCode != http.StatusOK || a.Close {
				t.Fatalf("answer %s, closes %v", a.Status, a.Close)
			}
		}
	}
	open()
	ask(conns[:many/2]) // half have asked, half never did
	if n := p.metrics()["forebay_connections"]; n < many {
		t.Errorf("%v connections are open, want %d", n, many)
	}
	p.fullSet(b, "a", 3)()
	ask(conns)
	for _, c := range conns {
		c.Hangup()
	}
	p.backTo(before, "a", p.fullSet(b, "a", 3))
	open()
	ask(conns[:many/2])
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range conns {
		if rest := c.Rest(); rest != "" {
			t.Fatalf("an idle connection was told %q", rest)
		}
	}
}
