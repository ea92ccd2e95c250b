package proxy

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

var (
	errGivenUp  = errors.New("proxy: the attempt was given up")
	errUnwanted = errors.New("proxy: the upstream has answered before it got the body, and closes")
)

// afterBroken is how long the upstream's answer may take that did not take in the whole
// request: it lies on the connection already, or does not come.
const afterBroken = time.Second

// sending is a request with a body on its way to the upstream, which may answer before it
// has got all of it. A nil one is a request without a body.
type sending struct {
	conn    *leanConn
	request http.Request
	out     *bufio.Writer
	from    io.ReadCloser
	goOn    chan bool     // what came of asking first (Expect: 100-continue); nil: it was not asked
	done    chan struct{} // closed when nothing more will be sent

	mu    sync.Mutex // guards what follows, and is not held while reading
	begun bool       // something was read, or will be
	over  bool       // given up: nothing must be read any more
	read  error      // why reading broke off
	sent  error      // why sending did
}

func newSending(c *leanConn, r *http.Request) *sending {
	s := &sending{conn: c, request: *r, out: c.out, from: r.Body, done: make(chan struct{})}
	s.request.Body = s
	if strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		s.goOn = make(chan bool, 1)
	}
	return s
}

// run sends it.
func (s *sending) run() {
	defer close(s.done)
	err := s.request.Write(s.out)
	if err == nil {
		err = s.out.Flush()
	}
	s.mu.Lock()
	broken := s.read != nil
	switch { // net/http hides what it was given
	case broken:
		err = s.read
	case s.conn.unwritten != nil:
		err = s.conn.unwritten
	}
	s.sent = err
	s.mu.Unlock()
	switch {
	case err == nil && !s.conn.isTimed:
	case err == nil:
		s.conn.await(s.conn.lean.patience)
	case err == errUnwanted: // the answer is there
	case broken || errors.Is(err, os.ErrDeadlineExceeded):
		// Also if the answer has begun: the upstream might wait for the rest for ever.
		s.conn.cut()
	default:
		s.conn.await(afterBroken)
	}
}

// Read reads the body, once the upstream wants it.
func (s *sending) Read(p []byte) (int, error) {
	s.mu.Lock()
	first, over := !s.begun, s.over
	s.begun = true
	s.mu.Unlock()
	if over {
		return 0, errGivenUp
	}
	if first && s.goOn != nil && !s.wanted() {
		return 0, s.broken(errUnwanted)
	}
	n, err := s.from.Read(p)
	if err != nil && err != io.EOF {
		err = s.broken(err)
	}
	return n, err
}

func (s *sending) broken(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read == nil {
		s.read = err
	}
	return err
}

// Close closes the body.
//
//mutate:equivalent it is an upload, whose Close does nothing
func (s *sending) Close() error { return s.from.Close() }

// wanted waits until the upstream says that it wants the body, or for as long as clients
// wait for it.
func (s *sending) wanted() bool {
	patience := time.NewTimer(continueTimeout)
	defer patience.Stop()
	select {
	case goOn := <-s.goOn:
		return goOn
	case <-patience.C:
		return true
	}
}

// answered is told that the upstream has said something.
func (s *sending) answered(goOn bool) {
	if s == nil || s.goOn == nil {
		return
	}
	select {
	case s.goOn <- goOn:
	default: // it was said before
	}
}

// giveUp keeps the body from being read any more, and reports whether it has begun to be.
func (s *sending) giveUp() (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.begun
}

// isOut reports whether the whole request was sent.
func (s *sending) isOut() bool {
	if s == nil {
		return true
	}
	select {
	case <-s.done:
		return s.sent == nil
	default:
		return false
	}
}

// orBroken returns why there is no answer: because the request could not be sent, if it
// could not.
func (s *sending) orBroken(err error) error {
	if s == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent != nil {
		return s.sent
	}
	return err
}
