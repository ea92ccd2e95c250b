package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestUploadHasItsOwnTime: on a connection that is used again it is not that of the request
// before.
func TestUploadHasItsOwnTime(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for r := bufio.NewReader(far); ; {
			in, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, in.Body)
			_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	}()
	n := &noted{Conn: near}
	c := newLeanConn(&lean{patience: time.Hour, idle: idlePool{most: 1, patience: time.Hour}}, n)
	defer func() { _ = near.Close(); <-over }()
	first, _ := http.NewRequest("GET", "http://upstream/", nil)
	res, err := c.roundTrip(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(res.Body)
	if c.lean.idle.get() != c {
		t.Fatal("the connection is not kept")
	}
	var until time.Time
	second, _ := http.NewRequest("POST", "http://upstream/", readerFunc(func([]byte) (int, error) {
		until = n.until[len(n.until)-1]
		return 0, io.EOF
	}))
	if _, err := c.roundTrip(second, nil); err != nil {
		t.Fatal(err)
	}
	if !until.IsZero() {
		t.Errorf("while the body goes out the answer has to be there by %v", until)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// scripted is a connection on which reads come as they are listed; an empty one is a time
// that is over, until there is another. It can be written to for as long as it is open.
type scripted struct {
	net.Conn // nil
	reads    []string
	closed   chan struct{}
	close    sync.Once
	writes   func(p []byte) (int, error) // nil: all succeed
}

func newScripted(reads ...string) *scripted {
	return &scripted{reads: reads, closed: make(chan struct{})}
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.reads) == 0 {
		<-s.closed
		return 0, net.ErrClosed
	}
	next := s.reads[0]
	if next == "" {
		return 0, os.ErrDeadlineExceeded
	}
	s.reads = s.reads[1:]
	return copy(p, next), nil
}

func (s *scripted) Write(p []byte) (int, error) {
	if s.writes != nil {
		return s.writes(p)
	}
	return len(p), nil
}

func (s *scripted) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

func (s *scripted) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (*scripted) SetDeadline(time.Time) error { return nil }
func (s *scripted) SetReadDeadline(time.Time) error {
	if len(s.reads) > 0 && s.reads[0] == "" {
		s.reads = s.reads[1:]
	}
	return nil
}
func (*scripted) SetWriteDeadline(time.Time) error { return nil }

// TestRefusedUploadLeavesTheAnswer: an upstream that does not want the body, and says so
// before it got it, has its answer read to the end.
func TestRefusedUploadLeavesTheAnswer(t *testing.T) {
	s := newScripted("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\n", "so", "so")
	c := newLeanConn(&lean{patience: time.Hour}, s)
	r, _ := http.NewRequest("POST", "http://upstream/", strings.NewReader("body"))
	r.Header.Set("Expect", "100-continue")
	c.stop = context.AfterFunc(t.Context(), c.cut)
	c.upload = newSending(c, r)
	go c.upload.run()
	res, err := c.receive(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-c.upload.done
	if c.upload.sent != errUnwanted {
		t.Errorf("the upload ended with %v", c.upload.sent)
	}
	if s.isClosed() {
		t.Error("the connection is closed, and the answer is lost")
	}
	if err := c.handOver(res); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(res.Body); string(got) != "soso" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestUploadThatBreaksEndsTheAnswer, which the upstream may never end without the rest.
func TestUploadThatBreaksEndsTheAnswer(t *testing.T) {
	s := newScripted("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
	c := newLeanConn(&lean{patience: time.Hour}, s)
	body, client := io.Pipe()
	r, _ := http.NewRequest("POST", "http://upstream/", body)
	if _, err := c.roundTrip(r, nil); err != nil {
		t.Fatal(err)
	}
	_ = client.CloseWithError(errors.New("no chunk"))
	<-c.upload.done
	if !s.isClosed() {
		t.Error("the upstream waits for the rest of the body")
	}
}

// TestLateAnswerIsReadFromItsBeginning: time that is over in the midst of headers does not
// make them none.
func TestLateAnswerIsReadFromItsBeginning(t *testing.T) {
	for _, reads := range [][]string{
		{"HTTP/1.1 200 OK\r\nX: ", "", "y\r\nContent-Length: 2\r\n\r\nok"},
		{"HTTP/1.1 200 OK\r\nX:", " y\r\n", "", "Content-Length: 2\r\n\r\nok"},
		{"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 ", "", "OK\r\nX: y\r\nContent-Length: 2\r\n\r\nok"},
		{"HTTP/1.1 103 Early Hints\r\n\r\n", "", "HTTP/1.1 200 OK\r\nX: y\r\n\r\nok"},
		{"HTTP/1.1 103 Early", " Hints\r\n\r\n", "HTTP", "", "/1.1 200 OK\r\nX: y\r\n\r\nok"},
	} {
		c := newLeanConn(&lean{patience: time.Hour}, newScripted(slices.Clone(reads)...))
		r, _ := http.NewRequest("GET", "http://upstream/", nil)
		_, err := c.roundTrip(r, func(int, http.Header) {})
		if err == nil || !c.isLate(err) {
			t.Fatalf("%q: the time is not over: %v", reads, err)
		}
		c.rewind()
		_ = c.SetReadDeadline(time.Time{})
		res, err := c.receive(r, func(int, http.Header) {})
		if err != nil || res.StatusCode != 200 || res.Header.Get("X") != "y" {
			t.Errorf("%q: %+v, %v", reads, res, err)
		}
	}
}

// TestWriteThatWasUnderWayCounts: what goes out while the connection ends is not sent again.
func TestWriteThatWasUnderWayCounts(t *testing.T) {
	s := newScripted()
	again, writing := make(chan bool, 1), make(chan bool, 1)
	s.writes = func(p []byte) (int, error) {
		writing <- true
		<-s.closed
		select { // whoever does not wait for this has looked by then
		case <-again:
			again <- true
		case <-time.After(20 * time.Millisecond):
		}
		return len(p), nil
	}
	l := &lean{patience: time.Hour, idle: idlePool{most: 1, patience: time.Hour}}
	l.dial = func(context.Context, string, string) (net.Conn, error) {
		again <- true
		return nil, errors.New("it is sent again")
	}
	l.idle.put(newLeanConn(l, endsOnce{s, writing}))
	defer l.idle.close()
	r, _ := http.NewRequest("POST", "http://upstream/", strings.NewReader("body"))
	if _, err := l.send(r, nil, nil); err == nil || len(again) > 0 {
		t.Errorf("%v; sent again %v times", err, len(again))
	}
}

// endsOnce is a connection that ends as soon as something is written to it.
type endsOnce struct {
	*scripted
	when <-chan bool
}

func (e endsOnce) Read([]byte) (int, error) {
	<-e.when
	return 0, io.EOF
}
