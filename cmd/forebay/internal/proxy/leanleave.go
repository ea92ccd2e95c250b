package proxy

import (
	"net"
	"sync"
	"time"
)

const (
	// moment is how often the requests under way are looked at: one that has lasted for
	// longer than a moment and less than two gets a watch. Half of it would start a
	// goroutine for more requests that are done in time; twice as long, one for a caller
	// who has left goes on for longer.
	moment = 5 * time.Millisecond
	// quietMoments is how many pass without a request until nobody looks any more.
	quietMoments = 20
)

// leaves has somebody watch for the leaving of clients whose requests last.
type leaves struct {
	mu              sync.Mutex // guards what follows
	isLooking       bool
	recent, earlier []expected // since the last look, and before that
}

// expected is a request that may be under way.
type expected struct {
	client *clientConn
	turn   uint64
}

// expect is told of every request.
func (l *leaves) expect(c *clientConn, turn uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent = append(l.recent, expected{c, turn})
	if !l.isLooking {
		l.isLooking = true
		go l.look() // ends when there is nothing to look at
	}
}

func (l *leaves) look() {
	tick := time.NewTicker(moment)
	defer tick.Stop()
	var done []expected
	for quiet := 0; ; {
		<-tick.C
		l.mu.Lock()
		due := l.earlier
		l.earlier, l.recent = l.recent, done
		if quiet++; len(due)+len(l.earlier) > 0 {
			quiet = 0
		}
		if quiet == quietMoments {
			l.isLooking, l.earlier, l.recent = false, nil, nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		for _, e := range due {
			e.client.watchOver(e.turn)
		}
		clear(due)
		done = due[:0]
	}
}

// watch waits for the client to leave, which a connection tells by its end.
type watch struct {
	over chan struct{}
	came int // a byte of the next request
}

// watchOver begins to watch if a request is still under way.
func (c *clientConn) watchOver(turn uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || c.turn != turn || c.to == len(c.buf) {
		return
	}
	if c.Conn.SetReadDeadline(time.Time{}) != nil { // it is closed
		c.current.end()
		return
	}
	c.watch = &watch{over: make(chan struct{})}
	go c.watch.run(c.Conn, c.buf[c.to:c.to+1], c.current)
}

func (w *watch) run(c net.Conn, next []byte, r *requestContext) {
	defer close(w.over)
	n, err := c.Read(next)
	w.came = n
	if err != nil { // also if it was broken off, behind the handler
		r.end()
	}
}

// end ends the watch, and returns how many bytes of the next request have come.
func (w *watch) end(c net.Conn) int {
	_ = c.SetReadDeadline(longAgo)
	<-w.over
	return w.came
}
