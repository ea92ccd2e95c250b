package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// clientConn is a client's connection as net/http gets it. To net/http it seems that
// nothing has come, until something comes that it has to read. The requests before are
// answered while it waits for the first byte, in its goroutine.
type clientConn struct {
	net.Conn
	server  *LeanServer
	context context.Context // of the connection, as the server's hooks made it

	// Of the goroutine that reads.
	requests context.Context // of what comes
	remote   string
	isTheirs bool   // net/http's for good, once what has come is handed over
	buf      []byte // what has come is between from and to
	from, to int
	reply    clientAnswer
	answered time.Time // when the last request was; zero: none was
	until    time.Time // the deadline for reading; zero: another one than ours
	inHead   bool      // the rest of a request's headers is waited for
	isOver   bool      // nothing more comes

	mu       sync.Mutex      // guards what follows
	current  *requestContext // of the request that is answered; nil: none is
	turn     uint64          // which one
	isClosed bool            // or will be when it is answered
	watch    *watch          // for the client's leaving; nil: nobody watches
}

// headSize is the longest request that is read here, and the most that comes at once.
const headSize = 4 << 10

// Read gives net/http what it has to read.
func (c *clientConn) Read(p []byte) (int, error) {
	if !c.isTheirs {
		if c.isOver = c.isOver || c.serve() != nil; c.isOver {
			return 0, io.EOF // to anything else net/http has an answer
		}
		c.isTheirs = true
	}
	if c.from < c.to {
		n := copy(p, c.buf[c.from:c.to])
		if c.from += n; c.from == c.to {
			c.buf = nil
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

var errAnswered = errors.New("proxy: the connection ends with its last answer")

// serve answers requests until one comes that is net/http's, or with an error until the
// connection is over.
func (c *clientConn) serve() error {
	c.buf, c.remote = make([]byte, headSize), c.RemoteAddr().String()
	c.requests = context.WithValue(c.context, http.LocalAddrContextKey, c.LocalAddr())
	defer context.AfterFunc(c.requests, c.leave)()
	defer c.server.forget(c)
	var next *incoming
	for {
		if next == nil {
			next = newIncoming(c.requests)
		}
		came := c.buf[c.from:c.to]
		length, what := readSimple(came, next)
		switch {
		case what == isSimple:
			if c.from += length; c.from == c.to {
				c.from, c.to = 0, 0 // there is room for the byte that is watched for
			}
			goesOn := c.answer(next)
			if next.context.spend() {
				next.again()
			} else {
				next = nil
			}
			if !goesOn {
				return errAnswered
			}
		case !c.answered.IsZero() && bytes.HasPrefix(came, []byte(preface)):
			return errAnswered
		case what == isOther && !c.isUnclear(came) || len(came) == len(c.buf):
			return c.handOver()
		default:
			if err := c.more(); err != nil {
				return err
			}
		}
	}
}

// preface is what HTTP/2 begins with. Behind requests of HTTP/1.1 it is nonsense, which
// net/http would not see, since for it the connection begins with what it gets.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// isUnclear reports whether more has to come before net/http gets what came behind an
// answer: to the end of a connection with as little it has none, and the preface of
// HTTP/2 it must not get.
func (c *clientConn) isUnclear(came []byte) bool {
	return !c.answered.IsZero() && (len(came) < len("GET ") || isBeginning(came, preface))
}

// handOver gives net/http as much time for the headers as it would have.
func (c *clientConn) handOver() error {
	if c.answered.IsZero() || c.inHead {
		return nil // it has set its own, or it runs
	}
	return c.SetReadDeadline(clock().Add(c.server.server.ReadHeaderTimeout))
}

// more reads more of a request, which has its time from its first byte on, or the next
// one.
func (c *clientConn) more() error {
	if c.from > 0 {
		c.from, c.to = 0, copy(c.buf, c.buf[c.from:c.to])
	}
	if c.to > 0 && !c.inHead && !c.answered.IsZero() {
		c.inHead = true
		if err := c.readUntil(clock().Add(c.server.server.ReadHeaderTimeout)); err != nil {
			return err
		}
	}
	for {
		if c.until.IsZero() && !c.answered.IsZero() {
			if err := c.readUntil(c.answered.Add(c.server.server.IdleTimeout)); err != nil {
				return err
			}
		}
		n, err := c.Conn.Read(c.buf[c.to:])
		if n > 0 {
			c.to += n
			return nil
		}
		// The deadline may be that of an earlier request: to set it for each costs more.
		if isTimeout(err) && c.to == 0 && clock().Before(c.answered.Add(c.server.server.IdleTimeout)) {
			c.until = time.Time{}
		} else if err != nil {
			return err
		}
	}
}

func (c *clientConn) readUntil(t time.Time) error {
	c.until = t
	return c.Conn.SetReadDeadline(t)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answer answers a request, and reports whether the connection goes on.
func (c *clientConn) answer(r *incoming) (goesOn bool) {
	if !c.begin(&r.context) {
		return false
	}
	c.tell(http.StateActive)
	r.RemoteAddr = c.remote
	c.reply.begin(c, r.Request)
	returned := false
	defer func() {
		if !returned { // net/http closes the connection of a handler that panics, and says so
			r.context.end()
		}
		goesOn = c.end(goesOn)
	}()
	c.server.server.Handler.ServeHTTP(&c.reply, r.Request)
	returned = true
	return c.reply.finish()
}

// begin says that a request is answered, unless the connection ends.
func (c *clientConn) begin(ctx *requestContext) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return false
	}
	if c.context.Err() != nil { // from here on leave tells it
		ctx.end()
	}
	c.current = ctx
	c.turn++
	c.server.busy.Add(1)
	c.server.leaves.expect(c, c.turn)
	return true
}

// end says that it is answered, and reports whether the connection goes on, if its answer
// lets it.
func (c *clientConn) end(goesOn bool) bool {
	a := &c.reply
	a.close()
	c.mu.Lock()
	w := c.watch
	c.current, c.watch = nil, nil
	goesOn = goesOn && !c.isClosed
	c.mu.Unlock()
	if w != nil {
		c.to += w.end(c.Conn)
	}
	if w != nil || a.isReadTimed.Load() {
		c.until = time.Time{}
	}
	if a.isWriteTimed.Load() {
		_ = c.SetWriteDeadline(time.Time{})
	}
	c.answered, c.inHead = a.at, false
	if !a.atOnce {
		c.answered = clock()
	}
	if goesOn {
		c.tell(http.StateIdle)
	}
	c.server.busy.Add(-1)
	return goesOn
}

// tell calls the server's hook, as net/http does.
func (c *clientConn) tell(state http.ConnState) {
	if hook := c.server.server.ConnState; hook != nil {
		hook(c, state)
	}
}

// Close closes the connection; while the server stops, once its last answer is out. When
// the requests of the server have been canceled, that is not waited for.
func (c *clientConn) Close() error {
	c.mu.Lock()
	c.isClosed = true
	waits := c.current != nil && c.server.isStopping.Load() && c.context.Err() == nil
	c.mu.Unlock()
	if waits {
		return nil
	}
	return c.Conn.Close()
}

// leave ends the request under way, for its client has left, or everything ends.
func (c *clientConn) leave() {
	c.mu.Lock()
	ctx := c.current
	c.mu.Unlock()
	if ctx != nil {
		ctx.end()
	}
}

// isEnding reports whether the answer under way is the last.
func (c *clientConn) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isClosed
}

// NetConn returns the connection inside.
func (c *clientConn) NetConn() net.Conn { return c.Conn }

// ReadFrom writes what comes from another connection, by the kernel alone where it can.
func (c *clientConn) ReadFrom(from io.Reader) (int64, error) {
	if to, ok := c.Conn.(io.ReaderFrom); ok {
		return to.ReadFrom(from)
	}
	return io.Copy(struct{ io.Writer }{c.Conn}, from)
}

// CloseWrite ends the answers alone.
func (c *clientConn) CloseWrite() error { return closeWrite(c.Conn) }

// SyscallConn leads to the socket.
func (c *clientConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
