package proxy

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var errTooManyHeaders = errors.New("proxy: the headers of the upstream's answer are larger than 1 MiB")

// leanConn is a connection to the upstream. It belongs to one request at a time, and what
// says nothing else to that one's goroutine.
type leanConn struct {
	net.Conn
	lean    *lean
	answers *bufio.Reader
	out     *bufio.Writer
	raw     syscall.RawConn // nil: it is no socket
	peek    func(fd uintptr)
	cut     func() // ends the request, from any goroutine
	peeked  bool   // what peek has found: it is alive and silent
	reused  bool
	isTimed bool      // the headers of an answer have to be there in time
	since   time.Time // idle

	// Of the request under way.
	stop   func() bool // ends the watch over its context
	upload *sending    // nil: it has no body
	got    int64       // of the answer, in bytes
	room   int64       // for headers; -1: those are there
	head   []byte      // what came of an answer whose headers did not come at once
	late   error       // that their time was over; net/http loses it behind half a line
	wrote  atomic.Int64
	// unwritten is why writing failed. It belongs to who writes, as out does.
	unwritten error

	mu       sync.Mutex // guards what follows
	answered bool       // the headers are there, and reading is to have no deadline any more
}

func newLeanConn(l *lean, raw net.Conn) *leanConn {
	c := &leanConn{Conn: raw, lean: l, isTimed: true, cut: func() { _ = raw.Close() }}
	if s, ok := raw.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	c.peek = func(fd uintptr) { c.peeked = isSilent(fd) }
	c.answers, c.out = bufio.NewReader(readSide{c}), bufio.NewWriter(writeSide{c})
	return c
}

// alive reports whether a connection that was idle can be used: it has not ended, and
// nothing came that nobody has asked for. What came would be taken for the answer of the
// next request.
func (c *leanConn) alive() bool {
	if c.raw == nil {
		return true
	}
	c.peeked = false
	return c.raw.Control(c.peek) == nil && c.peeked
}

// hasEnded reports whether the upstream has ended the connection.
func (c *leanConn) hasEnded() bool {
	if c.raw == nil {
		return true
	}
	c.peeked = true
	return c.raw.Control(func(fd uintptr) { c.peeked = isOver(fd) }) != nil || c.peeked
}

// spliceable returns the socket that the kernel can read the answer from; nil: it cannot.
func (c *leanConn) spliceable() io.Reader {
	switch c.Conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return c.Conn
	}
	return nil
}

// readSide is where answers are read from.
type readSide struct{ *leanConn }

// Read reads on, within the bounds of headers while those are read.
func (s readSide) Read(p []byte) (int, error) {
	if s.room == 0 {
		return 0, errTooManyHeaders
	}
	if s.room > 0 {
		p = p[:min(int64(len(p)), s.room)]
	}
	n, err := s.Conn.Read(p)
	s.got += int64(n)
	if s.room > 0 {
		s.room -= int64(n)
		if len(s.head) > 0 || !bytes.Contains(p[:n], headEnd) {
			s.head = append(s.head, p[:n]...)
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.late = err
	}
	return n, err
}

var headEnd = []byte("\r\n\r\n")

// rewind has the headers read again from their beginning, which were cut off by the time.
func (c *leanConn) rewind() {
	c.answers.Reset(io.MultiReader(bytes.NewReader(c.head), readSide{c}))
}

// writeSide is where requests are written to. While a body goes out each piece of it has
// its time; a request without one has its time as a whole.
type writeSide struct{ *leanConn }

// Write writes within the upstream's patience.
func (s writeSide) Write(p []byte) (int, error) {
	if s.upload != nil {
		if err := s.SetWriteDeadline(clock().Add(s.lean.patience)); err != nil {
			return 0, err
		}
	}
	n, err := s.Conn.Write(p)
	s.wrote.Add(int64(n))
	if err != nil {
		s.unwritten = err
	}
	return n, err
}

// roundTrip sends a request and returns when the headers of its answer are there. After
// an error the connection must be closed.
func (c *leanConn) roundTrip(r *http.Request, interim func(int, http.Header)) (*http.Response, error) {
	c.got, c.answered, c.upload, c.unwritten = 0, false, nil, nil
	c.wrote.Store(0)
	c.stop = context.AfterFunc(r.Context(), c.cut)
	err := c.send(r)
	if err != nil {
		return nil, err
	}
	res, err := c.receive(r, interim)
	if err != nil {
		return nil, c.upload.orBroken(err)
	}
	return res, c.handOver(res)
}

// isLate reports whether a request that failed is out whole, and the upstream silent.
func (c *leanConn) isLate(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && c.upload.isOut() && c.unwritten == nil
}

// send sends the request, or begins to where it has a body.
func (c *leanConn) send(r *http.Request) error {
	if r.Body != nil {
		// The time of the request before is over, and the upload has as long as it needs.
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		c.upload = newSending(c, r)
		go c.upload.run() // ends with the body, the connection, or the request of the client
		return nil
	}
	until := clock().Add(c.lean.patience)
	if err := c.SetDeadline(until); err != nil {
		return err
	}
	if !c.isTimed {
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
	if err := r.Write(c.out); err != nil {
		return err
	}
	return c.out.Flush()
}

// receive reads the headers of the answer, and those of the answers of kind 1xx before.
func (c *leanConn) receive(r *http.Request, interim func(int, http.Header)) (*http.Response, error) {
	c.room, c.late = maxAnswerHeaderBytes, nil
	for {
		here, _ := c.answers.Peek(c.answers.Buffered()) // behind an answer of kind 1xx
		c.head = append(c.head[:0], here...)
		res, err := http.ReadResponse(c.answers, r)
		if err != nil {
			return nil, cmp.Or(c.late, err)
		}
		if res.StatusCode < 100 || res.StatusCode > 199 || res.StatusCode == http.StatusSwitchingProtocols {
			c.room = -1
			c.mu.Lock()
			c.answered = true
			c.mu.Unlock()
			c.upload.answered(!res.Close) // which may end the upload, but not the answer
			return res, nil
		}
		if res.StatusCode == http.StatusContinue {
			c.upload.answered(true)
		}
		interim(res.StatusCode, res.Header)
		c.room = maxAnswerHeaderBytes // they are the client's now
	}
}

// handOver makes the body of the answer what the caller gets. Reading it is not timed:
// streams last.
func (c *leanConn) handOver(res *http.Response) error {
	switch {
	case res.StatusCode == http.StatusSwitchingProtocols:
		res.Body = &switchedConn{c}
		//mutate:equivalent what it would cut, when the request ends, is closed then
		c.stop()
		return c.SetDeadline(time.Time{})
	case res.Body == http.NoBody || res.ContentLength == 0:
		c.release(!res.Close)
		return nil
	default:
		res.Body = &leanBody{ReadCloser: res.Body, conn: c, keep: !res.Close}
		if res.ContentLength > 0 && int64(c.answers.Buffered()) >= res.ContentLength {
			return nil // it is here already
		}
	}
	return c.SetReadDeadline(time.Time{})
}

// await bounds the time until the headers of the answer are there, from any goroutine.
func (c *leanConn) await(patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.answered {
		_ = c.SetReadDeadline(clock().Add(patience))
	}
}

// isUntouched reports whether the upstream has seen nothing of a request that failed, and
// nothing is missing that another attempt needs. The connection is closed.
func (c *leanConn) isUntouched() bool {
	if c.upload != nil {
		if c.upload.giveUp() {
			return false
		}
		<-c.upload.done // it may have written just now; it reads nothing any more
	}
	return c.wrote.Load() == 0
}

// release gives the connection back when the answer has been read to its end.
func (c *leanConn) release(keep bool) {
	// Whoever stops the watch first wins: a context that has ended closes the connection.
	if c.stop() && keep && c.answers.Buffered() == 0 && c.upload.isOut() {
		c.lean.idle.put(c)
		return
	}
	_ = c.Close()
}

// leanBody is the body of an answer.
type leanBody struct {
	io.ReadCloser // net/http's; to close it would read it to its end
	conn          *leanConn
	keep          bool
	over          atomic.Bool
}

// Read reads on, and gives the connection back at the end.
func (b *leanBody) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.over.Swap(true) {
		b.conn.release(b.keep && err == io.EOF)
	}
	return n, err
}

// end gives the connection back, when the body was read to its end behind our back.
func (b *leanBody) end() {
	if !b.over.Swap(true) {
		b.conn.release(b.keep)
	}
}

// Close ends the connection, if the body was not read to its end.
func (b *leanBody) Close() error {
	if !b.over.Swap(true) {
		b.conn.release(false)
	}
	return nil
}

// switchedConn is a connection that speaks another protocol now.
type switchedConn struct{ *leanConn }

// Read reads on, first what came with the headers.
func (s *switchedConn) Read(p []byte) (int, error) { return s.answers.Read(p) }

// CloseWrite ends one direction.
func (s *switchedConn) CloseWrite() error { return closeWrite(s.Conn) }
