package redistest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cluster"
)

// Store is a store on Redis, as [TestStore] sees it.
type Store interface {
	cluster.Store
	// Inspect looks at the servers with the eyes of the store's user.
	Inspect(ctx context.Context, name string) (cluster.Inspection, error)
	// Reloads counts how often a server did not know the script.
	Reloads() uint64
	// Close ends the store and its client.
	Close()
}

// Opener makes stores of one kind.
type Opener struct {
	// Open returns a store with a client of its own. The servers may be away.
	Open func(a Address) (Store, error)
	// Sentinel and Cluster are the rights that the client needs besides, on servers
	// with Sentinels and on those of a Cluster.
	Sentinel, Cluster []string
	// Connections is how many the store may have to one server at most.
	Connections int
}

// TestStore checks a store against real servers, in the states that they can be in:
// just started or stopped, restarted empty, frozen, full, replicas, nodes that hand
// slots over, with few rights, behind TLS. Each check is a subtest, named after the
// cases from the field that it stands for. What any store has to do is for
// forebaytest.TestStore to show.
func TestStore(t *testing.T, o Opener) {
	for _, c := range slices.Concat(caseChecks, stateChecks, rightChecks, callChecks, hearChecks, failoverChecks, clusterChecks) {
		t.Run(c.name, func(t *testing.T) { c.run(&rig{t, o}) })
	}
}

// check is one thing that every store on Redis has to do.
type check struct {
	name string
	run  func(r *rig)
}

// rig is a kind of store under test.
type rig struct {
	*testing.T
	Opener
}

// sub runs one of several variants of a check.
func (r *rig) sub(name string, f func(r *rig)) {
	r.Run(name, func(t *testing.T) { f(&rig{t, r.Opener}) })
}

// open returns a store on servers.
func (r *rig) open(a Address) Store {
	r.Helper()
	s, err := r.Open(a)
	if err != nil {
		r.Fatalf("Open: %v", err)
	}
	r.Cleanup(s.Close)
	return s
}

// clusterName is the name of all clusters here.
const clusterName = "forebay"

// lease is short, so that a server that was just started lends soon. It does not matter
// on a busy machine: the ledger's clock moves by a quarter of it for each exchange.
const lease = 500 * time.Millisecond

// budget is what a store is given where it is to answer.
const budget = 30 * time.Second

// short is what it is given where nobody answers.
const short = 200 * time.Millisecond

// instance tells a ledger no more than it must.
type instance struct {
	*rig
	store Store
	next  cluster.Request
	last  cluster.Reply
}

// instance returns one that shares a gate with a limit of 2.
func (r *rig) instance(s Store, gate string) *instance {
	return &instance{rig: r, store: s, next: cluster.Request{
		Key: cluster.KeyOf(clusterName, gate), Instance: rand.Text(), Host: "host",
		Limit: 2, Override: cluster.Override{Limit: -1}, Lease: lease,
	}}
}

// tell is one exchange, in the time that is given.
func (m *instance) tell(within time.Duration) error {
	ctx, stop := context.WithTimeout(m.Context(), within)
	defer stop()
	m.next.Number++
	reply, err := m.store.Exchange(ctx, &m.next)
	if err != nil {
		return err
	}
	m.last = reply
	m.next.Epoch, m.next.Granted, m.next.Returned = reply.Epoch, reply.Granted, reply.Returned
	m.next.Claim, m.next.Arrived = m.held(), nil
	return nil
}

// must is one exchange that goes well.
func (m *instance) must() cluster.Reply {
	m.Helper()
	if err := m.tell(budget); err != nil {
		m.Fatalf("Exchange: %v", err)
	}
	return m.last
}

// soon exchanges until it goes well, as where a server comes back.
func (m *instance) soon() cluster.Reply {
	m.Helper()
	until(m, "an exchange that goes well", func() bool { return m.tell(short) == nil })
	return m.last
}

// settle exchanges until the ledger lends.
func (m *instance) settle() {
	m.Helper()
	until(m, "a ledger that lends", func() bool { return m.must().Learning == 0 })
}

func (m *instance) held() int { return int(m.last.Granted - m.next.Returned) }

// want says, with the next exchange, that a call joined its line, after those that stand.
func (m *instance) want() {
	m.next.Arrived = []cluster.Run{{First: m.last.Heard + 1, Calls: 1, Cost: 1}}
	m.next.Waiting++
}

// giveBack says, with the next exchange, that a unit is the ledger's again.
func (m *instance) giveBack() {
	m.next.Returned++
	m.next.Claim = m.held()
}

// away fails the check unless something failed because the store is away.
func (m *instance) away(err error, words ...string) {
	m.Helper()
	m.failed(err, false, words)
}

// refused fails the check unless something failed because the store is not set
// up.
func (m *instance) refused(err error, words ...string) {
	m.Helper()
	m.failed(err, true, words)
}

func (m *instance) failed(err error, setup bool, words []string) {
	m.Helper()
	if err == nil {
		m.Errorf("it went well: %v", m.last)
		return
	}
	if got := errors.Is(err, cluster.ErrSetup); got != setup {
		m.Errorf("ErrSetup is %v, want %v: %v", got, setup, err)
	}
	m.says(err, words...)
}

// says fails the check unless an error has the words in it, and is one line.
func (r *rig) says(err error, words ...string) {
	r.Helper()
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.Errorf("%q says nothing of %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		r.Errorf("%q is not one line", err)
	}
}
