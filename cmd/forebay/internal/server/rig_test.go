package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

const patience = 60 * time.Second // for what should take milliseconds, on a machine that is busy

// guard is how long a connection of a test lasts. No test takes as long on the busiest
// machine, and one that waits for what never comes fails by it and does not hang.
const guard = 3 * patience

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

// TestMain has the goroutine that os/signal starts once counted from the beginning.
func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	os.Exit(m.Run())
}

// noLeaks checks, when everything else of the test is cleaned up, that no goroutine
// is left.
func noLeaks(t testing.TB) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		defer func() {
			if runtime.NumGoroutine() > before {
				buf := make([]byte, 1<<20)
				t.Log(string(buf[:runtime.Stack(buf, true)]))
			}
		}()
		eventually(t, fmt.Sprintf("back to %d goroutines", before), func() bool { return runtime.NumGoroutine() <= before })
	})
}

// backend is an upstream that counts what runs in it. /hold answers when it is told
// to, /stream answers half, /events as an event stream, /full refuses, /full/hold when it is told
// to, /echo switches to a protocol that repeats lines, and
// everything else answers with the headers it got.
type backend struct {
	*httptest.Server
	running, most atomic.Int64
	letGo         chan struct{}
	over          chan struct{}
}

func newBackend(t testing.TB) *backend {
	b := &backend{letGo: make(chan struct{}), over: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(func() {
		close(b.over)
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

func (b *backend) serve(w http.ResponseWriter, r *http.Request) {
	n := b.running.Add(1)
	defer b.running.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/echo"):
		b.echo(w)
	case strings.Contains(r.URL.Path, "/large"):
		piece, pieces := make([]byte, 1<<16), 1024 // more than any socket buffers
		if strings.HasSuffix(r.URL.Path, "/16") {
			pieces = 256 // and where the client has it buffer little
		}
		for range pieces {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	case strings.Contains(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		b.hold(r.Context())
	case strings.Contains(r.URL.Path, "/stream"):
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		b.hold(r.Context())
	case strings.Contains(r.URL.Path, "/full"):
		if strings.Contains(r.URL.Path, "/hold") {
			b.hold(r.Context())
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.Contains(r.URL.Path, "/hold"):
		b.hold(r.Context())
	default:
		_ = json.NewEncoder(w).Encode(r.Header)
	}
}

func (b *backend) hold(ctx context.Context) {
	select {
	case <-b.letGo:
	case <-b.over:
	case <-ctx.Done():
	}
}

func (b *backend) echo(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, line)
	}
}

// rig is a whole server on loopback in front of a backend.
type rig struct {
	testing.TB
	*Server
	backend     *backend
	path        string // of a file that is watched; empty: the text is kept here
	log         string
	data, admin string // addresses
	client      *http.Client
	cancel      context.CancelFunc
	ended       chan struct{}
	code        int

	mu   sync.Mutex
	text string
}

// head is what every configuration of a rig begins with.
func (r *rig) head() string {
	return "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: " + r.backend.URL + "\nlog: {to: " + r.log + ", decisions: all}\n"
}

// start runs a server with a configuration that is kept in memory.
func start(t testing.TB, text string) *rig {
	t.Helper()
	return startRig(t, "", text)
}

// startFile runs a server with a file of that path.
func startFile(t testing.TB, path, text string) *rig {
	t.Helper()
	return startRig(t, path, text)
}

// startLinked runs a server with a file that is there already.
func startLinked(t testing.TB, path string) *rig {
	t.Helper()
	return startRig(t, path, "")
}

func startRig(t testing.TB, path, text string) *rig {
	t.Helper()
	return startWith(t, path, text, newBackend(t), nil)
}

// startWith runs a server before a backend, with a store of its cluster.
func startWith(t testing.TB, path, text string, b *backend, openStore func(config.Cluster) (Store, error)) *rig {
	t.Helper()
	noLeaks(t)
	r := &rig{
		TB: t, backend: b, path: path, log: filepath.Join(t.TempDir(), "log.json"), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{DialContext: guarded, MaxIdleConnsPerHost: 100}},
	}
	t.Cleanup(r.client.CloseIdleConnections)
	if text != "" {
		r.write(text)
	}
	started := make(chan struct{})
	s, err := New(Options{Load: r.load, Version: "test", OpenStore: openStore, Started: func(listen, admin string) {
		r.data, r.admin = "http://"+listen, "http://"+admin
		close(started)
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() {
		defer close(r.ended)
		r.code, err = s.Run(ctx)
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() { r.exit() })
	select {
	case <-started:
	case <-r.ended:
		t.FailNow()
	}
	return r
}

func (r *rig) load() (*config.Config, error) {
	if r.path != "" {
		return config.Load(r.path)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return config.Parse("", []byte(r.text))
}

// write changes the configuration without a reload; a file by renaming over it.
func (r *rig) write(text string) {
	r.Helper()
	text = r.head() + text
	if r.path == "" {
		r.mu.Lock()
		r.text = text
		r.mu.Unlock()
		return
	}
	if err := os.WriteFile(r.path+".new", []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(r.path+".new", r.path); err != nil {
		r.Fatal(err)
	}
}

// reload changes the configuration and reloads it.
func (r *rig) reload(text string) {
	r.Helper()
	r.write(text)
	if err := r.Reload(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// exit stops the server and returns its exit code.
func (r *rig) exit() int {
	r.cancel()
	<-r.ended
	return r.code
}

// reply is what a client got; status 0: nothing.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r *rig) get(path string, headers ...string) reply {
	r.Helper()
	return r.do(r.Context(), http.MethodGet, r.data+path, "", headers...)
}

// do sends one request; headers are names and values in turn.
func (r *rig) do(ctx context.Context, method, url, body string, headers ...string) reply {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.client.Do(req)
	if err != nil {
		return reply{body: err.Error()}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{header: res.Header, body: err.Error()}
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

// calls are requests under way.
type calls struct {
	rig     *rig
	replies chan reply
	leave   context.CancelFunc
}

// call sends n requests and does not wait for them.
func (r *rig) call(n int, path string) *calls {
	ctx, cancel := context.WithCancel(context.Background())
	c := &calls{r, make(chan reply, n), cancel}
	for range n {
		go func() { c.replies <- r.do(ctx, http.MethodGet, r.data+path, "") }()
	}
	r.Cleanup(cancel)
	return c
}

// want takes n replies and checks their status.
func (c *calls) want(n, status int) {
	c.rig.Helper()
	over := time.After(patience)
	for range n {
		select {
		case got := <-c.replies:
			if got.status != status {
				c.rig.Errorf("status %d, want %d: %s", got.status, status, got.body)
			}
		case <-over:
			c.rig.Fatalf("no reply within %v", patience)
		}
	}
}

// letGo lets n requests that the backend holds end.
func (r *rig) letGo(n int) {
	r.Helper()
	over := time.After(patience)
	for range n {
		select {
		case r.backend.letGo <- struct{}{}:
		case <-over:
			r.Fatal("the backend holds nobody that could go")
		}
	}
}

// gateIs waits until a gate has so many calls in flight and in line.
func (r *rig) gateIs(name string, inFlight, waiting int) *forebay.Gate {
	r.Helper()
	g, err := r.gate(name)
	if err != nil {
		r.Fatal(err)
	}
	eventually(r, fmt.Sprintf("%s has %d in flight and %d in line", name, inFlight, waiting), func() bool {
		st := g.Stats()
		return st.Calls == inFlight && st.Waiting == waiting
	})
	return g
}

// ask does something on the admin port.
func (r *rig) ask(method, path, body string) reply {
	return r.do(context.Background(), method, r.admin+path, body, "Content-Type", "application/json")
}

// scrape returns the value of a metric, by its name with labels.
func (r *rig) scrape(metric string) string {
	for line := range strings.Lines(r.ask("GET", "/metrics", "").body) {
		if value, ok := strings.CutPrefix(line, metric+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// logged waits for a line of the log that has all of the words.
func (r *rig) logged(words ...string) (found string) {
	r.Helper()
	eventually(r, fmt.Sprintf("a line of the log with %q", words), func() bool {
		text, _ := os.ReadFile(r.log)
	line:
		for line := range strings.Lines(string(text)) {
			for _, w := range words {
				if !strings.Contains(line, w) {
					continue line
				}
			}
			found = line
			return true
		}
		return false
	})
	return found
}

// tunnel is a connection that was switched to the echo protocol.
type tunnel struct {
	net.Conn
	rd *bufio.Reader
}

func (r *rig) tunnel(path string) *tunnel {
	r.Helper()
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", path)
	tn := &tunnel{conn, bufio.NewReader(conn)}
	res, err := http.ReadResponse(tn.rd, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		r.Fatalf("no switch: %v, %v", res, err)
	}
	return tn
}

// echoes reports whether the tunnel still leads to the backend.
func (t *tunnel) echoes() bool {
	fmt.Fprintln(t, "hello")
	line, err := t.rd.ReadString('\n')
	return err == nil && line == "hello\n"
}
