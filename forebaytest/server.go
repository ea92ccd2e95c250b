package forebaytest

import (
	"bytes"
	"context"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
)

// URL is the address of every [Server]: its clients reach it under any host.
const URL = "http://gate.test"

// Server is a net/http server in memory, on connections from net.Pipe: for use
// inside synctest bubbles, where it needs no time, and outside. It speaks
// HTTP/1.1, and HTTP/2 without TLS to those who begin with it. Every connection
// has a client address of its own, from 192.0.2.2:1024 on.
//
// Make one with [NewServer]. It is safe for concurrent use.
type Server struct {
	t        testing.TB
	http     *http.Server
	pipes    *pipes
	closing  chan struct{}      // closed when the server ends
	once     sync.Once          // of Close
	cancel   context.CancelFunc // ends every exchange of the clients
	h1, h2   *http.Client
	occupied occupants
	errors   lockedBuffer
}

// NewServer starts a server for h. It ends with the test: a clean-up closes
// every connection and waits until all handlers have returned. A handler that
// neither ends by itself nor with its request's context, nor is a [Backend],
// makes the test hang, or the bubble report a deadlock.
func NewServer(t testing.TB, h http.Handler) *Server {
	s := &Server{t: t, pipes: newPipes(), closing: make(chan struct{})}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	s.http = &http.Server{
		Handler:     s.attended(h),
		Protocols:   both,
		ErrorLog:    log.New(&s.errors, "", 0),
		BaseContext: s.baseContext,
		ConnState:   s.connState,
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.h1 = &http.Client{Transport: &ending{s.transport(false), ctx}}
	s.h2 = &http.Client{Transport: &ending{s.transport(true), ctx}}
	s.occupied.enter(s)
	go func() {
		defer s.occupied.leave(s)
		_ = s.http.Serve(s.pipes) // always http.ErrServerClosed, or that the pipes are closed
	}()
	t.Cleanup(s.Close)
	return s
}

// Serve starts a [Server] for h, which ends with the test, and returns its
// HTTP/1.1 client.
func Serve(t testing.TB, h http.Handler) *http.Client { return NewServer(t, h).Client() }

// Client returns the HTTP/1.1 client of the server. It reaches no other server,
// whatever the address; see [URL].
func (s *Server) Client() *http.Client { return s.h1 }

// ClientHTTP2 returns a client that speaks HTTP/2 without TLS: all its requests
// are streams of one connection.
func (s *Server) ClientHTTP2() *http.Client { return s.h2 }

// Dial returns a new connection for a test that speaks bytes on the wire. A write
// returns only when the server has read it, and the server can write only while
// the test reads. The server's end closes it, if the test does not.
func (s *Server) Dial() net.Conn {
	s.t.Helper()
	conn, err := s.pipes.dial(context.Background())
	if err != nil {
		s.t.Fatalf("forebaytest: dialing the server: %v", err)
	}
	return conn
}

// ErrorLog returns what net/http has logged so far, such as panics of handlers.
func (s *Server) ErrorLog() string { return s.errors.String() }

// Close ends the server before the test does: it closes every connection, ends
// what runs in a [Backend], and waits until all handlers have returned. More than
// once is harmless.
func (s *Server) Close() {
	s.once.Do(func() {
		_, _ = s.http.Close(), s.pipes.Close() // closing pipes cannot fail
		s.pipes.cut()
		s.cancel()
		close(s.closing) // last: what ends by it has nobody left to answer
	})
	s.occupied.wait()
	s.h1.CloseIdleConnections()
	s.h2.CloseIdleConnections()
}

func (s *Server) transport(http2 bool) *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	return &http.Transport{
		Protocols: p,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return s.pipes.dial(ctx)
		},
		DisableCompression: true, // bytes as the handler wrote them
	}
}

// ending ends the exchanges of a client with its server. A transport alone keeps a
// goroutine for every answer of which nobody has read the body, such as that of
// "go client.Get(…)", and no bubble could end.
type ending struct {
	*http.Transport
	until context.Context
}

// RoundTrip runs one exchange. Its body can be read until the server ends.
func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	context.AfterFunc(e.until, cancel)
	return e.Transport.RoundTrip(r.WithContext(ctx))
}

// attended counts the handlers, for Close to wait for: those of HTTP/2 and of
// hijacked connections outlive what net/http says of the connection.
func (s *Server) attended(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.occupied.enter(r)
		defer s.occupied.leave(r)
		h.ServeHTTP(w, r)
	})
}

func (s *Server) connState(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.occupied.enter(c)
	case http.StateClosed, http.StateHijacked:
		s.occupied.leave(c)
	}
}

type closingKey struct{}

func (s *Server) baseContext(net.Listener) context.Context {
	return context.WithValue(context.Background(), closingKey{}, s.closing)
}

// closing returns what is closed when the server of this request ends; nil, which
// never is, if it is none of ours.
func closing(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(closingKey{}).(chan struct{})
	return c
}

// occupants is who still works for a server. Unlike a WaitGroup it allows that
// somebody comes while somebody waits.
type occupants struct {
	mu    sync.Mutex // guards what follows
	all   map[any]bool
	empty chan struct{} // closed when all have left; nil: nobody waits
}

func (o *occupants) enter(who any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[any]bool)
	}
	o.all[who] = true
}

func (o *occupants) leave(who any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, who)
	if len(o.all) == 0 && o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}

func (o *occupants) wait() {
	o.mu.Lock()
	if len(o.all) == 0 {
		o.mu.Unlock()
		return
	}
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	o.mu.Unlock()
	<-empty
}

// lockedBuffer is a buffer that many may write to.
type lockedBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write appends p.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns everything written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
