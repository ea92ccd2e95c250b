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
// Its timer is not set for each command, which would cost much of what it takes to
// send it: it runs while answers are owed, and counts how often it found one owing.
type watched struct {
	net.Conn
	owed  atomic.Int32 // 1 and the looks since something was sent; 0: no answer is owed
	runs  atomic.Bool  // the timer does
	timer *time.Timer
}

// looks is after how many of them an answer has been owed for the length of a silence.
const looks = 5

func watch(c net.Conn) net.Conn {
	w := &watched{Conn: c}
	w.runs.Store(true)
	w.timer = time.AfterFunc(silence/looks, w.look)
	return w
}

// Write sends, and begins to wait for an answer.
func (w *watched) Write(b []byte) (int, error) {
	w.owed.CompareAndSwap(0, 1)
	w.run()
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
func (w *watched) run() {
	if w.runs.CompareAndSwap(false, true) {
		w.timer.Reset(silence / looks)
	}
}

// look closes the connection if an answer has been owed for too long. The first look
// may come at once, and counts for nothing.
func (w *watched) look() {
	w.runs.Store(false) // before the look: who sends after it finds that it must start it
	switch owed := w.owed.Load(); {
	case owed == 0:
	case owed > looks:
		_ = w.Conn.Close()
	default:
		w.owed.CompareAndSwap(owed, owed+1) // unless it was answered
		w.run()
	}
}
