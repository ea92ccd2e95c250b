package forebaytest

import (
	"context"
	"net"
	"sync"
)

// pipes is a net.Listener whose connections are pairs of net.Pipe: no socket, no
// buffer, and every wait in them is one that a synctest bubble understands.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}

	mu   sync.Mutex // guards what follows
	done bool
	ends []net.Conn // both ends of every pipe
}

// The addresses are of the range that is reserved for documentation.
var (
	serverAddr = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	clientIP   = net.IPv4(192, 0, 2, 2)
)

const firstPort = 1024

func newPipes() *pipes {
	return &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// dial returns the client's end of a new connection once the server has the
// other.
func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server, err := p.pair()
	if err != nil {
		return nil, err
	}
	select {
	case p.accepted <- server:
		return client, nil
	case <-p.closed:
		err = net.ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_, _ = client.Close(), server.Close() // a pipe's Close cannot fail
	return nil, err
}

func (p *pipes) pair() (client, server net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return nil, nil, net.ErrClosed
	}
	peer := &net.TCPAddr{IP: clientIP, Port: firstPort + len(p.ends)/2}
	c, s := net.Pipe()
	client, server = &pipe{c, peer, serverAddr}, &pipe{s, serverAddr, peer}
	p.ends = append(p.ends, client, server)
	return client, server, nil
}

// Accept returns the server's end of the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listening. Connections stay.
func (p *pipes) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.done = true
		close(p.closed)
	}
	return nil
}

// cut closes both ends of every connection.
func (p *pipes) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		_ = end.Close()
	}
}

// Addr returns the server's address.
func (p *pipes) Addr() net.Addr { return serverAddr }

// pipe is one end of a net.Pipe, with addresses such as a server expects.
type pipe struct {
	net.Conn
	local, remote net.Addr
}

// LocalAddr returns the address of this end.
func (p *pipe) LocalAddr() net.Addr { return p.local }

// RemoteAddr returns the address of the other end.
func (p *pipe) RemoteAddr() net.Addr { return p.remote }
