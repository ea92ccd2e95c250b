package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

func TestRJ16VeryLargeHeaders(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1})
	g := inFront(t, u.url, nil, gate.Wrap)
	for name, headers := range map[string]string{
		"a megabyte of cookies": "Cookie: " + strings.Repeat("a", 1<<20) + "\r\n",
		"many small ones":       strings.Repeat("A: b\r\n", 20000),
		"a long path":           "",
	} {
		path := "/"
		if headers == "" {
			path += strings.Repeat("p", 100<<10)
		}
		c := g.dial()
		go func() { _, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: h\r\n"+headers+"\r\n") }()
		got, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(got), "HTTP/1.1 431 ") || !strings.Contains(string(got), "Connection: close") {
			t.Errorf("%s: %q", name, got[:min(len(got), 200)])
		}
	}
	if s := gate.Stats(); s.Accepted != 0 || len(u.heads()) != 0 {
		t.Errorf("%d slots were used, %d requests reached the upstream", s.Accepted, len(u.heads()))
	}
	if res, _ := g.get("GET", "/", nil, "Cookie", strings.Repeat("a", 60<<10)); res.StatusCode != 200 {
		t.Errorf("60 KiB: %d", res.StatusCode)
	}
}

// TestOP04SilentConnectionsAreClosed: those that send no headers, and those that
// send no second request.
func TestOP04SilentConnectionsAreClosed(t *testing.T) {
	noLeaks(t)
	s := Server(http.NotFoundHandler(), Timeouts{ReadHeader: 100 * time.Millisecond, Idle: 50 * time.Millisecond})
	g := &rig{TB: t, addr: serve(t, s)}
	for name, begin := range map[string]string{
		"nothing":         "",
		"half a header":   "GET / HTTP/1.1\r\nHost: h\r\nA: ",
		"one request":     "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"half an h2":      "PRI * HTTP/2.0\r\n\r\nSM",
		"h2 and no frame": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		c := g.dial()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(c, begin)
		if got, err := io.ReadAll(c); err != nil {
			t.Errorf("%s: still open; %q, %v", name, got, err)
		}
	}
}

func TestServerDefaults(t *testing.T) {
	s := Server(nil, Timeouts{})
	if s.ReadHeaderTimeout != 5*time.Second || s.IdleTimeout != 75*time.Second || s.MaxHeaderBytes != 64<<10 || s.WriteTimeout != 0 || s.ReadTimeout != 0 {
		t.Errorf("%+v", s)
	}
	if s.Protocols.String() != "{HTTP1,HTTP2,UnencryptedHTTP2}" {
		t.Errorf("protocols %v", s.Protocols)
	}
	if s = Server(nil, Timeouts{ReadHeader: time.Second, Idle: time.Minute}); s.ReadHeaderTimeout != time.Second || s.IdleTimeout != time.Minute {
		t.Errorf("%+v", s)
	}
}

// TestOP06IdleTimeoutIsAboveTheFronts: nginx keeps its connections for 60 s.
func TestOP06IdleTimeoutIsAboveTheFronts(t *testing.T) {
	if d := Server(nil, Timeouts{}).IdleTimeout; d <= 60*time.Second {
		t.Errorf("idle connections are closed after %v", d)
	}
}
