package server

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"

	"example.com/forebay/cmd/forebay/internal/proxy"
)

// proxied is a listener on which the connections of trusted peers begin with a PROXY
// header. Whether one has to is a matter of who it comes from, never of its first
// bytes: a trusted peer's without a header ends, and a stranger's bytes are a request's
// from the first one on.
type proxied struct {
	net.Listener
	server *Server
}

// Accept returns the next connection. It waits for no header: that is read by whoever
// asks for the connection's address first, which is the connection's own goroutine.
func (l proxied) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	cfg := l.server.Config()
	if !cfg.ProxyProtocol || !proxy.Trusts(cfg.TrustedProxies, conn.RemoteAddr()) {
		return conn, nil
	}
	return newHeaded(conn, cfg.Timeouts.ReadHeader), nil
}

// headed is a connection that begins with a PROXY header. Its address is the one in
// there.
type headed struct {
	*proxyproto.Conn
}

func newHeaded(conn net.Conn, patience time.Duration) headed {
	return headed{proxyproto.NewConn(conn,
		proxyproto.WithPolicy(proxyproto.REQUIRE),
		proxyproto.ValidateHeader(usable),
		proxyproto.SetReadHeaderTimeout(patience))}
}

// CloseWrite ends the answers, while what the client still sends is taken in: net/http
// asks for it, so that a refusal is not lost with a reset.
func (c headed) CloseWrite() error {
	if half, ok := c.Raw().(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// NetConn returns the connection that the system knows.
func (c headed) NetConn() net.Conn { return c.Raw() }

// SyscallConn leads to its socket.
func (c headed) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Raw().(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// usable reports what is wrong with a header. A caller with an address of another kind
// would be taken for the peer of a unix socket, whom file permissions have let in.
func usable(h *proxyproto.Header) error {
	if h.Command.IsLocal() { // the proxy speaks for itself
		return nil
	}
	if _, _, ok := h.TCPAddrs(); !ok {
		return fmt.Errorf("server: a PROXY header for transport 0x%02x; only TCP is known here", byte(h.TransportProtocol))
	}
	return nil
}
