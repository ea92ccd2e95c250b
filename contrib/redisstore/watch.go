package redisstore

import (
	"net"
	"sync/atomic"
	"time"
)

// watched is a connection that is closed when something was sent and nothing comes
// back for a while: over one that is half open, or to a server that is frozen, what is
// sent piles up and never fails.
//
// Its timer is not set for each command, which would cost as much as to send it: once
// it runs, it runs to its end, and then looks for how long an answer has been owed.
type watched struct {
	net.Conn
	began time.Time
	owed  atomic.Int64 // since when, from began on and at least 1; 0: no answer is
	runs  atomic.Bool  // the timer does
	timer *time.Timer
}

func watch(c net.Conn) net.Conn {
	w := &watched{Conn: c, began: time.Now()}
	w.timer = time.AfterFunc(silence, w.look)
	w.runs.Store(true)
	return w
}

// Write sends, and begins to wait for an answer.
func (w *watched) Write(b []byte) (int, error) {
	if w.owed.Load() == 0 {
		w.owed.CompareAndSwap(0, max(1, int64(time.Since(w.began))))
	}
	w.run(silence)
	return w.Conn.Write(b)
}

// Read receives.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.owed.Store(0)
	return n, err
}

// Close ends the connection and the watch.
func (w *watched) Close() error {
	w.timer.Stop()
	return w.Conn.Close()
}

// run starts the timer unless it runs.
func (w *watched) run(d time.Duration) {
	if w.runs.CompareAndSwap(false, true) {
		w.timer.Reset(d)
	}
}

// look closes the connection if an answer has been owed for too long.
func (w *watched) look() {
	w.runs.Store(false) // before the look: who writes after it finds that it must start it
	owed := time.Duration(w.owed.Load())
	if owed == 0 {
		return
	}
	if left := silence - (time.Since(w.began) - owed); left > 0 {
		w.run(left)
		return
	}
	_ = w.Conn.Close()
}
