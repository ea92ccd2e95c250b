//go:build unix

package e2e

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// wire is a line to Redis that a test can slow down and cut. It listens all the time
// and, while it is cut, closes what comes in.
type wire struct {
	listener net.Listener
	to       string
	all      sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]bool
	cut   bool
	late  time.Duration // of what Redis answers
}

// newWire lays a line to an address.
func newWire(t testing.TB, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, to: to, conns: map[net.Conn]bool{}}
	w.all.Go(w.accept)
	t.Cleanup(func() {
		l.Close()
		w.set(true, 0)
		w.all.Wait()
	})
	return w
}

// url is how Redis is called through it.
func (w *wire) url() string { return "redis://" + w.listener.Addr().String() }

// set cuts the line or makes it whole, and says how late answers come.
func (w *wire) set(cut bool, late time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.late = cut, late
	for c := range w.conns {
		if cut {
			c.Close()
		}
	}
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil || !w.keep(near, far) {
			near.Close()
			if far != nil {
				far.Close()
			}
			continue
		}
		w.all.Go(func() { w.pass(far, near, false) })
		w.all.Go(func() { w.pass(near, far, true) })
	}
}

// keep notes a connection, unless the line is cut.
func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
	}
	return !w.cut
}

// pass hands on what comes; answers late, each by as much, in order.
func (w *wire) pass(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 1<<16)
	w.all.Go(func() {
		defer to.Close()
		for p := range parts {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				from.Close()
				return
			}
		}
	})
	defer close(parts)
	for {
		buf := make([]byte, 4<<10)
		n, err := from.Read(buf)
		if n > 0 {
			w.mu.Lock()
			late := w.late
			w.mu.Unlock()
			if !answers {
				late = 0
			}
			parts <- part{buf[:n], time.Now().Add(late)}
		}
		if err == io.EOF || err != nil {
			return
		}
	}
}
