//go:build unix

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const moving = `
upstream: %s
gates:
  a: {max_in_flight: 10, max_wait: 10m, max_waiting: 5000}
  other: {max_in_flight: %d}
routes:
  - {match: /, gate: a}
  - {match: /other/, gate: other}
`

// TestNeverAboveTheLimit is acceptance 2: 5000 requests from 500 connections while the
// limit changes 100 times and the configuration is reloaded 20 times. The backend
// counts itself.
func TestNeverAboveTheLimit(t *testing.T) {
	raiseFiles(t, 3000)
	b := newBackend(t)
	b.seen = func(*http.Request) { time.Sleep(time.Millisecond) } // some work, so that calls overlap
	b.allowed.Store(10)
	p := start(t, fmt.Sprintf(moving, b.URL, 1))
	const connections, each = 500, 10
	var clients sync.WaitGroup
	failed := make(chan string, connections*each)
	changed := make(chan struct{})
	for range connections {
		clients.Go(func() { p.oneConnection(each, changed, failed) })
	}
	p.moveLimits(b)
	close(changed)
	clients.Wait()
	close(failed)
	for f := range failed {
		t.Errorf("a request failed: %s", f)
	}
	if n := b.tooMany.Load(); n > 0 {
		t.Errorf("%d times more ran than the limit in force, at most %d at once", n, b.most.Load())
	}
	if most := b.most.Load(); most < 10 {
		t.Errorf("at most %d ran at once; the test has no load", most)
	}
	if served := b.served.Load(); served < connections*each {
		t.Errorf("%d were served, want %d at least", served, connections*each)
	}
	p.gateIs("a", 0, 0)
	b.allowed.Store(0)
	p.fullSet(b, "a", 10)()
	if st := p.stats("a"); st.Granted != st.Released || st.StaleReleases != 0 {
		t.Errorf("granted %d, released %d, stale %d", st.Granted, st.Released, st.StaleReleases)
	}
}

// oneConnection sends requests one after the other on a connection of its own: so many,
// and until the limits no longer move.
func (p *program) oneConnection(n int, until <-chan struct{}, failed chan<- string) {
	conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
	if err != nil {
		failed <- err.Error()
		return
	}
	defer conn.Close()
	rd := bufio.NewReader(conn)
	for i := 0; ; i++ {
		select {
		case <-until:
			if i >= n {
				return
			}
		default:
		}
		fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(rd, nil)
		if err != nil {
			failed <- err.Error()
			return
		}
		if _, err := rd.Discard(int(res.ContentLength)); err != nil || res.StatusCode != http.StatusOK {
			failed <- fmt.Sprint(res.StatusCode, err)
			return
		}
	}
}

// moveLimits changes the limit 100 times and reloads 20 times, each sixth step. What
// the backend may see rises before the limit does, and falls once what was admitted
// before has ended.
func (p *program) moveLimits(b *backend) {
	p.Helper()
	for step := range 120 {
		limit := int64(1 + (step*7)%20)
		change := func() {
			p.ask("PUT", "/gates/a/max_in_flight", fmt.Sprintf(`{"max_in_flight":%d}`, limit))
		}
		if step%6 == 5 {
			limit = 10 // a reload ends what was set by hand
			change = func() {
				p.write(fmt.Sprintf(moving, b.URL, 2+step))
				p.ask("POST", "/reload", "")
			}
		}
		b.allowed.Store(max(b.allowed.Load(), limit))
		change()
		eventually(p, "no more run than may", func() bool { return p.stats("a").InUse <= int(limit) })
		b.allowed.Store(limit)
	}
}

// residentSet is the memory of a process in bytes.
func residentSet(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("the memory of a process is not shown here: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// TestTenThousandInLine is the second half of acceptance 2: what a request in line
// costs the program, which runs in a process of its own, and that all are answered.
func TestTenThousandInLine(t *testing.T) {
	const waiting, limit, most = 10_000, 10, 30 << 10
	raiseFiles(t, waiting+1000)
	b := newBackend(t)
	p := start(t, fmt.Sprintf("upstream: %s\ngates: {a: {max_in_flight: %d, max_wait: 1h, max_waiting: %d}}\nroutes: [{match: /, gate: a}]\n", b.URL, limit, waiting))
	p.stats("a")
	before := residentSet(t, p.cmd.Process.Pid)
	conns := make([]net.Conn, waiting+limit)
	for i := range conns {
		conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
		fmt.Fprint(conn, "GET /hold HTTP/1.1\r\nHost: example.com\r\nUser-Agent: e2e\r\nAccept: */*\r\n\r\n")
	}
	p.gateIs("a", limit, waiting)
	each := (residentSet(t, p.cmd.Process.Pid) - before) / waiting
	t.Logf("%d bytes each in line", each)
	if each > most {
		t.Errorf("a request in line costs %d bytes, at most %d are allowed", each, most)
	}
	close(b.letGo) // all of them
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("no answer: %v, %v", res, err)
		}
	}
	p.gateIs("a", 0, 0)
	if got := b.most.Load(); got > limit {
		t.Errorf("%d ran at once, want at most %d", got, limit)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}
