package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"
)

// lean is a client of HTTP/1.1 for one upstream without encryption. It does a request in
// the caller's goroutine, where [http.Transport] has two of its own for each connection
// and hands everything back and forth between them; only a body that goes out while the
// answer may come has a goroutine. Requests are written and answers are read by net/http,
// as strictly as there: what differs is who keeps the connections. It is safe for
// concurrent use.
type lean struct {
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	addr     string
	patience time.Duration // from the end of the request to the headers of its answer, and for each write
	idle     idlePool
}

// newLean returns the client for a configuration; nil where there is none: for an
// upstream that speaks something else, or on a system that cannot tell whether a
// connection that is kept has ended.
func newLean(c Config) *lean {
	l := &lean{patience: c.ResponseTimeout, dial: socketDialer(c)}
	l.idle.most, l.idle.patience = c.IdlePerHost, c.IdleTimeout
	switch u := c.Upstream; {
	case c.Transport == TransportStandard || !canPeek:
		return nil
	case u.Scheme == "unix":
		l.addr = "localhost:80" // the dialer knows the socket
	case u.Scheme == "http" && strings.IndexFunc(u.Host, func(r rune) bool { return r >= 0x80 }) < 0:
		l.addr = withPort(u)
	default:
		return nil
	}
	return l
}

func withPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

var errMethod = errors.New("proxy: the method of the request is none")

// RoundTrip is send for requests that ReverseProxy hands on, which has a trace for
// answers of kind 1xx, and whose work is given up by whoever waits for it.
func (l *lean) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.send(r, func(status int, h http.Header) {
		if t := httptrace.ContextClientTrace(r.Context()); t != nil && t.Got1xxResponse != nil {
			_ = t.Got1xxResponse(status, textproto.MIMEHeader(h)) // ReverseProxy's never fails
		}
	}, nil)
}

// send sends one request and returns when the headers of its answer are there; interim is
// given those of kind 1xx before. late is given the connection when its time is over, and
// says whether it takes it; nil: there is no such time. See the package's comment for
// what is sent twice.
func (l *lean) send(r *http.Request, interim func(int, http.Header), late func(*leanConn, *http.Request) bool) (*http.Response, error) {
	if r.Method == "" || tokenLength(r.Method) != len(r.Method) {
		return nil, errMethod
	}
	for sent := 0; ; {
		c, err := l.conn(r.Context(), sent > 0)
		if err != nil {
			return nil, whyEnded(r.Context(), err)
		}
		c.isTimed = late != nil
		res, err := c.roundTrip(r, interim)
		if err == nil {
			return res, nil
		}
		if c.isTimed && c.isLate(err) && c.stop() && late(c, r) {
			return nil, errTooLate
		}
		_ = c.Close() // whatever happens to it now, it is of no use
		switch {
		case r.Context().Err() != nil:
			return nil, whyEnded(r.Context(), err)
		case c.reused && c.isUntouched(): // the upstream has seen nothing of it
		case isRepeatable(r) && c.got == 0 && hasEnded(err) && (c.reused || sent > 0):
			if sent++; sent == maxSent {
				return nil, errSentTwice
			}
		default:
			return nil, err
		}
		if r, err = again(r, c.upload); err != nil {
			return nil, err
		}
	}
}

// whyEnded returns why a request whose context has ended failed.
func whyEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// isRepeatable reports whether a request may reach the upstream twice.
func isRepeatable(r *http.Request) bool {
	if r.Body != nil {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// hasEnded reports whether a connection has ended, as one does that the upstream closed
// just as it was used again; silence is something else.
func hasEnded(err error) bool {
	var op *net.OpError
	return !errors.Is(err, os.ErrDeadlineExceeded) &&
		(errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op))
}

// again is the request for another attempt, as long as nothing of its body is gone.
func again(r *http.Request, before *sending) (*http.Request, error) {
	if before == nil {
		return r, nil
	}
	if before.giveUp() || r.GetBody == nil {
		return nil, errRead
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	next := *r
	next.Body = body
	return &next, nil
}

// conn returns a connection that nobody else uses: the one used last of those kept, or a
// new one.
func (l *lean) conn(ctx context.Context, isNew bool) (*leanConn, error) {
	for !isNew {
		c := l.idle.get()
		if c == nil {
			break
		}
		if c.alive() {
			c.reused = true
			return c, nil
		}
		_ = c.Close()
	}
	raw, err := l.dial(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	return newLeanConn(l, raw), nil
}
