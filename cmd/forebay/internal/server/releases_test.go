package server

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// watchedConn is a connection on which nothing comes, and that knows how it was ended.
type watchedConn struct {
	net.Conn
	said               atomic.Pointer[string]
	closed, closedHalf atomic.Int64
}

func (c *watchedConn) Read([]byte) (int, error) { return 0, io.EOF }
func (c *watchedConn) Write(p []byte) (int, error) {
	s := string(p)
	c.said.Store(&s)
	return len(p), nil
}
func (c *watchedConn) SetDeadline(time.Time) error           { return nil }
func (c *watchedConn) Close() error                          { c.closed.Add(1); return nil }
func (c *watchedConn) CloseWrite() error                     { c.closedHalf.Add(1); return nil }
func (c *watchedConn) RemoteAddr() net.Addr                  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *watchedConn) SyscallConn() (syscall.RawConn, error) { return nil, syscall.ENOTSUP }

// TestWhoIsTurnedAwayIsClosed: told why, whether or not what came with him is read; and he
// counts as one that is read no longer than he is.
func TestWhoIsTurnedAwayIsClosed(t *testing.T) {
	r := start(t, bounded3)
	lingers := func() int {
		r.conns.mu.Lock()
		defer r.conns.mu.Unlock()
		return r.conns.lingers
	}
	turnAway := func() *watchedConn {
		c := &watchedConn{}
		r.conns.mu.Lock()
		r.conns.turnAwayLocked(c, "503 Service Unavailable")
		return c
	}
	c := turnAway()
	eventually(t, "it is closed, and not read any more", func() bool { return c.closed.Load() == 1 && lingers() == 0 })
	if c.said.Load() == nil || c.closedHalf.Load() != 1 {
		t.Error("it is not told, or not that there is no more")
	}
	r.conns.mu.Lock()
	r.conns.lingers = maxLingers
	r.conns.mu.Unlock()
	if c = turnAway(); c.closed.Load() != 1 || c.said.Load() == nil || lingers() != maxLingers {
		t.Error("where many are read it stays open, or is told nothing")
	}
	r.conns.mu.Lock()
	r.conns.lingers = 0
	r.conns.mu.Unlock()
}

// TestHalfAConnectionIsClosed by every layer between net/http and the socket.
func TestHalfAConnectionIsClosed(t *testing.T) {
	raw := &watchedConn{}
	if err := (&conn{Conn: raw}).CloseWrite(); err != nil || raw.closedHalf.Load() != 1 {
		t.Errorf("a counted connection: %v", err)
	}
	if err := (headed{proxyproto.NewConn(raw)}).CloseWrite(); err != nil || raw.closedHalf.Load() != 2 {
		t.Errorf("one with a PROXY header: %v", err)
	}
}

// TestConnectionsThatComeWithTheEnd are closed as those before them.
func TestConnectionsThatComeWithTheEnd(t *testing.T) {
	f, early, late := new(fresh), &watchedConn{}, &watchedConn{}
	f.note(early, http.StateNew)
	f.close()
	f.note(late, http.StateNew)
	if early.closed.Load() != 1 || late.closed.Load() != 1 {
		t.Errorf("closed %d and %d times", early.closed.Load(), late.closed.Load())
	}
}

// TestDrainTimeoutEndsTunnels: of which net/http knows nothing any more, before the program is
// at its end.
func TestDrainTimeoutEndsTunnels(t *testing.T) {
	r := start(t, "drain_timeout: 50ms\ngates: {a: {max_in_flight: 9}}\nroutes: [{match: /, gate: a}]\n")
	tunnel := r.tunnel("/echo")
	if code := r.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	_, _ = io.Copy(io.Discard, tunnel)
	if n := r.running.size(); n != 0 {
		t.Errorf("%d requests still run", n)
	}
}
