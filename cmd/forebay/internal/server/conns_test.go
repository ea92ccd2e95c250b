package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

// connect opens a connection to the data port and says nothing.
func (r *rig) connect(from string) net.Conn {
	r.Helper()
	d := net.Dialer{}
	if from != "" {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from + ":0"))
	}
	conn, err := d.DialContext(r.Context(), "tcp", strings.TrimPrefix(r.data, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// ask sends a request and returns the status; the connection is kept.
func ask(t testing.TB, conn net.Conn, path string) int {
	t.Helper()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// isOver reports whether the server has closed a connection on which it had nothing
// to say.
func isOver(t testing.TB, conn net.Conn) bool {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !isTimeout(err)
}

func (r *rig) connections(n int) {
	r.Helper()
	eventually(r, fmt.Sprintf("%d connections", n), func() bool { return r.conns.Counts().Open == n })
}

// idling waits until so many connections are known to be idle: a moment after the answer.
func (r *rig) idling(n int) {
	r.Helper()
	eventually(r, fmt.Sprintf("%d idle connections", n), func() bool {
		r.conns.mu.Lock()
		defer r.conns.mu.Unlock()
		return r.conns.idle.size == n
	})
}

// newFor sets how long a connection counts as one that has just come.
func (r *rig) newFor(d time.Duration) {
	for _, cs := range []*conns{r.conns, r.admins} {
		cs.mu.Lock()
		cs.isNew = d
		cs.mu.Unlock()
	}
}

const bounded3 = "connections: {max: 3}\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n"

// TestOP04SilentConnectionsMakeRoom: above the bound goes who has said nothing for
// longest, then who has been idle for longest.
func TestOP04SilentConnectionsMakeRoom(t *testing.T) {
	r := start(t, bounded3)
	r.newFor(0)
	idle := r.connect("")
	ask(t, idle, "/x")
	r.connections(1)
	r.idling(1)
	first, second := r.connect(""), r.connect("")
	r.connections(3)
	busy := r.connect("")
	if got := ask(t, busy, "/x"); got != 200 || !isOver(t, first) {
		t.Errorf("the newcomer got %d", got)
	}
	r.idling(2)
	another := r.connect("")
	if got := ask(t, another, "/x"); got != 200 || !isOver(t, second) {
		t.Errorf("the next one got %d", got)
	}
	r.idling(3)
	last := r.connect("")
	if got := ask(t, last, "/x"); got != 200 || !isOver(t, idle) {
		t.Errorf("the last one got %d", got)
	}
	if got := ask(t, busy, "/x"); got != 200 {
		t.Errorf("one that is idle for less long got %d", got)
	}
	if c := r.conns.Counts(); c.Open != 3 || c.Evicted != 3 || c.RefusedMax != 0 {
		t.Errorf("%+v", c)
	}
	if n := r.scrape("forebay_connections"); n != "3" {
		t.Errorf("forebay_connections is %q", n)
	}
}

// TestOP05BusyConnectionsAreKept: where all are busy the newcomer is told so; no gate
// has to do with it, and the admin port goes on.
func TestOP05BusyConnectionsAreKept(t *testing.T) {
	r := start(t, bounded3)
	calls := r.call(3, "/hold")
	g := r.gateIs("a", 3, 0)
	for range 5 {
		got, err := r.raw("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.Contains(got, "Proxy-Status: forebay; error=connection_limit_reached") || !strings.Contains(got, "Retry-After: ") || err != nil {
			t.Errorf("above the bound: %q, %v", got, err)
		}
	}
	if got := r.ask("GET", "/health", ""); got.status != 200 {
		t.Errorf("the admin port: %+v", got)
	}
	r.letGo(3)
	calls.want(3, 200)
	if st := g.Stats(); st.Rejected() != 0 {
		t.Errorf("the gate has refused: %+v", st)
	}
	if got := r.get("/x"); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
	if n := r.scrape(`forebay_connections_refused_total{reason="max"}`); n != "5" {
		t.Errorf("%s were turned away, want 5", n)
	}
}

// TestOP05BurstIsAnswered: more come at once than may be connected, each with a request. Who
// has just come is not pushed out as one that has nothing to say: each is served, or turned
// away.
func TestOP05BurstIsAnswered(t *testing.T) {
	r := start(t, bounded3)
	r.newFor(time.Hour) // on the busiest machine
	const clients, each = 40, 25
	var served atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range each {
				got, err := r.raw("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
				if err == nil && strings.HasPrefix(got, "HTTP/1.1 200 ") {
					served.Add(1)
				}
			}
		})
	}
	all.Wait()
	r.connections(0)
	if c := r.conns.Counts(); c.Evicted > 0 || served.Load()+int64(c.RefusedMax) != clients*each || served.Load() == 0 {
		t.Errorf("%d of %d were served: %+v", served.Load(), clients*each, c)
	}
}

// TestNewConnectionsAreKept: who has just come is not pushed out, an idle one is in his stead;
// after a second without a request he goes first.
func TestNewConnectionsAreKept(t *testing.T) {
	cs, now := &conns{isNew: time.Second}, time.Now()
	silent, idle := &conn{conns: cs, came: now}, &conn{conns: cs, came: now.Add(-time.Hour)}
	cs.open = 2
	silent.moveLocked(&cs.silent)
	if c := cs.loserLocked(now.Add(time.Second - 1)); c != nil {
		t.Error("he is pushed out")
	}
	idle.moveLocked(&cs.idle)
	if c := cs.loserLocked(now.Add(time.Second - 1)); c != idle {
		t.Error("the idle one is not")
	}
	if c := cs.loserLocked(now.Add(time.Second)); c != silent || cs.open != 0 || cs.evicted != 2 {
		t.Errorf("he stays; %d are open, %d pushed out", cs.open, cs.evicted)
	}
}

// connectAdmin opens a connection to the admin port and sends a text.
func (r *rig) connectAdmin(text string) net.Conn {
	r.Helper()
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(r.admin, "http://"))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, text)
	return conn
}

// unsent is a request to the admin port whose body does not come.
const unsent = "PUT /gates/a/max_in_flight HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"

// TestAdminConnectionsAreBounded: whoever fills the admin port takes nothing from the data
// port, and shuts out nobody by silence.
func TestAdminConnectionsAreBounded(t *testing.T) {
	r := start(t, "timeouts: {read_header: 1h}\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n")
	r.newFor(0)
	admins := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d connections to the admin port", n), func() bool { return r.admins.Counts().Open == n })
	}
	oldest := r.connectAdmin("")
	admins(1)
	for range 2 * maxAdmin {
		r.connectAdmin("")
	}
	if !isOver(t, oldest) {
		t.Error("the oldest silent connection is still there")
	}
	admins(maxAdmin)
	if got := r.ask("GET", "/health", ""); got.status != 200 {
		t.Errorf("beside silent connections: %+v", got)
	}
	r.client.CloseIdleConnections()
	busy := make([]net.Conn, maxAdmin)
	for i := range busy {
		busy[i] = r.connectAdmin(unsent)
	}
	eventually(t, "all are busy", func() bool {
		r.admins.mu.Lock()
		defer r.admins.mu.Unlock()
		return r.admins.open == maxAdmin && r.admins.silent.size+r.admins.idle.size == 0
	})
	if got, _ := io.ReadAll(r.connectAdmin("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")); !strings.HasPrefix(string(got), "HTTP/1.1 503 ") {
		t.Errorf("one more: %q", got)
	}
	r.logged("a connection to the admin port was turned away", `"max":50`)
	if got := r.get("/x"); got.status != 200 || r.conns.Counts().Open > 1 {
		t.Errorf("the data port: %+v, %+v", got, r.conns.Counts())
	}
	for _, conn := range busy {
		_ = conn.Close()
	}
	admins(0)
	if got := r.ask("GET", "/health", ""); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestAdminRequestsAreSmall: a body that does not come is waited for no longer than a
// header, and one connection has one request at a time.
func TestAdminRequestsAreSmall(t *testing.T) {
	r := start(t, "timeouts: {read_header: 300ms}\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n")
	if got, _ := io.ReadAll(r.connectAdmin(unsent)); !strings.HasPrefix(string(got), "HTTP/1.1 400 ") {
		t.Errorf("a body that does not come: %q", got)
	}
	if got, _ := io.ReadAll(r.connectAdmin("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")); !strings.HasPrefix(string(got), "HTTP/1.1 4") {
		t.Errorf("HTTP/2: %q", got)
	}
}

// TestConnectionsPerAddress: one address has so many, idle or not, and a trusted proxy's
// are not counted.
func TestConnectionsPerAddress(t *testing.T) {
	const gates = "connections: {per_address: 2}\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n"
	r := start(t, gates)
	one, two := r.connect("127.0.0.7"), r.connect("127.0.0.7")
	r.connections(2)
	three := r.connect("127.0.0.7")
	fmt.Fprint(three, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
	got, _ := io.ReadAll(three)
	if !strings.HasPrefix(string(got), "HTTP/1.1 429 ") {
		t.Errorf("a third: %q", got)
	}
	if got := ask(t, r.connect("127.0.0.8"), "/x"); got != 200 {
		t.Errorf("another address: %d", got)
	}
	_ = one.Close()
	r.connections(2)
	if got := ask(t, r.connect("127.0.0.7"), "/x"); got != 200 || ask(t, two, "/x") != 200 {
		t.Errorf("after one has gone: %d", got)
	}
	r.reload("trusted_proxies: [127.0.0.9]\n" + gates)
	for range 4 {
		if got := ask(t, r.connect("127.0.0.9"), "/x"); got != 200 {
			t.Errorf("a trusted proxy: %d", got)
		}
	}
}

// TestConnectionsAreCountedOnce: however they end, taken over or not, twice or not.
func TestConnectionsAreCountedOnce(t *testing.T) {
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.2]\nconnections: {per_address: 50}\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n")
	for _, request := range []string{"", "garbage\r\n\r\n", "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
		for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
			conn := r.connect(from)
			_, _ = io.WriteString(conn, request)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
			r.connections(0)
		}
	}
	tn := r.tunnel("/echo")
	if !tn.echoes() {
		t.Error("no tunnel")
	}
	r.connections(1)
	_ = tn.Close()
	r.connections(0)
	r.conns.mu.Lock()
	defer r.conns.mu.Unlock()
	if len(r.conns.from) != 0 || r.conns.silent.size != 0 || r.conns.idle.size != 0 {
		t.Errorf("left behind: %v, %d silent, %d idle", r.conns.from, r.conns.silent.size, r.conns.idle.size)
	}
}

// TestSL11SlowReaders: who takes in nothing loses his slot, over HTTP/1 with the
// connection, over HTTP/2 with the stream.
func TestSL11SlowReaders(t *testing.T) {
	r := start(t, "timeouts: {write: 300ms}\ngates: {a: {max_in_flight: 2}}\nroutes: [{match: /, gate: a}]\n")
	for range 2 {
		conn := r.connect("")
		fmt.Fprint(conn, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
	}
	eventually(t, "both have run", func() bool { g, _ := r.gate("a"); return g.Stats().Accepted == 2 })
	r.gateIs("a", 0, 0)
	tr := &http.Transport{DialContext: guarded, Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	res, err := tr.RoundTrip(mustRequest(r.data + "/large"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() // and nothing is read of it
	r.gateIs("a", 0, 0)
	if got := r.get("/x"); got.status != 200 {
		t.Errorf("afterwards: %+v", got)
	}
}

// TestQuietStreamsAreKept: who has nothing to read for longer than he may take in nothing
// is not to blame.
func TestQuietStreamsAreKept(t *testing.T) {
	r := start(t, "timeouts: {write: 1s}\ngates: {a: {max_in_flight: 2}}\nroutes: [{match: /, gate: a}]\n")
	for _, http2 := range []bool{false, true} {
		tr := &http.Transport{DialContext: guarded, Protocols: new(http.Protocols)}
		tr.Protocols.SetHTTP1(!http2)
		tr.Protocols.SetUnencryptedHTTP2(http2)
		defer tr.CloseIdleConnections()
		res, err := tr.RoundTrip(mustRequest(r.data + "/events"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		rd := bufio.NewReader(res.Body)
		if line, err := rd.ReadString('\n'); line != "data: 1\n" || err != nil {
			t.Errorf("HTTP/2 %v: %q, %v", http2, line, err)
		}
		<-time.After(1500 * time.Millisecond)
		r.letGo(1)
		if _, err := io.ReadAll(rd); err != nil {
			t.Errorf("HTTP/2 %v: then came %v", http2, err)
		}
	}
	r.gateIs("a", 0, 0)
	r.silent()
}

// TestPatientReadersAreServed: who reads slowly, but reads, gets everything.
func TestPatientReadersAreServed(t *testing.T) {
	r := start(t, "timeouts: {write: 2s}\ngates: {a: {max_in_flight: 2}}\nroutes: [{match: /, gate: a}]\n")
	conn := r.connect("")
	fmt.Fprint(conn, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for {
		n, err := io.CopyN(io.Discard, res.Body, 8<<20)
		total += n
		if err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if total != 64<<20 {
		t.Errorf("%d bytes came", total)
	}
}

// TestLeaversBehindABodyAreNoticed: the program lets gates look at its sockets.
func TestLeaversBehindABodyAreNoticed(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip("sockets tell on Linux only")
	}
	r := start(t, "proxy_protocol: true\ntrusted_proxies: [127.0.0.2]\ngates: {a: {max_in_flight: 1, max_wait: 10m}}\nroutes: [{match: /, gate: a}]\n")
	calls := r.call(1, "/hold")
	g := r.gateIs("a", 1, 0)
	for _, from := range []string{"127.0.0.1", "127.0.0.2"} {
		conn := r.connect(from)
		if from == "127.0.0.2" {
			fmt.Fprint(conn, "PROXY TCP4 203.0.113.9 127.0.0.1 4711 80\r\n")
		}
		fmt.Fprint(conn, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n"+strings.Repeat("x", 100<<10))
		r.gateIs("a", 1, 1)
		_ = conn.Close()
		r.gateIs("a", 1, 0)
	}
	if n := g.Stats().Canceled; n != 2 {
		t.Errorf("%d left", n)
	}
	r.letGo(1)
	calls.want(1, 200)
}

// TestOP04DescriptorsRunOut: then one that asks for nothing goes, and the listener
// says so to net/http, which waits.
func TestOP04DescriptorsRunOut(t *testing.T) {
	r := start(t, "timeouts: {read_header: 1h}\n"+bounded3)
	r.newFor(0)
	silent := r.connect("")
	r.connections(1)
	l := r.conns.listener(full{})
	if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Accept: %v", err)
	} else if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() {
		t.Error("net/http would give up")
	}
	r.connections(0)
	if !isOver(t, silent) {
		t.Error("it is still there")
	}
	for files, want := range map[int]int{0: 1 << 20, 20000: 20000 - 100 - 180, 1024: 1024 - 100 - 180, 256: 78, 100: 16} {
		cs := &conns{files: files}
		cfg := &config.Config{Gates: []config.Gate{{Config: forebay.Config{MaxInFlight: 20}}}}
		if got := cs.max(cfg); got != want {
			t.Errorf("of %d descriptors: %d connections, want %d", files, got, want)
		}
		cfg.Connections.Max = 50
		if got := cs.max(cfg); got != min(50, want) {
			t.Errorf("of %d descriptors and 50 configured: %d", files, got)
		}
	}
}

// full is a listener without descriptors.
type full struct{ net.Listener }

func (full) Accept() (net.Conn, error) {
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}
}

// TestDeadlineOfOthersGoesFirst: by one that is over the library sees to it that nothing
// is written to a caller that has left.
func TestDeadlineOfOthersGoesFirst(t *testing.T) {
	r := start(t, bounded3)
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	c := &conn{Conn: here, conns: r.conns, patience: time.Hour, closed: true}
	for _, set := range []func(time.Time) error{c.SetWriteDeadline, c.SetDeadline} {
		go func() { _, _ = there.Read(make([]byte, 1)) }()
		_ = set(time.Unix(1, 0))
		if _, err := c.Write([]byte("x")); !isTimeout(err) {
			t.Fatalf("Write: %v", err)
		}
		_ = set(time.Time{})
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("without one: %v", err)
		}
	}
}

// moved is a connection to which the kernel moves what comes, and the client's deadlines.
type moved struct {
	net.Conn
	asked []int64
	until time.Time
	left  []time.Duration // for each piece
	fails bool
}

func (m *moved) ReadFrom(r io.Reader) (int64, error) {
	if m.fails {
		return 0, io.ErrClosedPipe
	}
	m.asked = append(m.asked, r.(*io.LimitedReader).N)
	m.left = append(m.left, time.Until(m.until))
	return io.Copy(io.Discard, r)
}

func (m *moved) SetWriteDeadline(t time.Time) error {
	m.until = t
	return nil
}

// coming is a connection on which so many bytes come, and then its end.
func coming(t *testing.T, size int) net.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = far.Write(make([]byte, size))
		_ = far.Close()
	}()
	t.Cleanup(func() { _ = near.Close(); <-over })
	return near
}

// TestLargeAnswersHaveTheirTimeByThePiece: a client that reads is not cut because the
// answer is long, or because the upstream is slow.
func TestLargeAnswersHaveTheirTimeByThePiece(t *testing.T) {
	if !canWait {
		t.Skip("nothing is moved by the kernel here")
	}
	m := &moved{}
	c := &conn{Conn: m, patience: time.Hour}
	c.ours = time.Now().Add(59 * time.Minute) // of an answer before
	from := &io.LimitedReader{R: coming(t, 2*piece+100), N: 2*piece + 10}
	if n, err := c.ReadFrom(from); n != 2*piece+10 || err != nil || from.N != 0 {
		t.Errorf("%d bytes, %v; %d are left", n, err, from.N)
	}
	if len(m.asked) < 3 || slices.Max(m.asked) > piece || slices.Min(m.left) < time.Hour || slices.Max(m.left) > 2*time.Hour {
		t.Errorf("pieces of %v, in %v", m.asked, m.left)
	}
	m.asked = nil
	if n, err := c.ReadFrom(&io.LimitedReader{R: coming(t, 5), N: 3 * piece}); n != 5 || err != nil {
		t.Errorf("of a source that ends early: %d bytes, %v", n, err)
	}
	if len(m.asked) != 1 || m.asked[0] != 5 {
		t.Errorf("the kernel was to move %v bytes, want 5: it would wait for more while the client's time runs", m.asked)
	}
	m.fails = true
	if n, err := c.ReadFrom(&io.LimitedReader{R: coming(t, 1), N: 1}); n != 0 || err == nil {
		t.Errorf("to a connection that is gone: %d bytes, %v", n, err)
	}
	m.fails = false
	gone := coming(t, 1)
	_ = gone.Close()
	if n, err := c.ReadFrom(&io.LimitedReader{R: gone, N: 1}); n != 0 || err == nil {
		t.Errorf("from a connection that is gone: %d bytes, %v", n, err)
	}
}
