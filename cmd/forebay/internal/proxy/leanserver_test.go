package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

const lastRequest = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

// leanRig is a lean server on a loopback socket.
type leanRig struct {
	*LeanServer
	addr string
}

func leanBehind(t *testing.T, h http.HandlerFunc, change func(*http.Server)) *leanRig {
	t.Helper()
	noLeaks(t)
	srv := Server(h, Timeouts{})
	if change != nil {
		change(srv)
	}
	s := NewLeanServer(srv)
	return &leanRig{s, serveOn(t, srv, s.Listener(listen(t)))}
}

func (g *leanRig) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := guarded(context.Background(), "tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// only returns the one connection there is.
func (g *leanRig) only(t *testing.T) (c *clientConn) {
	t.Helper()
	eventually(t, "one connection", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		for c = range g.conns {
		}
		return len(g.conns) == 1
	})
	return c
}

func (c *clientConn) isWatched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watch != nil
}

// TestLeavingEndsTheContext: with its cause, also for whoever waits below, and for whoever
// begins to afterwards.
func TestLeavingEndsTheContext(t *testing.T) {
	const filled = "closed behind a request as long as can be"
	for name, leave := range map[string]func(net.Conn){
		"closed":      func(c net.Conn) { _ = c.Close() },
		"half closed": func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		filled:        func(c net.Conn) { _ = c.Close() },
	} {
		ended := make(chan string, 1)
		g := leanBehind(t, func(_ http.ResponseWriter, r *http.Request) {
			below, cancel := context.WithCancel(context.WithValue(r.Context(), connTestKey{}, 1))
			defer cancel()
			<-below.Done()
			<-r.Context().Done()
			after := make(chan struct{})
			context.AfterFunc(r.Context(), func() { close(after) })
			<-after
			if context.Cause(r.Context()) != context.Canceled || context.Cause(below) != context.Canceled {
				ended <- "another cause"
			}
			ended <- "ended"
		}, nil)
		c, _ := g.dial(t)
		head := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		if name == filled {
			head = "GET /" + strings.Repeat("x", headSize-len(head)) + head[len("GET /"):]
		}
		_, _ = io.WriteString(c, head)
		eventually(t, "it is watched", g.only(t).isWatched)
		leave(c)
		if got := <-ended; got != "ended" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

type connTestKey struct{}

// TestContextEndsWithTheRequest: whoever has kept it is told, and a stopped call is not
// made.
func TestContextEndsWithTheRequest(t *testing.T) {
	kept, called := make(chan context.Context, 1), make(chan string, 2)
	g := leanBehind(t, func(_ http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { called <- "kept" })
		if stop := context.AfterFunc(r.Context(), func() { called <- "stopped" }); !stop() || stop() {
			called <- "could not be stopped once"
		}
		kept <- r.Context()
	}, nil)
	c, _ := g.dial(t)
	_, _ = io.WriteString(c, lastRequest)
	if ctx := <-kept; ctx.Done() != nil {
		<-ctx.Done()
		if ctx.Err() != context.Canceled {
			t.Errorf("ended by %v", ctx.Err())
		}
	}
	if got := <-called; got != "kept" {
		t.Errorf("%s was called", got)
	}
}

// TestNextRequestIsNotLost: what comes while a request is answered is the next one's,
// though somebody watched for the client.
func TestNextRequestIsNotLost(t *testing.T) {
	goOn := make(chan struct{})
	g := leanBehind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-goOn
		}
		if r.Context().Err() != nil {
			t.Errorf("%s has ended: %v", r.URL.Path, r.Context().Err())
		}
		_, _ = io.WriteString(w, r.Method+r.URL.Path)
	}, nil)
	for range 3 {
		conn, answers := g.dial(t)
		_, _ = io.WriteString(conn, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
		c := g.only(t)
		eventually(t, "it is watched", c.isWatched)
		_, _ = io.WriteString(conn, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
		c.mu.Lock()
		over := c.watch.over
		c.mu.Unlock()
		<-over // a byte has come
		goOn <- struct{}{}
		_, _ = io.WriteString(conn, "POST /more HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(answers)
		if n := strings.Count(string(got), "HTTP/1.1 200 OK"); n != 3 || err != nil || !strings.Contains(string(got), "GET/next") {
			t.Errorf("%d answers, %v: %q", n, err, got)
		}
	}
}

// TestShutdownWaitsForAnswers: they arrive whole, as the last ones, and connections
// without a request end.
func TestShutdownWaitsForAnswers(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	g := leanBehind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-goOn
		}
		_, _ = io.WriteString(w, "whole")
	}, nil)
	_, fresh := g.dial(t)
	idle, quiet := g.dial(t)
	_, _ = io.WriteString(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if res, err := http.ReadResponse(quiet, nil); err != nil || res.ContentLength != 5 {
		t.Fatalf("%+v, %v", res, err)
	}
	_, _ = quiet.Discard(5)
	busy, answers := g.dial(t)
	_, _ = io.WriteString(busy, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Shutdown(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v while a request is answered", err)
	}
	for name, r := range map[string]*bufio.Reader{"fresh": fresh, "idle": quiet} {
		if got, err := io.ReadAll(r); len(got) > 0 || err != nil { // net/http would leave them for some seconds
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- g.Shutdown(context.Background()) }()
	select {
	case err := <-done:
		t.Errorf("Shutdown: %v while a request is answered", err)
	default:
	}
	close(goOn)
	got, err := io.ReadAll(answers)
	if err != nil || !strings.HasSuffix(string(got), "\r\nConnection: close\r\n\r\nwhole") {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil || g.busy.Load() != 0 {
		t.Errorf("Shutdown: %v, %d busy", err, g.busy.Load())
	}
}

// TestCloseDoesNotWait: it ends what is answered at once, and says so.
func TestCloseDoesNotWait(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	g := leanBehind(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(ended)
	}, nil)
	c, answers := g.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	_ = g.server.Close()
	<-ended
	if got, _ := io.ReadAll(answers); len(got) > 0 && !strings.HasPrefix(string(got), "HTTP/1.1 200") {
		t.Errorf("%q", got)
	}
}

// TestCloseBehindShutdown: it ends answers that nobody takes in, once everything has
// been canceled.
func TestCloseBehindShutdown(t *testing.T) {
	all, end := context.WithCancel(context.Background())
	begun, ended := make(chan struct{}), make(chan struct{})
	g := leanBehind(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		for _, err := w.Write([]byte("x")); err == nil; {
			_, err = w.Write(make([]byte, 1<<20))
		}
		close(ended)
	}, func(s *http.Server) { s.BaseContext = func(net.Listener) context.Context { return all } })
	c, _ := g.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Shutdown(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	end()
	_ = g.server.Close()
	<-ended
}

// TestEverythingEnds: when the context of all connections does, and a request that comes
// then has ended before it begins.
func TestEverythingEnds(t *testing.T) {
	all, end := context.WithCancel(context.Background())
	begun, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	g := leanBehind(t, func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- struct{}{}
	}, func(s *http.Server) { s.BaseContext = func(net.Listener) context.Context { return all } })
	c, answers := g.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-begun
	end()
	<-ended
	_, _ = io.WriteString(c, lastRequest)
	<-ended
	if _, err := io.ReadAll(answers); err != nil {
		t.Error(err)
	}
}

// TestConnectionsAreForgotten: however one ends, nothing of it is kept.
func TestConnectionsAreForgotten(t *testing.T) {
	g := leanBehind(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
	}, nil)
	for name, text := range map[string]string{
		"after its last answer": lastRequest, "by a panic": "GET /panic HTTP/1.1\r\nHost: a\r\n\r\n",
		"by net/http":   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"by its client": "", "in the middle of a request": "GET / HT",
	} {
		c, answers := g.dial(t)
		g.only(t)
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.ReadAll(answers)
		eventually(t, "none is kept that ended "+name, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.conns) == 0
		})
	}
}

// TestHooksAreTold: of every request, as net/http does it.
func TestHooksAreTold(t *testing.T) {
	states := make(chan http.ConnState, 100)
	g := leanBehind(t, func(http.ResponseWriter, *http.Request) {}, func(s *http.Server) {
		s.ConnState = func(_ net.Conn, state http.ConnState) { states <- state }
	})
	c, answers := g.dial(t)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"+lastRequest)
	if _, err := io.ReadAll(answers); err != nil {
		t.Error(err)
	}
	c, answers = g.dial(t)
	_, _ = io.WriteString(c, lastRequest)
	if _, err := io.ReadAll(answers); err != nil {
		t.Error(err)
	}
	for _, want := range []http.ConnState{
		http.StateNew, http.StateActive, http.StateIdle, http.StateActive, http.StateIdle, http.StateActive, http.StateClosed,
		http.StateNew, http.StateActive, http.StateClosed,
	} {
		if got := <-states; got != want {
			t.Errorf("state %v, want %v", got, want)
		}
	}
}

// inPieces is a connection on which pieces come, and deadlines pass, as the script says.
type inPieces struct {
	net.Conn
	script []any // a string comes; an error does; a func is called before the next
	until  []time.Time
	writes []time.Time // the deadlines for them
	said   strings.Builder
}

func (p *inPieces) Read(b []byte) (int, error) {
	for len(p.script) > 0 {
		next := p.script[0]
		p.script = p.script[1:]
		switch next := next.(type) {
		case string:
			return copy(b, next), nil
		case error:
			return 0, next
		case func():
			next()
		}
	}
	return 0, io.EOF
}

func (p *inPieces) Write(b []byte) (int, error)       { return p.said.Write(b) }
func (p *inPieces) SetReadDeadline(t time.Time) error { p.until = append(p.until, t); return nil }
func (p *inPieces) SetWriteDeadline(t time.Time) error {
	p.writes = append(p.writes, t)
	return nil
}
func (p *inPieces) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7} }
func (p *inPieces) LocalAddr() net.Addr  { return &net.TCPAddr{} }

// play has a server with a handler read what the script says, and returns the connection
// as it is at the end. Nobody watches for the client, who would read what comes as well.
func (p *inPieces) play(h http.HandlerFunc, t Timeouts) *clientConn {
	c := &clientConn{Conn: p, server: NewLeanServer(Server(h, t)), context: context.Background()}
	c.server.leaves.isLooking = true
	_, _ = c.Read(make([]byte, 14))
	return c
}

// TestHeadersHaveTheirTimeOnce: however many pieces they come in, and the first request's
// is net/http's matter. A connection that has been idle for a part of its time goes on.
func TestHeadersHaveTheirTimeOnce(t *testing.T) {
	const minute = time.Minute
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }
	p := &inPieces{}
	about := func(what string, n int, want time.Duration) func() {
		return func() {
			t.Helper()
			if len(p.until) != n || n > 0 && (time.Until(p.until[n-1]) > want || time.Until(p.until[n-1]) < want-minute/2) {
				t.Errorf("%s: deadlines %v, want %d, the last in %v", what, p.until, n, want)
			}
		}
	}
	p.script = []any{
		"GET / HT", about("the first", 0, 0), "TP/1.1\r\nHost: a\r\n\r\n", about("idle", 1, 3*minute),
		os.ErrDeadlineExceeded, about("idle for less", 2, 3*minute),
		"GE", about("a head", 3, minute), "T / HTTP/1.1\r\n", about("a head", 3, minute), "Host: a\r\n\r\n",
		about("idle, by the old one", 3, minute), "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		about("idle, by the old one", 3, minute), os.ErrDeadlineExceeded, about("idle for less", 4, 3*minute),
		"POST / HTTP/1.1\r\n",
	}
	c := p.play(answer, Timeouts{ReadHeader: minute, Idle: 3 * minute})
	about("handed over", 5, minute)()
	if n := strings.Count(p.said.String(), "200 OK"); n != 3 || !c.isTheirs {
		t.Errorf("%d answers; is net/http's: %t", n, c.isTheirs)
	}
	p = &inPieces{script: []any{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "G", os.ErrDeadlineExceeded, "ET / HTTP/1.1\r\nHost: a\r\n\r\n"}}
	if c = p.play(answer, Timeouts{}); !c.isOver || strings.Count(p.said.String(), "200 OK") != 1 {
		t.Errorf("headers that took too long: over %t, %q", c.isOver, p.said.String())
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("and then %d, %v", n, err)
	}
}

// TestDeadlinesEndWithTheirRequest: those that a handler has set are not the next one's.
func TestDeadlinesEndWithTheirRequest(t *testing.T) {
	p := &inPieces{script: []any{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /set HTTP/1.1\r\nHost: a\r\n\r\n"}}
	p.script = append(p.script, func() {
		if n := len(p.writes); n != 2 || !p.writes[1].IsZero() {
			t.Errorf("deadlines for writing: %v", p.writes)
		}
		if n := len(p.until); n != 3 || time.Until(p.until[2]) < 0 {
			t.Errorf("deadlines for reading: %v", p.until)
		}
	})
	p.play(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/set" {
			c := http.NewResponseController(w)
			if err := errors.Join(c.SetReadDeadline(longAgo), c.SetWriteDeadline(farAway)); err != nil {
				t.Error(err)
			}
		}
	}, Timeouts{})
}

// TestTimeAtTheHandOver: headers that net/http gets in the middle have the rest of their
// time.
func TestTimeAtTheHandOver(t *testing.T) {
	p := &inPieces{script: []any{simpleHeads[0], "GET /%4", "1 HTTP/1.1\r\nHost: a\r\n\r\n"}}
	c := p.play(func(http.ResponseWriter, *http.Request) {}, Timeouts{})
	if len(p.until) != 2 || !c.isTheirs {
		t.Errorf("deadlines %v, want one for the next request and one for its headers; is net/http's: %t", p.until, c.isTheirs)
	}
}

// TestNoOtherProtocolInTheMiddle: behind a request of HTTP/1.1 HTTP/2 cannot begin, and a
// line end too many has no answer.
func TestNoOtherProtocolInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		behind   []any
		isTheirs bool
	}{
		{[]any{preface}, false},
		{[]any{preface[:2], preface[2:20], preface[20:] + "more"}, false},
		{[]any{preface[:4], "/ HTTP/1.1\r\n"}, true},
		{[]any{"\r\n"}, false},
		{[]any{"\r\n", "GE"}, true},
		{[]any{"P", "O", "S", "T"}, true},
	} {
		p := &inPieces{script: append([]any{simpleHeads[0]}, c.behind...)}
		conn := p.play(func(http.ResponseWriter, *http.Request) {}, Timeouts{})
		if conn.isTheirs != c.isTheirs || strings.Count(p.said.String(), "HTTP/1.1") != 1 {
			t.Errorf("%q: is net/http's: %t, and it is told %q", c.behind, conn.isTheirs, p.said.String())
		}
	}
	if p := (&inPieces{script: []any{preface}}); !p.play(nil, Timeouts{}).isTheirs {
		t.Error("at the beginning it is not net/http's")
	}
}

// TestRefusedRequestCostsLittle: it is made of what the one before was made of, but for
// its text and its id.
func TestRefusedRequestCostsLittle(t *testing.T) {
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1})
	if err := gate.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	h := New(Config{Upstream: &url.URL{Scheme: "http", Host: "192.0.2.1"}})
	defer h.Close()
	behind := h.Identify(gate.Wrap(h)).ServeHTTP
	const text, many = "GET /a HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n", 200
	seen := map[*http.Request]bool{}
	run := func(requests int) uint64 {
		var before, after runtime.MemStats
		p := &inPieces{script: []any{text, func() { runtime.ReadMemStats(&before) }}}
		for range requests {
			p.script = append(p.script, text)
		}
		p.script = append(p.script, func() { runtime.ReadMemStats(&after) })
		p.said.Grow(1000 * (requests + 1))
		p.play(func(w http.ResponseWriter, r *http.Request) { seen[r] = true; behind(w, r) }, Timeouts{})
		if n := strings.Count(p.said.String(), "\r\n\r\n{\"error\":\"server_busy\""); n != requests+1 {
			t.Fatalf("%d refusals, want %d: %.300q", n, requests+1, p.said.String())
		}
		return after.Mallocs - before.Mallocs
	}
	if got := float64(run(many)) / many; got > 7 { // 3, but the race detector drops what pools keep
		t.Errorf("%.1f allocations for each refusal", got)
	}
	if len(seen) != 1 {
		t.Errorf("made of %d requests", len(seen))
	}
}

// TestForwardedRequestIsKept: nothing of it is used again, since somebody may still have
// it.
func TestForwardedRequestIsKept(t *testing.T) {
	up := newRaw(t, ok)
	g := inFront(t, up.url, nil)
	c := g.dial()
	_, _ = io.WriteString(c, "GET /1 HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\n")
	first := g.result().Request
	<-first.Context().Done()
	_, _ = io.WriteString(c, "GET /2 HTTP/1.1\r\nHost: b\r\nX-A: 2\r\n\r\n")
	second := g.result().Request
	if first.Host != "a" || first.Header.Get("X-A") != "1" || first.URL.Path != "/1" || second.Header.Get("X-A") != "2" {
		t.Errorf("the first is now %+v", first)
	}
}
