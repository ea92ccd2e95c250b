package forebaytest

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Raw is a client that writes and reads bytes: for requests that no proper client
// sends, and for what no proper client shows. Nothing on it takes longer than a test
// may wait; what does fails the test. One goroutine may write while another reads.
type Raw struct {
	net.Conn

	t    testing.TB
	from *bufio.Reader
	once sync.Once // of closing
}

// Dial returns a connection to a server of whatever make, such as one in a process of its
// own. It is closed with the test, if not before.
func Dial(t testing.TB, addr string) *Raw {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("forebaytest: dialing: %v", err)
	}
	return newRaw(t, c)
}

// HTTP2 begins HTTP/2 on the connection, on which nothing has been sent yet.
func (r *Raw) HTTP2() *Frames { return newFrames(r) }

func newRaw(t testing.TB, c net.Conn) *Raw {
	r := &Raw{Conn: c, t: t, from: bufio.NewReader(c)}
	_ = c.SetDeadline(overdue())
	t.Cleanup(r.Hangup)
	return r
}

// Send writes bytes as they are.
func (r *Raw) Send(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.Conn, text); err != nil {
		r.t.Fatalf("writing %.40q: %v", text, err)
	}
}

// Answer is one whole answer.
type Answer struct {
	*http.Response        // its body has been read
	Text           string // the body
	Err            error  // why the body broke off
}

// Answer reads the next answer, which is to a request of the given method.
func (r *Raw) Answer(method string) Answer {
	r.t.Helper()
	res, err := http.ReadResponse(r.from, &http.Request{Method: method})
	if err != nil {
		r.t.Fatalf("no answer to %s: %v", method, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return Answer{res, string(text), err}
}

// answer reads the next answer to a request of the given method to its end, if it has
// one.
func (r *Raw) answer(method string) (status int, whole bool) {
	res, err := http.ReadResponse(r.from, &http.Request{Method: method})
	for err == nil && res.StatusCode < 200 {
		res, err = http.ReadResponse(r.from, &http.Request{Method: method})
	}
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err == nil
}

// Line reads up to the end of a line, without it.
func (r *Raw) Line() string {
	r.t.Helper()
	line, err := r.from.ReadString('\n')
	if err != nil {
		r.t.Fatalf("reading a line: %q, then %v", line, err)
	}
	return strings.TrimRight(line, "\r\n")
}

// Rest reads everything that still comes until the server closes, or breaks the
// connection off.
func (r *Raw) Rest() string {
	r.t.Helper()
	all, err := io.ReadAll(r.from)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		r.t.Fatalf("read %.200q, then %v", all, err)
	}
	return string(all)
}

// Hangup closes the connection in order.
func (r *Raw) Hangup() { r.once.Do(func() { _ = r.Conn.Close() }) }

// Reset breaks the connection off: the server gets a reset, not an end.
func (r *Raw) Reset() {
	if tcp, ok := r.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	r.Hangup()
}

// CloseWrite closes the half on which requests go; answers still come.
func (r *Raw) CloseWrite() {
	r.t.Helper()
	if err := r.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		r.t.Fatalf("closing one half: %v", err)
	}
}

// Buffered returns how many bytes have come that nobody has read yet.
func (r *Raw) Buffered() int { return r.from.Buffered() }
