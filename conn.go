package forebay

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"
)

type connKey struct{}

// conn is a connection as its socket sees it.
type conn struct {
	net.Conn
	raw syscall.RawConn // nil: there is no socket that could be asked
}

// ConnContext lets gates see the connections of a server's requests. Set it as the
// server's ConnContext, or call it in there:
//
//	srv := &http.Server{Handler: gate.Wrap(h), ConnContext: forebay.ConnContext}
//
// Without it the caller of an HTTP/1 request is seen to leave only when its body has
// come. With it the socket is asked as well, on Linux, so that who leaves in line with a
// large body under way is noticed too, and never runs. It costs one allocation a
// connection, and nothing a request that does not wait.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &conn{Conn: c, raw: socketOf(c)})
}

// socketOf looks for the socket under a connection, which may be that of TLS or wrapped
// by a listener.
func socketOf(c net.Conn) syscall.RawConn {
	for range 8 { // wrapped in one another by mistake, it would not end
		if s, ok := c.(syscall.Conn); ok {
			raw, err := s.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		}
		switch outer := c.(type) {
		case interface{ NetConn() net.Conn }:
			c = outer.NetConn()
		case interface{ Raw() net.Conn }: // so it is called by go-proxyproto
			c = outer.Raw()
		default:
			return nil
		}
	}
	return nil
}

// connOf returns the connection of a request of HTTP/1; nil if it is not known.
func connOf(r *http.Request) *conn {
	if r.ProtoMajor != 1 {
		return nil
	}
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// canTell reports whether the connection can say that its client has gone.
func (c *conn) canTell() bool { return c != nil && c.raw != nil && socketsTell }

// gone reports whether the client has closed the connection, or the half of it on which
// requests come. What it sent before may still lie unread.
func (c *conn) gone() bool {
	if !c.canTell() {
		return false
	}
	hungUp := false
	err := c.raw.Control(func(fd uintptr) { hungUp = hangup(fd) })
	return err == nil && hungUp
}

// readUntil sets the deadline for reading a request, through whatever stands in front of
// net/http's writer.
func readUntil(w http.ResponseWriter, r *http.Request, t time.Time) error {
	err := http.NewResponseController(w).SetReadDeadline(t)
	if err != nil && r.ProtoMajor == 1 { // else the connection is not one request's
		if c := connOf(r); c != nil {
			return c.SetReadDeadline(t)
		}
	}
	return err
}
