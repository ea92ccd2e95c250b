package redistest

import (
	"crypto/tls"
	"net"
	"strings"
	"sync"
)

var callChecks = []check{
	{"an exchange whose answer is lost is not made again", atMostOnce},
	{"a connection that swallows everything is given up", halfOpen},
	{"connections that are killed are made again", killed},
	{"a unix socket", unixSocket},
	{"TLS", overTLS},
	{"TLS that does not fit is no store that is away", wrongTLS},
	{"a store that is closed", closed},
}

// lossy is something between a client and a server that passes requests on, and ends
// the connection in place of the answer to one that has a word in it.
type lossy struct {
	net.Listener
	target string
	conns  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	word   string
	passes map[net.Conn]bool // what comes over it goes on to the server
}

func startLossy(r *rig, s *Server) *lossy {
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		r.Fatalf("%v", err)
	}
	p := &lossy{Listener: l, target: s.Addr(), passes: map[net.Conn]bool{}}
	p.conns.Go(p.accept)
	r.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *lossy) accept() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		p.conns.Go(func() { p.pass(c) })
	}
}

func (p *lossy) lose(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word = word
}

func (p *lossy) loses(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.word != "" && strings.Contains(string(request), p.word)
}

// swallowAll keeps what comes over the connections that are there from the server.
func (p *lossy) swallowAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.passes {
		p.passes[c] = false
	}
}

func (p *lossy) swallows(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.passes[c]
}

func (p *lossy) pass(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	p.passes[client] = true
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	lost := make(chan struct{})
	go func() {
		defer client.Close()
		b := make([]byte, 1<<16)
		for {
			n, err := server.Read(b)
			select {
			case <-lost: // it was executed
				return
			default:
			}
			if err != nil {
				return
			}
			_, _ = client.Write(b[:n])
		}
	}()
	b := make([]byte, 1<<16)
	for once := true; ; {
		n, err := client.Read(b)
		if err != nil {
			return
		}
		if once && p.loses(b[:n]) {
			once = false
			close(lost)
		}
		if p.swallows(client) {
			continue
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

func atMostOnce(r *rig) {
	s := Start(r, Config{})
	p := startLossy(r, s)
	a := s.Address()
	a.Servers = []string{p.Addr().String()}
	m := r.instance(r.open(a), "g")
	m.settle()
	p.lose("EVALSHA")
	before := s.Counts()
	m.want()
	m.away(m.tell(budget))
	if sent := s.Counts().Since(before); sent["evalsha"].Calls != 1 {
		r.Errorf("the server executed %v, want one evalsha", sent)
	}
	p.lose("")
	m.next.Number-- // as the same instance that knows nothing of its fate
	m.want()
	if got := m.soon(); got.Held != 1 {
		r.Errorf("afterwards %d units are lent, want 1", got.Held)
	}
}

func killed(r *rig) {
	s := Start(r, Config{})
	m := r.instance(r.open(s.Address()), "g")
	m.settle()
	for range 5 {
		s.Must("CLIENT", "KILL", "TYPE", "normal")
		m.soon()
	}
}

func unixSocket(r *rig) {
	s := Start(r, Config{})
	everything(r, r.open(Address{Socket: s.Socket()}))
}

func overTLS(r *rig) {
	s := Start(r, Config{TLS: true, Password: "secret"})
	everything(r, r.open(s.Address()))
}

func wrongTLS(r *rig) {
	secure, plain := Start(r, Config{TLS: true}), Start(r, Config{})
	stranger := newCertificates(r)

	unknown := secure.Address()
	unknown.TLS = stranger.client()
	m := r.instance(r.open(unknown), "g")
	m.refused(m.tell(budget), "certificate", secure.Addr())

	misdirected := plain.Address()
	misdirected.TLS = secure.TLS()
	m = r.instance(r.open(misdirected), "g")
	if err := m.tell(budget); err == nil {
		r.Errorf("TLS with a server that speaks none goes well")
	} else {
		r.says(err, "TLS", "not answered in the time", plain.Addr())
	}

	// A server hangs up on whoever shows it no certificate, and on whoever speaks no
	// TLS, which may have any reason.
	nameless := secure.Address()
	nameless.TLS = &tls.Config{RootCAs: secure.TLS().RootCAs}
	if err := r.instance(r.open(nameless), "g").tell(budget); err == nil {
		r.Errorf("an exchange without a certificate goes well")
	} else {
		r.says(err, secure.Addr())
	}
	naked := secure.Address()
	naked.TLS = nil
	m = r.instance(r.open(naked), "g")
	m.away(m.tell(budget), secure.Addr())
}

func closed(r *rig) {
	s := Start(r, Config{})
	store := r.open(s.Address())
	m := r.instance(store, "g")
	m.must()
	sub := r.subscribe(store, "a")
	store.Close()
	store.Close()
	if err := sub.lost(); err == nil {
		r.Errorf("a subscription of a closed store ends without a reason")
	}
	m.away(m.tell(budget))
	until(r, "an end of its connections", func() bool { return s.Connections() == 0 })
}

func halfOpen(r *rig) {
	s := Start(r, Config{})
	p := startLossy(r, s)
	a := s.Address()
	a.Servers = []string{p.Addr().String()}
	store := r.open(a)
	var wg sync.WaitGroup
	for range 8 { // at once: a client may then send one after the other without waiting
		wg.Go(func() {
			m := r.instance(store, "g")
			for range 20 {
				if err := m.tell(budget); err != nil {
					r.Errorf("Exchange: %v", err)
				}
			}
		})
	}
	wg.Wait()
	p.swallowAll()
	m := r.instance(store, "g")
	for range 2 {
		m.away(m.tell(short), "not answered in the time")
	}
	m.soon()
}
