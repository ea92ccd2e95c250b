package proxy

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	dialTimeout = 5 * time.Second // a SYN that is lost twice is through by then
	// continueTimeout is how long a client that asks first (Expect: 100-continue) is
	// kept waiting when the upstream does not say; net/http's own default.
	continueTimeout = time.Second
	// pingAfter is how long an HTTP/2 connection may be silent before it is pinged,
	// and how long that may take. It finds peers that vanished.
	pingAfter      = 15 * time.Second
	maxHeaderBytes = 64 << 10 // of a request
	// maxAnswerHeaderBytes is more generous: the upstream is one's own.
	maxAnswerHeaderBytes = 1 << 20
)

// transports reach the upstream: HTTP/1.1 for everybody, HTTP/2 for gRPC.
type transports struct {
	lean       *lean // in place of http; nil: http does it
	http, grpc *http.Transport
	only2      bool // HTTP/2 for everything but upgrades
}

func newTransports(c Config) *transports {
	t := &transports{lean: newLean(c), http: newTransport(c), grpc: newTransport(c), only2: c.Upstream.Scheme == "h2c"}
	t.http.Protocols.SetHTTP1(true)
	if c.Upstream.Scheme == "https" {
		t.grpc.Protocols.SetHTTP2(true)
	} else {
		t.grpc.Protocols.SetUnencryptedHTTP2(true)
	}
	return t
}

func newTransport(c Config) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // the environment's proxies are for those who browse
		DialContext:            dialer(c),
		TLSHandshakeTimeout:    min(dialTimeout, c.ResponseTimeout),
		DisableCompression:     true, // else net/http asks for gzip and unpacks it
		MaxIdleConnsPerHost:    c.IdlePerHost,
		MaxConnsPerHost:        0, // it would be a second line, without a bound: the gate is the limit
		IdleConnTimeout:        c.IdleTimeout,
		ResponseHeaderTimeout:  0, // ours does not end the work
		ExpectContinueTimeout:  continueTimeout,
		MaxResponseHeaderBytes: maxAnswerHeaderBytes,
		Protocols:              new(http.Protocols), // in place of ForceAttemptHTTP2: HTTP/2 is never guessed
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
	}
}

// RoundTrip sends one request. gRPC is told by its type: over HTTP/1.1 there is
// none, and gRPC-Web is another protocol. An upgrade, such as to WebSocket, exists in
// HTTP/1.1 alone, so an upstream of HTTP/2 is asked for it in that; one that does not
// speak it answers no HTTP, which is 502.
func (t *transports) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.takesHTTP2(r) {
		return t.grpc.RoundTrip(r)
	}
	if t.lean != nil {
		return t.lean.RoundTrip(r)
	}
	return t.http.RoundTrip(r)
}

func (t *transports) takesHTTP2(r *http.Request) bool {
	if t.only2 && r.Header["Upgrade"] == nil {
		return true
	}
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && r.ProtoMajor == 2 && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// takesLean reports whether a request as it came goes out by the lean transport and
// without ReverseProxy, which is left the switches to other protocols.
func (t *transports) takesLean(r *http.Request) bool {
	return t.lean != nil && r.Header["Upgrade"] == nil && !t.takesHTTP2(r)
}

func (t *transports) close() {
	if t.lean != nil {
		t.lean.idle.close()
	}
	t.http.CloseIdleConnections()
	t.grpc.CloseIdleConnections()
}

func dialer(c Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := socketDialer(c)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &upstreamConn{Conn: conn, patience: c.ResponseTimeout}, nil
	}
}

// socketDialer connects to the upstream: to its socket, whatever the address, if it has
// one.
func socketDialer(c Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{Timeout: min(dialTimeout, c.ResponseTimeout)}
	socket := ""
	if c.Upstream.Scheme == "unix" {
		if socket = c.Upstream.Path; socket == "" {
			socket = c.Upstream.Opaque // unix:relative
		}
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if socket != "" {
			network, addr = "unix", socket
		}
		return d.DialContext(ctx, network, addr)
	}
}

// upstreamConn bounds how long a write may take. net/http times the answer from
// the end of the request on; an upstream that takes in nothing, because it hangs
// with a full accept queue, would hold the slot of an upload for ever.
type upstreamConn struct {
	net.Conn
	patience time.Duration
}

// Write writes within the upstream's patience.
func (c *upstreamConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(clock().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// CloseWrite ends one direction of an upgraded connection.
func (c *upstreamConn) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

const bufferSize = 32 << 10 // io.Copy's own

var bufferPool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// buffers lends the buffers that answers are copied with.
type buffers struct{}

// Get lends a buffer.
func (buffers) Get() []byte { return bufferPool.Get().(*[bufferSize]byte)[:] }

// Put takes it back. An array, not a slice: the pool then allocates nothing.
func (buffers) Put(b []byte) {
	if len(b) == bufferSize {
		bufferPool.Put((*[bufferSize]byte)(b))
	}
}
