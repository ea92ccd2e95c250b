package forebaytest

import (
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Loopback is a net/http server on a real socket, for what connections in memory do not
// have: buffers, resets, halves that close, and a kernel between the two sides. It
// speaks HTTP/1.1, and HTTP/2 to those who begin with it. Make one with [NewLoopback]; it
// is safe for concurrent use.
type Loopback struct {
	// Server is the server itself.
	Server *http.Server

	t      testing.TB
	listen net.Listener
	h1, h2 *http.Client
	errors lockedBuffer
	served sync.WaitGroup
	once   sync.Once // of Close
}

// NewLoopback starts a server for h on a free port of 127.0.0.1, which ends with the
// test. change, if any, changes it before it starts.
func NewLoopback(t testing.TB, h http.Handler, change ...func(*http.Server)) *Loopback {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("forebaytest: listening: %v", err)
	}
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	s := &Loopback{t: t, listen: l}
	s.Server = &http.Server{Handler: h, Protocols: both, ErrorLog: log.New(&s.errors, "", 0)}
	for _, f := range change {
		f(s.Server)
	}
	s.h1, s.h2 = loopbackClient(false), loopbackClient(true)
	s.served.Go(func() { _ = s.Server.Serve(l) }) // always that it was closed
	t.Cleanup(s.Close)
	return s
}

func loopbackClient(http2 bool) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	return &http.Client{Transport: &http.Transport{Protocols: p, DisableCompression: true}}
}

// URL returns the server's address as a client writes it, without a slash at its end.
func (s *Loopback) URL() string { return "http://" + s.Addr() }

// Addr returns the server's address.
func (s *Loopback) Addr() string { return s.listen.Addr().String() }

// Client returns a client that speaks HTTP/1.1.
func (s *Loopback) Client() *http.Client { return s.h1 }

// ClientHTTP2 returns a client that speaks HTTP/2 without TLS: all its requests are
// streams of one connection.
func (s *Loopback) ClientHTTP2() *http.Client { return s.h2 }

// ErrorLog returns what net/http has logged so far, such as panics of handlers.
func (s *Loopback) ErrorLog() string { return s.errors.String() }

// Close ends the server and its connections before the test does. More than once is
// harmless.
func (s *Loopback) Close() {
	s.once.Do(func() { _ = s.Server.Close() })
	s.served.Wait()
	s.h1.CloseIdleConnections()
	s.h2.CloseIdleConnections()
}

// Dial returns a connection on which a test writes and reads bytes itself. It is closed
// with the test, if not before.
func (s *Loopback) Dial() *Raw {
	s.t.Helper()
	return Dial(s.t, s.Addr())
}

// DialHTTP2 returns a connection on which a test writes and reads the frames of HTTP/2.
func (s *Loopback) DialHTTP2() *Frames {
	s.t.Helper()
	return s.Dial().HTTP2()
}
