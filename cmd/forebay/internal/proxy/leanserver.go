package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// LeanServer answers simple requests of HTTP/1.1 (GET and HEAD without a body, and
// nothing unusual about them) in the goroutine of their connection, and leaves all others
// to a net/http server: that one starts a goroutine for each request, which watches for
// the client's leaving, and the wake-ups cost more than a refusal does. Here somebody
// watches once a request has taken a moment. A connection on which anything else has come
// is net/http's from then on. Make one with [NewLeanServer], before the server serves.
type LeanServer struct {
	server *http.Server
	busy   atomic.Int64 // requests that are answered here
	leaves leaves

	mu         sync.Mutex // guards conns
	conns      map[*clientConn]struct{}
	isStopping atomic.Bool // set under mu
}

// NewLeanServer prepares a server for it, as [Server] makes them: its hooks are called
// for what is answered here as for the rest.
func NewLeanServer(srv *http.Server) *LeanServer {
	s := &LeanServer{server: srv, conns: map[*clientConn]struct{}{}}
	inside := srv.ConnContext
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if inside != nil {
			ctx = inside(ctx, c)
		}
		if lean, ok := c.(*clientConn); ok {
			lean.context = ctx
		}
		return ctx
	}
	return s
}

// Listener returns l, for the server to serve on. Its connections must not be encrypted.
func (s *LeanServer) Listener(l net.Listener) net.Listener { return leanListener{l, s} }

// Shutdown is that of the server, and waits for the requests that are answered here as
// well.
func (s *LeanServer) Shutdown(ctx context.Context) error {
	s.stop()
	if err := s.server.Shutdown(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for s.busy.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stop ends the connections on which nothing is asked, and has the others end with their
// answers.
func (s *LeanServer) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStopping.Store(true)
	for c := range s.conns {
		_ = c.Close()
	}
}

// enter keeps a connection in mind for as long as it is ours.
func (s *LeanServer) enter(c *clientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	if s.isStopping.Load() {
		_ = c.Close()
	}
}

func (s *LeanServer) forget(c *clientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

type leanListener struct {
	net.Listener
	server *LeanServer
}

// Accept returns the next connection.
func (l leanListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &clientConn{Conn: raw, server: l.server}
	l.server.enter(c)
	return c, nil
}
