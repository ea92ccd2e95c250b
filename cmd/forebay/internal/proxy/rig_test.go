package proxy

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain runs every test with each transport, the lean one behind the lean server; those that are short, those of one fuzz
// target and benchmarks with the lean one alone. It fails when anything was written to the
// standard logger. It opens a socket, so that the descriptors with which the runtime waits
// for sockets count from the beginning.
func TestMain(m *testing.M) {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		_ = l.Close()
	}
	var logged safeBuffer
	log.SetOutput(&logged)
	code := m.Run()
	if code == 0 && !testing.Short() && !isSet("test.fuzz") && !isSet("test.bench") && !isSet("test.list") {
		transport = TransportStandard
		if code = m.Run(); code != 0 {
			fmt.Fprintln(os.Stderr, "this was the standard transport; the lean one has passed")
		}
	}
	for line := range strings.Lines(logged.String()) {
		if transport == TransportStandard && strings.Contains(line, "Unsolicited response received on idle HTTP channel") {
			continue // which the program discards
		}
		fmt.Fprint(os.Stderr, "written to the standard logger: ", line)
		code = 1
	}
	os.Exit(code)
}

func isSet(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != ""
}

// transport is the one that tests run with.
var transport string

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

const patience = 10 * time.Second // for what should take milliseconds

// guard is how long a connection of a test lasts. No test takes as long on the busiest
// machine, and one that waits for what never comes fails by it and does not hang.
const guard = 3 * time.Minute

// guarded dials for every client of a test.
func guarded(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(guard))
	}
	return conn, err
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// noLeaks checks, when everything else of the test is cleaned up, that no
// goroutine and no descriptor is left.
func noLeaks(t testing.TB) {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	t.Cleanup(func() {
		var g, f int
		defer func() {
			if t.Failed() && g > goroutines {
				t.Log(stacks())
			}
		}()
		eventually(t, fmt.Sprintf("back to %d goroutines and %d descriptors", goroutines, files), func() bool {
			g, f = runtime.NumGoroutine(), openFiles()
			return g <= goroutines && f <= files
		})
	})
}

// openFiles counts descriptors where the system shows them.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(names)
}

// rig is a proxy on a loopback socket.
type rig struct {
	testing.TB
	proxy   *Handler
	addr    string
	results chan Result
}

// inFront starts a proxy in front of the upstream. wrap puts something between
// server and proxy.
func inFront(t testing.TB, upstream string, change func(*Config), wrap ...func(http.Handler) http.Handler) *rig {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{TB: t, results: make(chan Result, 10000)}
	c := Config{Upstream: u, Transport: transport, ResponseTimeout: patience, IdlePerHost: 64, Done: func(r Result) { g.results <- r }}
	if change != nil {
		change(&c)
	}
	g.proxy = New(c)
	t.Cleanup(g.proxy.Close)
	h := http.Handler(g.proxy)
	for _, w := range wrap {
		h = w(h)
	}
	g.addr = serve(t, Server(g.proxy.Identify(h), Timeouts{}))
	return g
}

// serve runs a server on a loopback socket until the test ends, a lean one where the
// transport is.
func serve(t testing.TB, s *http.Server) string {
	t.Helper()
	l := listen(t)
	if transport != TransportStandard {
		l = NewLeanServer(s).Listener(l)
	}
	return serveOn(t, s, l)
}

func serveOn(t testing.TB, s *http.Server, l net.Listener) string {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-over
	})
	return l.Addr().String()
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// backend runs a net/http upstream and returns its URL.
func backend(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := Server(h, Timeouts{})
	return "http://" + serve(t, s)
}

// result waits for the report of the next request.
func (g *rig) result() Result {
	g.Helper()
	select {
	case r := <-g.results:
		return r
	case <-time.After(patience):
		g.Fatal("no result was reported")
		return Result{}
	}
}

// noMore checks that nothing else was reported.
func (g *rig) noMore() {
	g.Helper()
	if n := len(g.results); n != 0 {
		g.Errorf("%d more results were reported", n)
	}
}

// dial connects to the proxy.
func (g *rig) dial() net.Conn {
	g.Helper()
	c, err := guarded(context.Background(), "tcp", g.addr)
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * patience))
	return c
}

// raw sends bytes and returns everything that comes back until the end.
func (g *rig) raw(request string) string {
	g.Helper()
	c := g.dial()
	if _, err := io.WriteString(c, request); err != nil {
		g.Fatal(err)
	}
	got, _ := io.ReadAll(c)
	return string(got)
}

// get sends one request on a connection of its own.
func (g *rig) get(method, path string, body io.Reader, headers ...string) (*http.Response, string) {
	g.Helper()
	r, err := http.NewRequest(method, "http://"+g.addr+path, body)
	if err != nil {
		g.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	tr := &http.Transport{DialContext: guarded, DisableKeepAlives: true, DisableCompression: true}
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(r)
	if err != nil {
		g.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		g.Fatalf("%s %s: body: %v", method, path, err)
	}
	return res, string(got)
}

// rawUpstream is an upstream of bytes: each connection is handed to serve.
type rawUpstream struct {
	url string
	mu  sync.Mutex
	got []string // the heads of the requests that came
}

func newRaw(t testing.TB, serve func(u *rawUpstream, c net.Conn, r *bufio.Reader)) *rawUpstream {
	t.Helper()
	l := listen(t)
	u := &rawUpstream{url: "http://" + l.Addr().String()}
	u.accept(t, l, serve)
	return u
}

func (u *rawUpstream) accept(t testing.TB, l net.Listener, serve func(u *rawUpstream, c net.Conn, r *bufio.Reader)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				serve(u, c, bufio.NewReader(c))
			})
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-over
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
}

// head reads the head of one request, byte for byte, and keeps it. Empty: the
// connection has ended.
func (u *rawUpstream) head(r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return ""
		}
		if line == "\r\n" {
			break
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got = append(u.got, b.String())
	return b.String()
}

func (u *rawUpstream) heads() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.got...)
}

// ok answers every request without a body.
func ok(u *rawUpstream, c net.Conn, r *bufio.Reader) {
	for u.head(r) != "" {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// field returns the values of a header in a raw head, lines apart by a bar.
func field(head, name string) string {
	var values []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if n, v, found := strings.Cut(line, ": "); found && n == name {
			values = append(values, v)
		}
	}
	return strings.Join(values, "|")
}

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, s := range list {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

func trust(list ...string) func(*Config) {
	return func(c *Config) { c.TrustedProxies = prefixes(list...) }
}

// h2c is a client that speaks HTTP/2 without encryption.
func h2c() *http.Transport {
	tr := &http.Transport{DialContext: guarded, Protocols: new(http.Protocols), DisableCompression: true}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return tr
}

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}
