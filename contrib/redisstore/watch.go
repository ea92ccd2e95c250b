package redisstore

import (
	"net"
	"sync"
	"time"
)

// watched is a connection that is closed when something was sent and nothing comes
// back for a while: over one that is half open, or to a server that is frozen, what is
// sent piles up and never fails.
type watched struct {
	net.Conn

	mu    sync.Mutex  // guards timer
	timer *time.Timer // runs while an answer is owed; nil: none is
}

func watch(c net.Conn) net.Conn { return &watched{Conn: c} }

// Write sends, and begins to wait for an answer.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	if w.timer == nil {
		w.timer = time.AfterFunc(silence, func() { _ = w.Conn.Close() })
	}
	w.mu.Unlock()
	return w.Conn.Write(b)
}

// Read receives.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.stop()
	return n, err
}

// Close ends the connection and the watch.
func (w *watched) Close() error {
	w.stop()
	return w.Conn.Close()
}

func (w *watched) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}
