package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	"example.com/forebay/internal/feed"
)

// Cluster is what this process shares with others: gates whose Config.Cluster it is, or
// what its With returns, have one limit over all of them. Make one with [New], the zero
// value is not usable, and give its slots back with [Cluster.Close]. It is safe for
// concurrent use.
type Cluster struct {
	config Config
	id     string // of this process
	ctx    context.Context
	end    context.CancelFunc

	subscriber *subscriber
	changes    chan Change // nil: nobody wants to know
	goroutines sync.WaitGroup

	mu        sync.Mutex // guards what follows
	suppliers []*supplier
	attached  int
	closed    bool
}

// New returns a cluster, or every mistake in its configuration at once. It asks nothing
// of the store: gates do, as they are made.
func New(c Config) (*Cluster, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if c.Host == "" {
		c.Host = "unknown"
		if h, err := os.Hostname(); err == nil && h != "" {
			c.Host = h
		}
	}
	cl := &Cluster{config: c, id: rand.Text()[:16]}
	cl.ctx, cl.end = context.WithCancel(context.Background())
	cl.subscriber = newSubscriber(cl)
	if c.Changed != nil {
		cl.changes = make(chan Change, maxChanges)
		cl.goroutines.Go(cl.report)
	}
	cl.goroutines.Go(func() { cl.subscriber.run(cl.ctx) })
	return cl, nil
}

// With returns the cluster for gates with terms of their own. What is wrong with the
// terms is said as a gate is made.
func (c *Cluster) With(t Terms) feed.Source { return terms{c, t} }

// terms is a cluster on certain terms.
type terms struct {
	cluster *Cluster
	terms   Terms
}

// Attach feeds g on the terms.
func (t terms) Attach(g feed.Gate) (feed.Supplier, error) {
	own := t.terms
	if err := own.complete(t.cluster.config.Lease); err != nil {
		return nil, err
	}
	return t.cluster.attach(g, own)
}

// Attach feeds g, on the terms of the configuration. forebay.New calls it.
func (c *Cluster) Attach(g feed.Gate) (feed.Supplier, error) { return c.attach(g, c.config.Terms) }

func (c *Cluster) attach(g feed.Gate, t Terms) (feed.Supplier, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("cluster: it is closed")
	}
	c.attached++
	s := &supplier{
		cluster: c, gate: g.Name(), key: KeyOf(c.config.Name, g.Name()),
		wake: make(chan struct{}, 1), gone: make(chan struct{}), done: make(chan struct{}),
	}
	me := Request{
		Key: s.key, Instance: c.id + "." + strconv.Itoa(c.attached), Host: c.config.Host,
		Limit: g.Limit(), Lease: c.config.Lease, MinShare: t.MinShare, Fenced: t.Fenced,
	}
	if t.WhenAway == Share {
		me.Withhold = t.Withhold
	}
	s.channel = ChannelOf(s.key, me.Instance)
	s.loan = newLoan(g, me, t)
	s.state.Mode = s.loan.mode()
	c.suppliers = append(slices.Clone(c.suppliers), s) // whoever reads the old one goes on
	s.ctx, s.end = context.WithCancel(c.ctx)
	c.goroutines.Go(func() { s.run(s.ctx) })
	c.subscriber.changed()
	return s, nil
}

// Close gives everything back: nobody is let in from now on (forebay.RejectedStore), the
// slots of calls that run go back as they end, and the others hear at once that this
// process is gone. It returns when that is done; or with an error when ctx ends, or when
// nothing runs any more and the store is away: then what is still out is lent again once
// its lease is surely over. Drain the gates before, if their calls should end well. A
// second Close waits for the same.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	suppliers := c.suppliers
	c.mu.Unlock()
	for _, s := range suppliers {
		s.leave()
	}
	var errs []error
	for _, s := range suppliers {
		if err := s.waitUntilGone(ctx); err != nil {
			errs = append(errs, err)
		}
	}
	c.end()
	c.goroutines.Wait()
	return errors.Join(errs...)
}

// waitUntilGone waits until the ledger has been told that the gate leaves.
func (s *supplier) waitUntilGone(ctx context.Context) error {
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
	case <-s.done: // it has gone, or it is in vain
	}
	select {
	case <-s.gone:
		return nil
	default:
		return fmt.Errorf("cluster: gate %q has not given everything back: %w", s.gate, s.why(ctx))
	}
}

// why says what kept a gate from giving everything back.
func (s *supplier) why(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.loan.store.open():
		return errors.New("the store is away: " + s.loan.store.text)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New("it had less time before")
}

// all returns the suppliers.
func (c *Cluster) all() []*supplier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.suppliers
}
