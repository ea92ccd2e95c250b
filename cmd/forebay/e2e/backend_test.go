//go:build unix

package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// backend is an upstream that counts what runs in it. /hold answers when it is told
// to, /half breaks off in mid-body, /stream goes on until it is cut, /slow never
// answers, /read takes in the body first, /big answers with much, /tunnel switches to a
// protocol of lines that come back, and everything else is answered at once.
type backend struct {
	*httptest.Server
	running, most, served atomic.Int64
	allowed               atomic.Int64 // 0: not watched
	tooMany               atomic.Int64
	letGo                 chan struct{}
	over                  chan struct{}
	seen                  func(*http.Request) // called as a request arrives
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
	defer func() {
		b.running.Add(-1)
		b.served.Add(1)
	}()
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	if allowed := b.allowed.Load(); allowed > 0 && n > allowed {
		b.tooMany.Add(1)
	}
	if b.seen != nil {
		b.seen(r)
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/hold"), strings.HasSuffix(path, "/slow"):
		b.hold(r.Context())
	case strings.HasSuffix(path, "/stream"):
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		b.hold(r.Context())
	case strings.HasSuffix(path, "/read"):
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "fine\n")
	case strings.HasSuffix(path, "/half"):
		breakOff(w)
	case strings.HasSuffix(path, "/big"):
		_, _ = w.Write(big)
	case strings.HasSuffix(path, "/tunnel"):
		echo(w)
	default:
		_, _ = io.WriteString(w, "fine\n")
	}
}

// big is more than the sockets between the program and a client take in by themselves.
var big = bytes.Repeat([]byte("more than a socket takes\n"), 16<<20/25)

// echo is a tunnel whose other end sends each line back, until one side closes.
func echo(w http.ResponseWriter) {
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

func (b *backend) hold(ctx context.Context) {
	select {
	case <-b.letGo:
	case <-b.over:
	case <-ctx.Done():
	}
}

// free lets n requests that are held end.
func (b *backend) free(t testing.TB, n int) {
	t.Helper()
	over := time.After(patience)
	for range n {
		select {
		case b.letGo <- struct{}{}:
		case <-over:
			t.Fatalf("the backend holds nobody that could go")
		}
	}
}

// breakOff ends the connection in the middle of a body, as a worker that is killed.
func breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

// calls are requests under way.
type calls struct {
	program *program
	replies chan reply
	leave   context.CancelFunc
}

// call sends n requests and does not wait for them.
func (p *program) call(n int, path string) *calls {
	ctx, cancel := context.WithCancel(context.Background())
	c := &calls{p, make(chan reply, n), cancel}
	for range n {
		go func() { c.replies <- p.do(ctx, http.MethodGet, p.data+path, "") }()
	}
	p.Cleanup(cancel)
	return c
}

// all waits for n replies and returns how many there were of each status.
func (c *calls) all(n int) map[int]int {
	c.program.Helper()
	counts := map[int]int{}
	for range n {
		eventually(c.program, "a reply", func() bool {
			select {
			case got := <-c.replies:
				counts[got.status]++
				return true
			default:
				return false
			}
		})
	}
	return counts
}

// fullSet checks that n requests run at once, and one more does not.
func (p *program) fullSet(b *backend, gate string, n int) func() {
	return func() {
		p.Helper()
		c := p.call(n, "/hold")
		p.gateIs(gate, n, 0)
		eventually(p, "the backend has them all", func() bool { return b.running.Load() == int64(n) })
		b.free(p, n)
		if got := c.all(n); got[http.StatusOK] != n {
			p.Errorf("a full set was answered %v", got)
		}
	}
}
