package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

// direct hands a request to a proxy without a server around it, whose own end of a request
// gives back much of what is forgotten.
func direct(t *testing.T, upstream string, w http.ResponseWriter, body io.ReadCloser) {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{Upstream: u, Transport: transport, ResponseTimeout: patience})
	defer h.Close()
	r := httptest.NewRequest("POST", "http://h/", nil).WithContext(context.Background())
	if r.Body, r.ContentLength = body, -1; body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	defer func() { _ = recover() }() // an answer that breaks off
	h.ServeHTTP(w, r)
}

// deaf is a client that has gone when the first piece comes.
type deaf struct{ http.ResponseWriter }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("nobody listens") }

// TestAnswerThatNobodyTakesIsEnded: at the upstream, before the handler returns or by that.
func TestAnswerThatNobodyTakesIsEnded(t *testing.T) {
	noLeaks(t)
	var running atomic.Int64
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	direct(t, url, deaf{httptest.NewRecorder()}, nil)
	eventually(t, "the upstream is rid of it", func() bool { return running.Load() == 0 })
}

// hesitant is a client of HTTP/1 whose body stops behind its first piece, until reading it has
// a deadline that is over.
type hesitant struct {
	*httptest.ResponseRecorder
	late    chan struct{}
	once    sync.Once
	reads   atomic.Int64
	reading atomic.Int64 // under way
}

func (c *hesitant) Read(p []byte) (int, error) {
	if c.reads.Add(1) == 1 {
		return len(p), nil
	}
	c.reading.Add(1)
	defer c.reading.Add(-1)
	<-c.late
	return 0, os.ErrDeadlineExceeded
}

func (c *hesitant) Close() error { return nil }

func (c *hesitant) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.once.Do(func() { close(c.late) })
	}
	return nil
}

// TestBodyIsLeftAloneAfterTheHandler: a read that is under way as the handler comes to its end is
// over when it returns, and there is none after it.
func TestBodyIsLeftAloneAfterTheHandler(t *testing.T) {
	noLeaks(t)
	c := &hesitant{ResponseRecorder: httptest.NewRecorder(), late: make(chan struct{})}
	u := newRaw(t, func(u *rawUpstream, conn net.Conn, r *bufio.Reader) {
		u.head(r)
		eventually(t, "the second piece is asked for", func() bool { return c.reading.Load() == 1 })
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, r)
	})
	upstream, _ := url.Parse(u.url)
	h := New(Config{Upstream: upstream, Transport: transport, ResponseTimeout: patience})
	defer h.Close()
	r := httptest.NewRequest("POST", "http://h/", nil)
	r.Body, r.ContentLength = c, -1
	h.ServeHTTP(c, r)
	if c.Code != 413 || c.reading.Load() != 0 || c.reads.Load() != 2 {
		t.Errorf("answer %d; %d reads are under way of %d", c.Code, c.reading.Load(), c.reads.Load())
	}
	c.once.Do(func() { close(c.late) })
}

// asking is a client that looks at the lease as its answer begins.
type asking struct {
	http.ResponseWriter
	lease forebay.Lease
	live  bool
}

func (a *asking) WriteHeader(status int) {
	a.live = a.lease.Live()
	a.ResponseWriter.WriteHeader(status)
}

// TestSlotOfAnAnswerWithoutABody is free before the client is told, who may take his time.
func TestSlotOfAnAnswerWithoutABody(t *testing.T) {
	noLeaks(t)
	upstream, _ := url.Parse(backend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	s := NewSpool(nil)
	s.Set(&SpoolBounds{Memory: 1 << 20, PerAnswer: 1 << 20})
	h := New(Config{Upstream: upstream, Transport: transport, Spool: s})
	defer h.Close()
	lease, _ := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, Hold: forebay.HoldUpstreamDone}).TryAcquire(forebay.Call{})
	w := &asking{httptest.NewRecorder(), lease, true}
	if h.Serve(w, httptest.NewRequest("GET", "http://h/", nil), lease); w.live {
		t.Error("the slot is taken while the answer is handed on")
	}
}

// TestSpoolOfAnAnswerThatNobodyBegins to read ends the upstream as well.
func TestSpoolOfAnAnswerThatNobodyBegins(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{Memory: 1 << 20, PerAnswer: 1 << 20}
	s.Set(b)
	p := newPiped(t, s, b)
	_ = p.Close()
	if _, err := p.upstream.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("%v", err)
	}
}

// TestSpoolFileThatWasReadTakesMore: at once, and not when its reader reads on, who may be slow.
func TestSpoolFileThatWasReadTakesMore(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{Directory: t.TempDir(), Disk: 2 * bufferSize}
	s.Set(b)
	p := newPiped(t, s, b)
	p.begin(t)
	_, _ = p.upstream.Write(make([]byte, 3*bufferSize)) // of which the pump keeps the last piece in hand
	eventually(t, "it waits for room", func() bool { return s.Stats().Kept == 1 })
	wantBody(t, io.LimitReader(p, 2*bufferSize), make([]byte, 2*bufferSize))
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		_, _ = p.upstream.Write(make([]byte, bufferSize))
	}()
	select {
	case <-taken:
	case <-time.After(patience):
		t.Error("nobody takes in what the upstream says")
	}
	_ = p.Close()
	<-taken
}

// TestCloseEndsWhatIsKept: connections to the upstream that lie idle, of whatever kind.
func TestCloseEndsWhatIsKept(t *testing.T) {
	noLeaks(t)
	for _, scheme := range []string{"http", "h2c"} {
		var open atomic.Int64
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
		s.Start()
		u, _ := url.Parse(scheme + s.URL[len("http"):])
		h := New(Config{Upstream: u, Transport: transport, IdleTimeout: time.Hour})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://h/", nil))
		if open.Load() != 1 {
			t.Errorf("%s: %d connections are kept, answer %d %s", scheme, open.Load(), w.Code, w.Body)
		}
		h.Close()
		eventually(t, scheme+": none is kept", func() bool { return open.Load() == 0 })
		s.Close()
	}
}

// TestHalfThatCannotBeClosed is closed whole.
func TestHalfThatCannotBeClosed(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	_ = closeWrite(near)
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%v", err)
	}
}
