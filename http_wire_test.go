package forebay

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serverLog is what a server complains about.
type serverLog struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// listen starts a server on loopback; with version 2 it speaks HTTP/2.
func listen(t testing.TB, version int, h http.Handler) (*httptest.Server, *serverLog) {
	t.Helper()
	complaints := &serverLog{}
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(complaints, "", 0)
	if version == 2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	return srv, complaints
}

// overBoth runs a test over HTTP/1.1 and HTTP/2.
func overBoth(t *testing.T, test func(t *testing.T, version int)) {
	t.Run("HTTP1", func(t *testing.T) { test(t, 1) })
	t.Run("HTTP2", func(t *testing.T) { test(t, 2) })
}

// fetched is an answer as far as it came.
type fetched struct {
	*http.Response
	body []byte
	err  error // of reading the body
}

func fetch(t testing.TB, srv *httptest.Server, r *http.Request) fetched {
	t.Helper()
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fetched{res, body, err}
}

func newGet(t testing.TB, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// breakingProxy is a reverse proxy before an upstream that, until mended,
// declares 1000 bytes, sends one and drops the connection.
func breakingProxy(t *testing.T) (proxy http.Handler, mended *atomic.Bool) {
	t.Helper()
	mended = &atomic.Bool{}
	upstream, _ := listen(t, 1, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if mended.Load() {
			_, _ = io.WriteString(w, "whole")
			return
		}
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	target, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1, // so that the header is out when it breaks
		ErrorLog:      log.New(io.Discard, "", 0),
	}, mended
}

// SL-01: five answers that the upstream breaks off, at limit five, cost no slot.
func TestSL01AbortedHandlerReleases(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		for _, observed := range []bool{false, true} {
			seen := &httpEvents{}
			config := Config{MaxInFlight: 5}
			if observed {
				config.Observers = []Observer{seen}
			}
			g := httpGate(t, config)
			proxy, mended := breakingProxy(t)
			srv, complaints := listen(t, version, g.Wrap(proxy))
			for i := range 5 {
				res := fetch(t, srv, newGet(t, srv.URL))
				if res.StatusCode != http.StatusOK || res.err == nil || len(res.body) > 1 {
					t.Errorf("answer %d: %d %q, error %v; want a 200 that breaks off", i, res.StatusCode, res.body, res.err)
				}
			}
			untilIdle(t, g)
			mended.Store(true)
			if res := fetch(t, srv, newGet(t, srv.URL)); res.StatusCode != http.StatusOK || string(res.body) != "whole" {
				t.Errorf("the sixth: %d %q", res.StatusCode, res.body)
			}
			untilIdle(t, g)
			wantConserved(t, g)
			want := []Outcome{OutcomeAborted, OutcomeAborted, OutcomeAborted, OutcomeAborted, OutcomeAborted, OutcomeDone}
			if got := seen.outcomes(); observed && !slices.Equal(got, want) {
				t.Errorf("outcomes %v", got)
			}
			if text := complaints.String(); text != "" {
				t.Errorf("the server complains: %s", text)
			}
		}
	})
}

// SL-02: a client that closes an event stream half way makes no noise: the slot
// comes back as aborted, the log stays empty.
func TestSL02ClientClosesAStreamHalfWay(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		upstream, _ := listen(t, 1, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}))
		target, _ := url.Parse(upstream.URL)
		seen := &httpEvents{}
		g := httpGate(t, Config{MaxInFlight: 1, Observers: []Observer{seen}})
		srv, complaints := listen(t, version, g.Wrap(&httputil.ReverseProxy{
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ErrorLog: log.New(io.Discard, "", 0),
		}))
		ctx, hangUp := context.WithCancel(t.Context())
		res, err := srv.Client().Do(newGet(t, srv.URL).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		event := make([]byte, len("data: 1\n\n"))
		if _, err := io.ReadFull(res.Body, event); err != nil {
			t.Errorf("the first event: %v", err)
		}
		hangUp()
		res.Body.Close()
		untilIdle(t, g)
		waitUntil(t, "the release is told", func() bool { return len(seen.outcomes()) > 0 })
		if got := seen.outcomes(); !slices.Equal(got, []Outcome{OutcomeAborted}) {
			t.Errorf("outcomes %v", got)
		}
		if text := complaints.String(); text != "" {
			t.Errorf("the server complains: %s", text)
		}
	})
}

// Nothing is glued onto an answer that was broken off half way.
func TestSL02NothingIsGluedOntoHalfAnAnswer(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	srv, complaints := listen(t, 1, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})))
	conn := dial(t, srv)
	conn.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	got := conn.rest()
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nhalf") {
		t.Errorf("on the wire: %q", got)
	}
	if text := complaints.String(); text != "" {
		t.Errorf("the server complains: %s", text)
	}
}

// rawConn is a client that writes and reads bytes.
type rawConn struct {
	t  testing.TB
	c  net.Conn
	br *bufio.Reader
}

func dial(t testing.TB, srv *httptest.Server) *rawConn {
	t.Helper()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &rawConn{t, c, bufio.NewReader(c)}
}

func (c *rawConn) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.c, text); err != nil {
		c.t.Fatal(err)
	}
}

// rest is all that still comes until the server closes.
func (c *rawConn) rest() string {
	c.t.Helper()
	all, err := io.ReadAll(c.br)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		c.t.Fatalf("read %q, then %v", all, err)
	}
	return string(all)
}

// answer reads one answer to a request of the given method.
func (c *rawConn) answer(method string) fetched {
	c.t.Helper()
	res, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fetched{res, body, err}
}

// SL-10: what the server's own writer can do is reached through a gate.
func TestSL10WriterKeepsItsAbilities(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{MaxInFlight: 1, LeaseInContext: true})
		for name, wrap := range wraps(t, g) {
			var given http.ResponseWriter
			inner := wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				c := http.NewResponseController(w)
				_, hijacks := w.(http.Hijacker)
				_, readsFrom := w.(io.ReaderFrom)
				switch {
				case w != given:
					t.Errorf("%s wraps the writer in %T", name, w)
				case hijacks != (version == 1) || readsFrom != (version == 1):
					t.Errorf("%s: hijacks %v, reads from %v over HTTP/%d", name, hijacks, readsFrom, version)
				}
				for what, err := range map[string]error{
					"SetReadDeadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
					"SetWriteDeadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
					"EnableFullDuplex": c.EnableFullDuplex(),
					"Flush":            c.Flush(),
				} {
					if err != nil {
						t.Errorf("%s: %s: %v", name, what, err)
					}
				}
			}))
			srv, _ := listen(t, version, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				given = w
				inner.ServeHTTP(w, r)
			}))
			if res := fetch(t, srv, newGet(t, srv.URL)); res.ProtoMajor != version || res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %d", name, res.Proto, res.StatusCode)
			}
		}
	})
}

func TestSL10EventsComeOneByOne(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{MaxInFlight: 1})
		more := make(chan struct{})
		srv, _ := listen(t, version, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "data: 1\n\n")
				_ = http.NewResponseController(w).Flush()
				<-more
			}
		})))
		res, err := srv.Client().Do(newGet(t, srv.URL))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		event := make([]byte, len("data: 1\n\n"))
		for i := range 3 {
			if _, err := io.ReadFull(res.Body, event); err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
			if st := g.Stats(); st.InUse != 1 {
				t.Errorf("%d in use while the stream runs", st.InUse)
			}
			more <- struct{}{}
		}
		untilIdle(t, g)
	})
}

// A connection that the handler took over keeps its slot until the handler ends.
func TestSL10UpgradeKeepsItsSlot(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	srv, complaints := listen(t, 1, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		defer c.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	})))
	conn := dial(t, srv)
	conn.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if line, _ := conn.br.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 101 ") {
		t.Errorf("answer %q", line)
	}
	if st := g.Stats(); st.InUse != 1 {
		t.Errorf("%d in use while the connection is taken over", st.InUse)
	}
	conn.send("ping\n")
	if got := conn.rest(); !strings.HasSuffix(got, "\r\n\r\nping\n") {
		t.Errorf("then %q", got)
	}
	untilIdle(t, g)
	if text := complaints.String(); text != "" {
		t.Errorf("the server complains: %s", text)
	}
}

func TestSL10FullDuplex(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{MaxInFlight: 1})
		srv, _ := listen(t, version, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			_ = c.EnableFullDuplex()
			_ = c.Flush()
			lines := bufio.NewReader(r.Body)
			for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
				_, _ = io.WriteString(w, line)
				_ = c.Flush()
			}
		})))
		in, out := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, in)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		back := bufio.NewReader(res.Body)
		for range 3 {
			_, _ = io.WriteString(out, "ping\n")
			if line, err := back.ReadString('\n'); line != "ping\n" {
				t.Fatalf("back came %q, %v", line, err)
			}
		}
		out.Close()
		untilIdle(t, g)
	})
}
