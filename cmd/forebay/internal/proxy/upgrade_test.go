package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

const wantUpgrade = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n\r\n"

// switched answers the request with a 101 and hands the connection on.
func switched(protocol string, then func(c net.Conn, r *bufio.Reader)) func(*rawUpstream, net.Conn, *bufio.Reader) {
	return func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		if u.head(r) == "" {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nUpgrade: "+protocol+
			"\r\nX-Hop: secret\r\nKeep-Alive: timeout=5\r\nSec-WebSocket-Accept: a\r\n\r\n")
		then(c, r)
	}
}

// echo copies by hand: the pipes of splice stay open until they are collected.
func echo(c net.Conn, r *bufio.Reader) { _, _ = io.Copy(struct{ io.Writer }{c}, r) }

// upgraded opens a tunnel, with early bytes behind the request.
func upgraded(g *rig, request, early string) (net.Conn, *bufio.Reader, http.Header) {
	g.Helper()
	c := g.dial()
	_, _ = io.WriteString(c, request+early)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 101 {
		g.Fatalf("answer %v, %v", res, err)
	}
	return c, r, res.Header
}

func TestUpgradePassesThrough(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, switched("websocket", echo))
	g := inFront(t, u.url, nil)
	c, r, h := upgraded(g, wantUpgrade, "early ")
	_, _ = io.WriteString(c, "and late")
	got := make([]byte, len("early and late"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "early and late" {
		t.Errorf("echoed %q, %v", got, err)
	}
	if h.Get("X-Hop") != "" || h.Get("Keep-Alive") != "" || h.Get("Upgrade") != "websocket" || h.Get("Sec-WebSocket-Accept") != "a" {
		t.Errorf("headers of the 101: %v", h)
	}
	head := u.heads()[0]
	if field(head, "Connection") != "Upgrade" || field(head, "Upgrade") != "WebSocket" || field(head, "X-Forwarded-For") != "127.0.0.1" {
		t.Errorf("reached the upstream as %q", head)
	}
	g.noMore() // it runs
	_ = c.Close()
	if res := g.result(); res.Status != 101 || res.Err != nil || res.Outcome != forebay.OutcomeIgnored || res.Bytes != int64(len(got)) {
		t.Errorf("result %+v", res)
	}
	g.noMore()
}

// TestSL08ProxiedStreamsHoldTheirSlot: for its whole life, as in process, and not
// for longer.
func TestSL08ProxiedStreamsHoldTheirSlot(t *testing.T) {
	noLeaks(t)
	gate := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	local := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	})
	u := newRaw(t, switched("websocket", echo))
	for name, g := range map[string]*rig{
		"proxied": inFront(t, u.url, nil, gate.Wrap),
		"local":   inFront(t, u.url, nil, func(http.Handler) http.Handler { return gate.Wrap(local) }),
	} {
		c, _, _ := upgraded(g, wantUpgrade, "")
		if n := gate.Stats().InUse; n != 1 {
			t.Errorf("%s: %d slots in use while it is open", name, n)
		}
		if res, _ := g.get("GET", "/", nil); res.StatusCode != 503 {
			t.Errorf("%s: a second one: %d", name, res.StatusCode)
		}
		_ = c.Close()
		eventually(t, name+": the slot is free", func() bool { return gate.Stats().InUse == 0 })
	}
}

// TestUpgradeEndsWithEitherSide: nothing is left when one of them has gone.
func TestUpgradeEndsWithEitherSide(t *testing.T) {
	noLeaks(t)
	over := make(chan struct{})
	for name, c := range map[string]struct {
		upstream func(net.Conn, *bufio.Reader)
		client   func(net.Conn)
	}{
		"client closes":       {echo, func(c net.Conn) { _ = c.Close() }},
		"client resets":       {echo, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }},
		"upstream closes":     {func(c net.Conn, _ *bufio.Reader) { _ = c.Close() }, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); _ = c.Close() }},
		"upstream resets":     {func(c net.Conn, _ *bufio.Reader) { _ = c.(*net.TCPConn).SetLinger(0) }, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }},
		"upstream is deaf":    {func(net.Conn, *bufio.Reader) { <-over }, func(c net.Conn) { _ = c.Close() }},
		"client does not end": {func(c net.Conn, _ *bufio.Reader) { _ = c.Close() }, func(net.Conn) {}},
	} {
		u := newRaw(t, switched("websocket", c.upstream))
		g := inFront(t, u.url, nil)
		g.proxy.linger = 100 * time.Millisecond
		client, _, _ := upgraded(g, wantUpgrade, "")
		c.client(client)
		if r := g.result(); r.Status != 101 || r.Outcome != forebay.OutcomeIgnored {
			t.Errorf("%s: result %+v", name, r)
		}
		g.noMore()
	}
	close(over)
}

// TestHalfClosedTunnel: other protocols may say no more and still listen.
func TestHalfClosedTunnel(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, switched("tcp", func(c net.Conn, r *bufio.Reader) {
		all, _ := io.ReadAll(r) // until the client has no more to say
		_, _ = c.Write(append(all, " heard"...))
	}))
	g := inFront(t, u.url, nil)
	c, r, _ := upgraded(g, strings.Replace(wantUpgrade, "WebSocket", "tcp", 1), "words")
	_ = c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(r); string(got) != "words heard" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	g.result()
}

// TestUpgradeThatDoesNotCome: refused, to another protocol, or to HTTP itself.
func TestUpgradeThatDoesNotCome(t *testing.T) {
	noLeaks(t)
	refused := newRaw(t, ok)
	g := inFront(t, refused.url, nil)
	if got := g.raw(strings.Replace(wantUpgrade, "keep-alive", "close", 1)); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("refused: %q", got)
	}
	other := newRaw(t, switched("other", echo))
	g = inFront(t, other.url, nil)
	if got := g.raw(strings.Replace(wantUpgrade, "keep-alive", "close", 1)); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.Contains(got, "http_upgrade_failed") {
		t.Errorf("another protocol: %q", got)
	}
	for _, protocol := range []string{"h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.0"} {
		u := newRaw(t, switched("h2c", echo))
		g = inFront(t, u.url, nil)
		request := strings.NewReplacer("WebSocket", protocol, "keep-alive", "close, HTTP2-Settings", "Sec-WebSocket-Key: k", "HTTP2-Settings: AAAA").Replace(wantUpgrade)
		if got := g.raw(request); !strings.HasPrefix(got, "HTTP/1.1 502 ") {
			t.Errorf("%s: %q", protocol, got)
		}
		if head := u.heads()[0]; field(head, "Upgrade") != "" || field(head, "Connection") != "" || field(head, "Http2-Settings") != "" {
			t.Errorf("%s reached the upstream: %q", protocol, head)
		}
	}
}

// TestUpgradeOutlivesTheTimeouts: what is timed is the way to the 101.
func TestUpgradeOutlivesTheTimeouts(t *testing.T) {
	noLeaks(t)
	ready := make(chan struct{})
	u := newRaw(t, switched("websocket", func(c net.Conn, r *bufio.Reader) {
		<-ready
		_, _ = io.WriteString(c, "late")
	}))
	g := inFront(t, u.url, func(c *Config) { c.ResponseTimeout = 50 * time.Millisecond })
	c, r, _ := upgraded(g, wantUpgrade, "")
	time.AfterFunc(200*time.Millisecond, func() { close(ready) })
	if got, err := io.ReadAll(r); string(got) != "late" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	_ = c.Close()
	g.result()
}
