//go:build linux

package main

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// mood is what a link does to what passes. The zero value passes everything.
type mood struct {
	cut    bool          // connections are closed, old and new ones
	silent bool          // connections are accepted and nothing is forwarded, either way
	mute   bool          // what the server says is not forwarded; requests are
	delay  time.Duration // of everything, each way
	spread time.Duration // on top, up to this, each way; the order stays
	// swallow is the chance that the answer to a command is lost: the command passes,
	// and then the connection is cut.
	swallow float64
	// drop is the chance that a command is lost, with its connection.
	drop float64
	// again is the chance that a command is sent once more, by another connection, up
	// to belated later.
	again   float64
	belated time.Duration
	// deafen holds back what goes to replicas of the server behind the link.
	deafen bool
}

// link is a way between one worker and one server, for TCP. What is held back while
// the link is silent goes its way once it no longer is, as packets do that were sent
// again: a server may hear requests of which the client has long despaired.
type link struct {
	listener net.Listener
	mood     atomic.Pointer[mood]
	changed  broadcast
	commands atomic.Int64 // that passed, and change something
	running  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	server string
	pairs  map[*pair]bool
	closed bool
}

// newLink opens a link to a server.
func newLink(server string) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: listener, server: server, pairs: map[*pair]bool{}}
	l.changed.ring = make(chan struct{})
	l.mood.Store(&mood{})
	l.running.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

// set gives the link another mood.
func (l *link) set(m mood) {
	l.mood.Store(&m)
	l.changed.all()
	if m.cut {
		l.cutAll()
	}
}

// follow makes the link one to another server.
func (l *link) follow(server string) {
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	l.cutAll()
}

func (l *link) cutAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.cut()
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.listener.Close()
	l.cutAll()
	l.running.Wait()
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		if l.mood.Load().cut {
			client.Close()
			continue
		}
		l.running.Go(func() { l.serve(client) })
	}
}

func (l *link) serve(client net.Conn) {
	server, err := l.dial()
	if err != nil {
		client.Close()
		return
	}
	p := &pair{link: l, client: client, server: server, gone: make(chan struct{})}
	if !l.add(p) {
		p.cut()
		return
	}
	var both sync.WaitGroup
	both.Go(p.forward)
	both.Go(p.back)
	both.Wait()
	p.cut()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

func (l *link) dial() (net.Conn, error) {
	l.mu.Lock()
	server := l.server
	l.mu.Unlock()
	return net.Dial("tcp", server)
}

func (l *link) add(p *pair) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.mood.Load().cut {
		return false
	}
	l.pairs[p] = true
	return true
}

// repeat sends a command to the server by a connection of its own. What comes back
// interests nobody.
func (l *link) repeat(c command, after time.Duration) {
	l.running.Go(func() {
		time.Sleep(after)
		conn, err := l.dial()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Second))
		if _, err := conn.Write(c.raw); err == nil {
			readAnswer(bufio.NewReader(conn))
		}
	})
}

// pair is one connection of a client with the one to the server behind it.
type pair struct {
	link           *link
	client, server net.Conn
	deaf           atomic.Bool // answers are thrown away: one of them is to be lost
	replica        atomic.Bool // the client is a replica
	once           sync.Once
	gone           chan struct{}
}

func (p *pair) cut() {
	p.once.Do(func() {
		close(p.gone)
		p.client.Close()
		p.server.Close()
	})
}

// chunk is bytes on their way.
type chunk struct {
	bytes []byte
	due   time.Time
	last  bool // cut the connection to the client behind it, as if its answer was lost
}

// forward passes on what the client says, command by command. The client is read from
// also while nothing is forwarded, as the buffers of a network would.
func (p *pair) forward() {
	queue := make(chan chunk, 4096)
	var writer sync.WaitGroup
	writer.Go(func() { p.deliver(p.server, queue, p.holdsRequests) })
	in := bufio.NewReader(p.client)
	for {
		c, err := readCommand(in)
		if err != nil {
			break
		}
		m := p.link.mood.Load()
		next := chunk{bytes: c.raw, due: m.due()}
		if c.name == "PSYNC" {
			p.replica.Store(true)
		}
		if c.changes() {
			p.link.commands.Add(1)
			if rand.Float64() < m.drop {
				break
			}
			next.last = rand.Float64() < m.swallow
			if rand.Float64() < m.again {
				p.link.repeat(c, time.Duration(rand.Int64N(int64(m.belated)+1)))
			}
		}
		queue <- next
		if next.last {
			break
		}
	}
	close(queue)
	writer.Wait()
	p.halfClose()
}

// halfClose tells the server that the client says no more, and leaves it to answer.
func (p *pair) halfClose() {
	if tcp, ok := p.server.(*net.TCPConn); ok {
		tcp.CloseWrite()
	}
}

// back passes on what the server says.
func (p *pair) back() {
	queue := make(chan chunk, 4096)
	var writer sync.WaitGroup
	writer.Go(func() { p.deliver(p.client, queue, p.holdsAnswers) })
	for {
		buffer := make([]byte, 16<<10)
		n, err := p.server.Read(buffer)
		if n > 0 && !p.deaf.Load() {
			queue <- chunk{bytes: buffer[:n], due: p.link.mood.Load().due()}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	writer.Wait()
	p.client.Close()
}

// deliver writes what is queued, each when it is due and once nothing holds it back.
// When it cannot write it still empties the queue, for whoever fills it.
func (p *pair) deliver(to io.Writer, queue <-chan chunk, held func() bool) {
	broken := false
	for c := range queue {
		if broken || !p.await(c.due, held) {
			broken = true
			continue
		}
		if c.last { // before the server can answer
			p.deaf.Store(true)
			p.client.Close()
		}
		_, err := to.Write(c.bytes)
		broken = err != nil
	}
}

// await waits until a chunk may go; false if the pair was cut.
func (p *pair) await(due time.Time, held func() bool) bool {
	if wait := time.Until(due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.gone:
			return false
		}
	}
	for {
		ring := p.link.changed.wait()
		if !held() {
			return true
		}
		select {
		case <-ring:
		case <-p.gone:
			return false
		}
	}
}

func (p *pair) holdsRequests() bool { return p.link.mood.Load().silent }

func (p *pair) holdsAnswers() bool {
	m := p.link.mood.Load()
	return m.silent || m.mute || m.deafen && p.replica.Load()
}

// due returns when something that comes now goes on.
func (m *mood) due() time.Time {
	d := m.delay
	if m.spread > 0 {
		d += time.Duration(rand.Int64N(int64(m.spread)))
	}
	return time.Now().Add(d)
}

// broadcast wakes everybody who waits for a change.
type broadcast struct {
	mu   sync.Mutex // guards ring
	ring chan struct{}
}

func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ring
}

func (b *broadcast) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ring)
	b.ring = make(chan struct{})
}
