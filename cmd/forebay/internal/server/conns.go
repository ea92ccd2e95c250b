package server

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/telemetry"
)

// conns are the connections to one port. To the data port there is a bound for all of
// them, so that descriptors are left for the upstream, the admin port, the log and the
// store, and one for each address if the configuration has it; to the admin port there
// are few, so that who fills it takes nothing from the rest.
//
// Who holds a connection and asks for nothing loses it first: above the bound the one
// goes that has waited longest for its first request, else the one that has been idle
// longest. Only where all are busy or have just come the newcomer is turned away, with
// an answer.
type conns struct {
	server *Server
	files  int           // descriptors that there may be; 0: nobody says
	fixed  int           // how many connections there may be, whatever the configuration says; 0: not fixed
	isNew  time.Duration // how long the first request of one that has come may be on its way

	mu      sync.Mutex // guards what follows
	open    int
	from    map[netip.Prefix]int // of addresses that are counted
	silent  connQueue            // on which no request has come yet, the oldest first
	idle    connQueue            // that wait for the next one
	lingers int                  // that were turned away and are still being read
	evicted uint64
	refused [2]uint64 // by why
}

// Why a connection was turned away.
const (
	refusedMax = iota
	refusedAddress
)

// conn is one connection, as the system knows it.
type conn struct {
	net.Conn
	conns    *conns
	from     netip.Prefix // whom it counts for; zero: nobody
	patience time.Duration
	came     time.Time

	// Guarded by conns.mu.
	in             *connQueue // silent or idle; nil: busy, or closed
	before, behind *conn      // in there
	closed         bool

	mu    sync.Mutex // guards what follows
	until time.Time  // somebody else's deadline for writing; zero: none
	ours  time.Time  // the one in force, if it is not somebody else's; zero: none
}

func newConns(s *Server) *conns {
	return &conns{server: s, files: descriptors(), isNew: time.Second, from: map[netip.Prefix]int{}}
}

// maxAdmin is how many connections to the admin port there may be. Half would do for two
// people and a scraper, twice would be more than the descriptors that are spared for it.
const maxAdmin = 50

// newAdminConns returns the connections to the admin port.
func newAdminConns(s *Server) *conns {
	cs := newConns(s)
	cs.fixed = maxAdmin
	return cs
}

// listener returns l with the bounds.
func (cs *conns) listener(l net.Listener) net.Listener { return bounded{l, cs} }

type bounded struct {
	net.Listener
	conns *conns
}

// Accept returns the next connection for which there is room.
func (b bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				b.conns.makeRoom() // net/http waits for a moment, and asks again
			}
			return nil, err
		}
		if c := b.conns.admit(c); c != nil {
			return c, nil
		}
	}
}

// admit returns the connection as it is counted, or nil if it was turned away.
func (cs *conns) admit(raw net.Conn) net.Conn {
	cfg := cs.server.Config()
	c := &conn{Conn: raw, conns: cs, patience: cfg.Timeouts.Write, came: time.Now()}
	if cs.fixed == 0 && cfg.Connections.PerAddress > 0 && !proxy.Trusts(cfg.TrustedProxies, raw.RemoteAddr()) {
		c.from = addressOf(raw.RemoteAddr(), cfg.Caller.IPv6Prefix)
	}
	cs.mu.Lock()
	var loser *conn
	switch {
	case c.from.IsValid() && cs.from[c.from] >= cfg.Connections.PerAddress:
		cs.refused[refusedAddress]++
		cs.turnAwayLocked(raw, "429 Too Many Requests")
		return nil
	case cs.open >= cs.max(cfg):
		if loser = cs.loserLocked(c.came); loser == nil {
			cs.refused[refusedMax]++
			cs.turnAwayLocked(raw, "503 Service Unavailable")
			return nil
		}
	}
	cs.open++
	if c.from.IsValid() {
		cs.from[c.from]++
	}
	c.moveLocked(&cs.silent)
	cs.mu.Unlock()
	if loser != nil {
		_ = loser.Close()
	}
	return c
}

// spared are the descriptors that are left for the admin port, the log, Redis and the
// files that are read. Half of it would do for a program that nobody operates; twice as
// many are as many connections less.
const spared = 100

// max returns how many connections there may be: as configured, and no more than there
// are descriptors for. The upstream needs one for each request that may run, and keeps as
// many, and the kernel moves a large answer through a pipe, of two; of requests that pass
// no gate it is not known.
func (cs *conns) max(cfg *config.Config) int {
	const most, least = 1 << 20, 16
	if cs.fixed > 0 {
		return cs.fixed
	}
	room := most
	if cs.files > 0 {
		running := 0
		for i := range cfg.Gates {
			running += cfg.Gates[i].Most()
		}
		left := cs.files - spared
		room = max(least, left-min(left/2, 4*running+spared))
	}
	if n := cfg.Connections.Max; n > 0 {
		return min(n, room)
	}
	return room
}

// addressOf returns whom a connection counts for: an address, or a customer's network.
func addressOf(a net.Addr, ipv6Prefix int) netip.Prefix {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{} // a unix socket
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = ipv6Prefix
	}
	p, _ := ip.Prefix(bits) // config has checked the length
	return p
}

// loserLocked takes out whoever has to go for a newcomer; nil if all are busy, or so new
// that their request may be on its way: in a burst each would push out the one before,
// whose request was cut off and not refused. It is closed without the lock.
func (cs *conns) loserLocked(now time.Time) *conn {
	c := cs.silent.first
	if c == nil || now.Sub(c.came) < cs.isNew {
		c = cs.idle.first
	}
	if c == nil {
		return nil
	}
	c.moveLocked(nil)
	cs.goneLocked(c)
	cs.evicted++
	return c
}

// makeRoom closes one connection that asks for nothing.
func (cs *conns) makeRoom() {
	cs.mu.Lock()
	loser := cs.loserLocked(time.Now())
	cs.mu.Unlock()
	if loser != nil {
		_ = loser.Close()
	}
}

const (
	maxLingers = 64          // more would be descriptors for nothing
	lingerTime = time.Second // what came with the connection is here by then
	lingerSize = 64 << 10
)

// turnAwayLocked answers a connection for which there is no room, and gives up the lock.
// What came with it is read, or the answer could be lost in a reset; if many are turned
// away, some are not read.
func (cs *conns) turnAwayLocked(raw net.Conn, status string) {
	lingers := cs.lingers < maxLingers
	if lingers {
		cs.lingers++
	}
	cs.mu.Unlock()
	if cs.fixed > 0 {
		cs.server.log.Paced().Warn("a connection to the admin port was turned away: all are busy", "max", cs.fixed)
	}
	_ = raw.SetDeadline(time.Now().Add(lingerTime))
	if cs.fixed > 0 || cs.server.Config().TLS == nil { // else it would be no answer
		_, _ = io.WriteString(raw, "HTTP/1.1 "+status+"\r\nRetry-After: 1\r\nCache-Control: no-store\r\nProxy-Status: forebay; error=connection_limit_reached\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") // which a new socket takes at once
	}
	if !lingers {
		_ = raw.Close()
		return
	}
	go func() {
		defer func() {
			_ = raw.Close()
			cs.mu.Lock()
			cs.lingers--
			cs.mu.Unlock()
		}()
		if half, ok := raw.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
		_, _ = io.CopyN(io.Discard, raw, lingerSize)
	}()
}

// note is told of every change of a connection's state.
func (cs *conns) note(c net.Conn, state http.ConnState) {
	counted := countedOf(c)
	if counted == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch {
	case counted.closed:
	case state == http.StateIdle:
		counted.moveLocked(&cs.idle)
	case state != http.StateNew:
		counted.moveLocked(nil)
	}
}

// countedOf returns the connection below TLS and PROXY headers.
func countedOf(c net.Conn) *conn {
	for {
		switch at := c.(type) {
		case *conn:
			return at
		case interface{ NetConn() net.Conn }:
			c = at.NetConn()
		default:
			return nil
		}
	}
}

// moveLocked puts a connection at the end of a line, or into none.
func (c *conn) moveLocked(to *connQueue) {
	if c.in != nil {
		c.in.remove(c)
	}
	if to != nil {
		to.push(c)
	}
}

// goneLocked stops counting a connection, once.
func (cs *conns) goneLocked(c *conn) {
	if c.closed {
		return
	}
	c.closed = true
	cs.open--
	if c.from.IsValid() {
		if cs.from[c.from]--; cs.from[c.from] == 0 {
			delete(cs.from, c.from)
		}
	}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.conns.mu.Lock()
	c.moveLocked(nil)
	c.conns.goneLocked(c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}

// Write writes, and ends a connection whose client takes in nothing for as long as the
// configuration says. A deadline that somebody else has set goes first: by one that is
// over nothing is written to a caller that has left.
func (c *conn) Write(p []byte) (int, error) {
	c.renewDeadline()
	return c.Conn.Write(p)
}

// piece is how much the kernel moves at most before the client's time begins anew: as
// slow as one piece in that time a client may be.
const piece = 64 << 10

// ReadFrom writes what comes from another connection, by the kernel alone where it can.
// It moves what is there: the client's time does not run while the other one has nothing.
func (c *conn) ReadFrom(from io.Reader) (written int64, err error) {
	to, canMove := c.Conn.(io.ReaderFrom)
	rest, isBounded := from.(*io.LimitedReader)
	if !canMove || !isBounded {
		return c.copyFrom(from)
	}
	source := socketOf(rest.R)
	if source == nil {
		return c.copyFrom(from)
	}
	for rest.N > 0 {
		there, err := waiting(source)
		if there == 0 || err != nil {
			return written, err
		}
		part := io.LimitedReader{R: rest.R, N: min(rest.N, there, piece)}
		wanted := part.N
		c.renewDeadline()
		n, err := to.ReadFrom(&part)
		written += n
		rest.N -= n
		if n < wanted || err != nil {
			return written, err
		}
	}
	return written, nil
}

// copyFrom is ReadFrom without the kernel.
func (c *conn) copyFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, from)
}

// socketOf returns the socket that is read from, if waiting can tell what is there; nil:
// it cannot.
func socketOf(r io.Reader) syscall.RawConn {
	s, ok := r.(syscall.Conn)
	if !ok || !canWait {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// renewDeadline gives the client its time for the next piece, and up to a quarter more:
// to set a deadline costs more than to see that the last one will do.
func (c *conn) renewDeadline() {
	if c.patience <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.until.IsZero() {
		return
	}
	if now := time.Now(); c.ours.Sub(now) < c.patience {
		c.ours = now.Add(c.patience + c.patience/4)
		_ = c.Conn.SetWriteDeadline(c.ours)
	}
}

// SetWriteDeadline sets a deadline that goes before ours.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.IsZero() && c.until.IsZero() {
		return nil // there is none but ours
	}
	c.until, c.ours = t, time.Time{}
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.ours = t, time.Time{}
	return c.Conn.SetDeadline(t)
}

// CloseWrite ends the answers alone.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SyscallConn leads to the socket.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Counts returns what the metrics show.
func (cs *conns) Counts() telemetry.Connections {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return telemetry.Connections{
		Open: cs.open, Evicted: cs.evicted,
		RefusedMax: cs.refused[refusedMax], RefusedAddress: cs.refused[refusedAddress],
	}
}
