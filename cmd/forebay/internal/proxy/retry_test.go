package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// oneThenClose answers one request on each connection and closes it without
// having said so.
func oneThenClose(u *rawUpstream, c net.Conn, r *bufio.Reader) {
	head := u.head(r)
	if head == "" {
		return
	}
	if strings.HasPrefix(head, "POST") {
		_, _ = io.ReadFull(r, make([]byte, 4))
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

// TestOP06StaleConnections: the upstream closes its idle connections all the
// time; nobody notices, and every request goes out once.
func TestOP06StaleConnections(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, oneThenClose)
	g := inFront(t, u.url, nil)
	for i := range 50 {
		method, body := "GET", io.Reader(nil)
		if i%2 == 1 {
			method, body = "POST", strings.NewReader("body")
		}
		// The kept connection's end is there or not when the next request begins: both
		// must work for a GET. For a POST it must be there.
		if method == "POST" {
			settle(g)
		}
		if res, got := g.get(method, "/", body); res.StatusCode != 200 || got != "ok" {
			t.Fatalf("%s %d: %d %s", method, i, res.StatusCode, got)
		}
	}
	posts := 0
	for _, h := range u.heads() {
		if strings.HasPrefix(h, "POST") {
			posts++
		}
	}
	if posts != 25 {
		t.Errorf("%d POSTs reached the upstream, want 25", posts)
	}
}

// settle waits until the transport has noticed that its idle connection ended: no
// goroutine of a kept connection is left.
// The lean transport looks when it needs one.
func settle(g *rig) {
	eventually(g, "the stale connection is dropped", func() bool {
		if l := g.proxy.transports.lean; l != nil {
			return l.idle.allEnded()
		}
		return !strings.Contains(stacks(), "persistConn).readLoop")
	})
}

// allEnded reports whether no connection that is kept could be used.
func (p *idlePool) allEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.conns, (*leanConn).alive)
}

// TestOP06FirstWriteFails: a POST with a body goes out again when the kept
// connection took not one byte of it. No second slot, no second delivery.
func TestOP06FirstWriteFails(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		for head := u.head(r); head != ""; head = u.head(r) {
			if strings.HasPrefix(head, "POST") {
				_, _ = io.ReadFull(r, make([]byte, 4))
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	g := inFront(t, u.url, nil)
	var dialed []*stubborn
	var mu sync.Mutex
	inForce := g.proxy.transports.dialing()
	dial := *inForce
	*inForce = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		s := &stubborn{Conn: c}
		dialed = append(dialed, s)
		return s, nil
	}
	g.get("GET", "/", nil)
	dialed[0].broken.Store(true)
	if res, got := g.get("POST", "/", strings.NewReader("body")); res.StatusCode != 200 || got != "ok" {
		t.Errorf("answer %d %s", res.StatusCode, got)
	}
	if n := len(u.heads()); n != 2 || len(dialed) != 2 {
		t.Errorf("%d requests on %d connections reached the upstream, want 2 on 2", n, len(dialed))
	}
}

// dialing is what connects for the transport in force.
func (t *transports) dialing() *func(context.Context, string, string) (net.Conn, error) {
	if t.lean != nil {
		return &t.lean.dial
	}
	return &t.http.DialContext
}

// stubborn is a connection whose writes can be made to fail.
type stubborn struct {
	net.Conn
	broken atomic.Bool
}

func (s *stubborn) Write(p []byte) (int, error) {
	if s.broken.Load() {
		_ = s.Close()
		return 0, net.ErrClosed
	}
	return s.Conn.Write(p)
}

// secondKills answers the first request on each connection, and reads the second
// and ends.
func secondKills(u *rawUpstream, c net.Conn, r *bufio.Reader) {
	if u.head(r) == "" {
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	if field(u.head(r), "Content-Length") == "4" {
		_, _ = io.ReadFull(r, make([]byte, 4))
	}
}

// TestRJ11NothingIsSentTwice: what may have begun at the upstream is not repeated,
// but for the one try that a GET without a body has.
func TestRJ11NothingIsSentTwice(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		method, key string
		body        string
		status, out int
	}{
		{"POST", "", "body", 502, 1},
		{"POST", "", "", 502, 1},
		{"DELETE", "", "", 502, 1},
		{"POST", "idempotent", "body", 502, 1}, // its body is gone
		{"GET", "", "", 200, 2},
	} {
		u := newRaw(t, secondKills)
		g := inFront(t, u.url, nil)
		g.get("GET", "/", nil)
		g.result()
		var body io.Reader
		if c.body != "" {
			body = strings.NewReader(c.body)
		}
		headers := []string{}
		if c.key != "" {
			headers = []string{"Idempotency-Key", c.key}
		}
		res, _ := g.get(c.method, "/", body, headers...)
		if n := len(u.heads()) - 1; res.StatusCode != c.status || n != c.out {
			t.Errorf("%+v: status %d, sent %d times", c, res.StatusCode, n)
		}
		if r := g.result(); r.Status != c.status || (r.Err == nil) != (c.status == 200) {
			t.Errorf("%+v: result %+v", c, r)
		}
		g.noMore()
	}
}

// TestRJ11KillerQueryDoesNotReachEveryWorker: net/http alone would try every kept
// connection in turn.
func TestRJ11KillerQueryDoesNotReachEveryWorker(t *testing.T) {
	noLeaks(t)
	const kept = 8
	var together sync.WaitGroup
	together.Add(kept)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		if head := u.head(r); head == "" || strings.HasPrefix(head, "GET /killer") {
			return
		}
		together.Done()
		together.Wait() // so that each has a connection of its own
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		u.head(r) // the killer
	})
	g := inFront(t, u.url, nil)
	var warm sync.WaitGroup
	for range kept {
		warm.Go(func() { g.get("GET", "/", nil) })
	}
	warm.Wait()
	res, body := g.get("GET", "/killer", nil)
	sent := 0
	for _, h := range u.heads() {
		if strings.HasPrefix(h, "GET /killer") {
			sent++
		}
	}
	if res.StatusCode != 502 || sent != maxSent || !strings.Contains(body, "bad_gateway") {
		t.Errorf("status %d %s, sent %d times, want 502 and %d", res.StatusCode, body, sent, maxSent)
	}
	for range kept {
		g.result()
	}
	if r := g.result(); r.Err != errSentTwice || r.Status != 502 {
		t.Errorf("result %+v", r)
	}
}

// TestOP06IdleConnectionsAreClosedFirst: before an upstream with 2 s of keep-alive
// does it.
func TestOP06IdleConnectionsAreClosedFirst(t *testing.T) {
	noLeaks(t)
	closed := make(chan bool, 1)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		ok(u, c, r)
		closed <- true
	})
	g := inFront(t, u.url, func(c *Config) { c.IdleTimeout = 20 * time.Millisecond })
	if d := New(Config{Upstream: g.proxy.config.Upstream}).config.IdleTimeout; d >= 2*time.Second {
		t.Errorf("idle connections are kept for %v by default", d)
	}
	g.get("GET", "/", nil)
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the idle connection stays open")
	}
}

// TestConnectionsAreKept: as many as may be in flight, and no bound on new ones.
func TestConnectionsAreKept(t *testing.T) {
	noLeaks(t)
	const n = 20
	var conns atomic.Int32
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		conns.Add(1)
		ok(u, c, r)
	})
	g := inFront(t, u.url, func(c *Config) { c.IdlePerHost = n })
	tr := &http.Transport{DialContext: guarded, MaxIdleConnsPerHost: n}
	defer tr.CloseIdleConnections()
	for range 10 {
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				r, _ := http.NewRequest("GET", "http://"+g.addr, nil)
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			})
		}
		wg.Wait()
	}
	// net/http dials for whoever finds no idle connection, who may then get one that
	// came back meanwhile: some more than n at the start, none after.
	if got := conns.Load(); got > 2*n {
		t.Errorf("%d connections to the upstream for %d at a time", got, n)
	}
	if m := g.proxy.transports.http.MaxConnsPerHost; m != 0 {
		t.Errorf("MaxConnsPerHost is %d", m)
	}
}
