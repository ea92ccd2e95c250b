package forebaytest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"example.com/forebay/cluster"
)

// TestStore checks that what open returns is a [cluster.Store]: that its ledgers step
// whole, and at most once for each exchange; that what they publish reaches whoever is
// subscribed, in order; and that nothing outlives its context. Each check is a subtest
// with a store of its own, which may keep its ledgers where the others do: no key is
// used twice. What open has to clean up goes to t.Cleanup.
//
// What a ledger decides is not looked at closely: that is for the tests of
// [cluster.Ledger] and of its script. A server that has just been started may lend
// nothing for some seconds, which the suite waits for.
func TestStore(t *testing.T, open func(t testing.TB) cluster.Store) {
	for _, c := range storeChecks {
		t.Run(c.name, func(t *testing.T) {
			c.run(&storeRig{TB: t, Store: open(t), name: "conformance-" + rand.Text()})
		})
	}
}

// storeCheck is one thing that every store has to do.
type storeCheck struct {
	name string
	run  func(r *storeRig)
}

// storeRig is a store under test.
type storeRig struct {
	testing.TB
	cluster.Store
	name string // of the cluster; a key is used by one check only
}

// storeLease is short, so that a server that was just started lends soon. It does not
// matter on a busy machine: the ledger's clock moves by a quarter of it for each
// exchange.
const storeLease = 500 * time.Millisecond

// teller is an instance reduced to what it tells the ledger.
type teller struct {
	*storeRig
	next cluster.Request // what it tells next
	last cluster.Reply
}

// teller returns a new instance that shares a gate.
func (r *storeRig) teller(gate, instance string, limit int) *teller {
	return &teller{storeRig: r, next: cluster.Request{
		Key: cluster.KeyOf(r.name, gate), Instance: instance, Host: "host of " + instance,
		Limit: limit, Override: cluster.Override{Limit: -1}, Lease: storeLease,
	}}
}

// tell is one exchange that goes well.
func (m *teller) tell() cluster.Reply {
	m.Helper()
	if err := m.try(m.Context()); err != nil {
		m.Fatalf("Exchange: %v", err)
	}
	return m.last
}

// try is one exchange, after which the next request follows on its answer.
func (m *teller) try(ctx context.Context) error {
	m.next.Number++
	reply, err := m.Exchange(ctx, &m.next)
	if err != nil {
		return err
	}
	m.last = reply
	m.next.Epoch, m.next.Granted, m.next.Returned = reply.Epoch, reply.Granted, reply.Returned
	m.next.Claim, m.next.Slots, m.next.Arrived = m.held(), reply.Slots, nil
	return nil
}

// held returns the units that the instance was lent and has not given back.
func (m *teller) held() int { return int(m.last.Granted - m.next.Returned) }

// want says, with the next exchange, that n calls joined its line.
func (m *teller) want(n int) {
	first := uint64(1)
	for _, s := range m.next.Standing {
		first = s.Last + 1
	}
	first = max(first, m.last.Heard+1)
	m.next.Arrived = []cluster.Run{{First: first, Calls: n, Cost: 1}}
	m.next.Waiting = n
}

// stand says, with the next exchange, that of what it wanted n calls still wait.
func (m *teller) stand(n int) {
	m.next.Standing, m.next.Waiting = nil, n
	if n > 0 {
		m.next.Standing = []cluster.Span{{First: m.last.Heard - uint64(n) + 1, Last: m.last.Heard}}
	}
}

// giveBack says, with the next exchange, that n units are the ledger's again.
func (m *teller) giveBack(n int) {
	m.next.Returned += uint64(n)
	m.next.Claim = m.held()
}

// settle exchanges until the ledger lends, which it does not at first where it may have
// lost what it knew.
func (m *teller) settle() {
	m.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(longest); m.tell().Learning > 0; {
		select {
		case <-tick.C:
		case <-over:
			m.Fatalf("the ledger still learns: %v", m.last)
		}
	}
}

// errOver is the cause with which the suite ends contexts.
var errOver = errors.New("forebaytest: it is over")

// subscriber is one call of Subscribe.
type subscriber struct {
	storeRig *storeRig
	heard    chan cluster.Message
	ended    chan error // gets what Subscribe returned
	stop     context.CancelCauseFunc
}

// subscribe subscribes and returns when everything will be heard.
func (r *storeRig) subscribe(channels ...string) *subscriber {
	r.Helper()
	ctx, stop := context.WithCancelCause(r.Context())
	s := &subscriber{storeRig: r, heard: make(chan cluster.Message, 1000), ended: make(chan error, 1), stop: stop}
	ready := make(chan struct{})
	go func() {
		s.ended <- r.Subscribe(ctx, channels, func() { close(ready) }, func(m cluster.Message) { s.heard <- m })
	}()
	r.Cleanup(func() { stop(errOver) })
	select {
	case <-ready:
	case err := <-s.ended:
		r.Fatalf("Subscribe ended before it was ready: %v", err)
	case <-time.After(longest):
		r.Fatalf("Subscribe is not ready within %v", longest)
	}
	return s
}

// hear returns the next message that the check is about.
func (s *subscriber) hear(about func(cluster.Message) bool) cluster.Message {
	s.storeRig.Helper()
	over := time.After(longest)
	for {
		select {
		case <-over:
			s.storeRig.Fatalf("it hears nothing within %v", longest)
		case m := <-s.heard:
			if about(m) {
				return m
			}
		case err := <-s.ended:
			s.storeRig.Fatalf("the subscription ended: %v", err)
		}
	}
}

// kind returns what tells messages of one kind.
func kind(k byte) func(cluster.Message) bool {
	return func(m cluster.Message) bool {
		news, err := cluster.ParseNews(m.Text)
		return err == nil && news.Kind == k
	}
}

// end ends the subscription and returns what came of it.
func (s *subscriber) end() error {
	s.storeRig.Helper()
	s.stop(errOver)
	select {
	case err := <-s.ended:
		return err
	case <-time.After(longest):
		s.storeRig.Fatalf("Subscribe has not returned %v after the end of its context", longest)
		return nil
	}
}
