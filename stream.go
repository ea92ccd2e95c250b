package forebay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Hold says until when a request behind a handler of this package keeps its slot.
type Hold uint8

// The ends of a hold. The zero value is HoldHandler. A lease that is given back earlier,
// by hand, is given back.
const (
	// HoldHandler keeps the slot until the handler returns or panics.
	HoldHandler Hold = iota
	// HoldFirstByte gives it back when the answer begins: for a backend that has done its
	// work by then, and before a client that reads slowly. Of a stream that means
	// that it holds none.
	HoldFirstByte
	// HoldUpstreamDone gives it back when the answer of another server has come in whole,
	// though the client has not read it yet. Only a proxy knows when that is: for every
	// other handler it is HoldHandler.
	HoldUpstreamDone
	holdKinds // how many there are
)

var holdNames = [holdKinds]string{"handler", "first_byte", "upstream_done"}

// String returns the word that configurations use: "first_byte".
func (h Hold) String() string {
	if h < holdKinds {
		return holdNames[h]
	}
	return "unknown"
}

// Streams says what becomes of a slot when its request turns into a stream: a connection
// that the handler takes over, as for WebSocket, or an answer of type text/event-stream.
// Streams last, and as many of them as there are slots keep everybody else out. The zero
// value keeps the slot until the handler returns. In a chain the first gate that has
// rules decides for all of them.
type Streams struct {
	// Release gives the slot back when the stream begins.
	Release bool
	// Gate is where the stream takes a slot instead, for as long as it lasts. If that gate
	// refuses it the client gets that gate's refusal, in place of the stream's first byte,
	// the handler's context ends, and what it writes goes nowhere. It must be none of the
	// gates that the request has passed, whose slot it holds meanwhile: chains and groups
	// refuse that. Where it comes about all the same, by a path that can be read in several
	// ways or by a later Reconfigure, the stream keeps the slots it has. Nil: none.
	Gate *Gate
	// UntilClosed keeps the slot of a connection that was taken over until the connection
	// is closed, also when the handler has returned before.
	UntilClosed bool
	// MaxLife is how long a stream may last, and MaxIdle how long it may go without a byte
	// in either direction (of an event stream: to the client). Then it is ended: the
	// request's context ends, with a cause that is [ErrStreamOver], and a connection that
	// was taken over is closed. 0: no limit. (A client of HTTP/2 that reads nothing of its
	// whole connection is ended by the server's http.HTTP2Config.WriteByteTimeout alone.)
	MaxLife, MaxIdle time.Duration
}

// ErrStreamOver is why the context of a stream ended that has lasted or idled for as
// long as [Streams] allows: errors.Is(context.Cause(ctx), ErrStreamOver). The cause
// itself says which of the two.
var ErrStreamOver = errors.New("forebay: the stream is over")

func (s *Streams) validate() (errs []error) {
	if s.Release && s.Gate != nil {
		errs = append(errs, errors.New("forebay: Streams has Release and a Gate; give one of them"))
	}
	if s.Release && s.UntilClosed {
		errs = append(errs, errors.New("forebay: Streams has Release and UntilClosed; what is given back is not kept"))
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"MaxLife", s.MaxLife}, {"MaxIdle", s.MaxIdle}} {
		if f.value < 0 || f.value > longestHold {
			errs = append(errs, fmt.Errorf("forebay: Streams.%s is %v; it must be 0 (no limit) to %v", f.name, f.value, longestHold))
		}
	}
	return errs
}

// limited reports whether somebody has to end the stream.
func (s *Streams) limited() bool { return s.MaxLife > 0 || s.MaxIdle > 0 }

// limits ends a stream that lasts too long, or is idle too long. Bytes are only noted;
// the timer looks when it was last.
type limits struct {
	rules Streams
	cut   func(why error)
	after func() // nil: nothing
	began time.Time
	last  atomic.Int64 // since it began

	mu    sync.Mutex // guards timer, and is held while cut runs
	timer *time.Timer
}

// newLimits begins to watch. If it comes to it cut ends the stream, and after follows;
// once stop has returned cut is not running and never will.
func newLimits(rules Streams, cut func(why error), after func()) *limits {
	l := &limits{rules: rules, cut: cut, after: after, began: clock()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(l.left(0), l.look)
	return l
}

// left returns how long the stream may go on, if nothing comes.
func (l *limits) left(lasted time.Duration) time.Duration {
	left := longestHold
	if l.rules.MaxLife > 0 {
		left = l.rules.MaxLife - lasted
	}
	if l.rules.MaxIdle > 0 {
		left = min(left, l.rules.MaxIdle-(lasted-time.Duration(l.last.Load())))
	}
	return left
}

func (l *limits) look() {
	if l.lookLocked() && l.after != nil {
		l.after()
	}
}

func (l *limits) lookLocked() (over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lasted := clock().Sub(l.began)
	left := l.left(lasted)
	switch {
	case l.timer == nil:
		return false
	case left > 0:
		l.timer.Reset(left)
		return false
	}
	l.timer = nil
	l.cut(l.why(lasted))
	return true
}

// why says which rule ended a stream.
func (l *limits) why(lasted time.Duration) error {
	if l.rules.MaxLife > 0 && lasted >= l.rules.MaxLife {
		return fmt.Errorf("%w: it has lasted for %v", ErrStreamOver, l.rules.MaxLife)
	}
	return fmt.Errorf("%w: nothing has come or gone for %v", ErrStreamOver, l.rules.MaxIdle)
}

// moved notes that bytes went in one direction or the other.
func (l *limits) moved() {
	if l != nil && l.rules.MaxIdle > 0 {
		l.last.Store(int64(clock().Sub(l.began)))
	}
}

func (l *limits) stop() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// streamConn is a connection that a handler took over, as long as somebody has to see
// when it is closed or used.
type streamConn struct {
	net.Conn
	limits *limits
	end    func() // once
}

// newStreamConn watches a connection. lease is given back when it is closed; the zero
// lease is the handler's matter. Where the rules end it stop is told first. A connection
// that is forgotten without being closed, which its own finalizer closes, gives its slot
// back too.
func newStreamConn(c net.Conn, rules Streams, lease Lease, stop context.CancelCauseFunc) *streamConn {
	end := sync.OnceFunc(func() { lease.ReleaseAs(OutcomeIgnored) })
	s := &streamConn{Conn: c, end: end}
	if rules.limited() {
		s.limits = newLimits(rules, func(why error) {
			stop(why)
			_ = c.Close()
		}, end)
	}
	runtime.AddCleanup(s, func(end func()) { end() }, end)
	return s
}

// NetConn returns the connection inside.
func (s *streamConn) NetConn() net.Conn { return s.Conn }

// Read reads what the client sends.
func (s *streamConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.limits.moved()
	}
	return n, err
}

// Write writes to the client.
func (s *streamConn) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if n > 0 {
		s.limits.moved()
	}
	return n, err
}

// CloseWrite closes the half that goes to the client, where the connection has halves.
func (s *streamConn) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection and gives its slot back.
func (s *streamConn) Close() error {
	s.limits.stop()
	err := s.Conn.Close()
	s.end()
	return err
}

// through returns the buffers of a connection that was taken over: what was read before
// its time comes first, and what follows goes through conn.
func through(conn net.Conn, rw *bufio.ReadWriter, early []byte) *bufio.ReadWriter {
	buffered, _ := rw.Reader.Peek(rw.Reader.Buffered())
	early = append(early, buffered...)
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), max(rw.Reader.Size(), len(early)))
	if len(early) > 0 {
		_, _ = r.Peek(len(early)) // so that Buffered says it, by which handlers go
	}
	return bufio.NewReadWriter(r, bufio.NewWriterSize(conn, rw.Writer.Size()))
}
