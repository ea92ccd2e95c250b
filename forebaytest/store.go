package forebaytest

import (
	"context"
	"time"

	"example.com/forebay/cluster"
)

// Store is a cluster.Store in memory: the ledger's model behind a lock, and everything
// that can go wrong between it and an instance. It serves a single process, in which
// many instances may share it: each has a [Store.Path] of its own to it, with faults of
// its own, and [Store.Wipe], [Store.Restart] and the like befall all. In a
// testing/synctest bubble hours of it take no time.
type Store struct {
	ledgers *ledgers
	chance  *chance
}

// NewStore returns an empty store that has been up for a day. What happens by chance
// follows from the seed and the order of events.
func NewStore(seed uint64) *Store {
	return &Store{newLedgers(), newChance(seed)}
}

// Path returns another way to the same ledgers, without faults yet.
func (s *Store) Path() *Store { return &Store{s.ledgers, newChance(s.chance.seed())} }

// SetFaults has these faults befall whatever comes this way from now on. An Err ends its
// subscriptions.
func (s *Store) SetFaults(f Faults) {
	s.chance.set(f)
	if f.Err != nil {
		s.Break()
	}
}

// Break ends the subscriptions of this path, as if their connection was lost.
func (s *Store) Break() {
	s.ledgers.end(func(sub *subscription) bool { return sub.chance == s.chance })
}

// Exchange tells the ledger what r says, and returns its answer, if nothing befalls
// either.
func (s *Store) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	if err := ctx.Err(); err != nil {
		return cluster.Reply{}, err
	}
	f := s.chance.exchange()
	if f.err != nil {
		return cluster.Reply{}, f.err
	}
	answer := make(chan cluster.Reply, 1)
	if f.arrives {
		after(f.there, func() {
			s.ledgers.exchange(*r, func(rep cluster.Reply) {
				if f.replies {
					after(f.back, func() { answer <- rep })
				}
			})
			if f.again >= 0 {
				after(f.again, func() { s.ledgers.exchange(*r, func(cluster.Reply) {}) })
			}
		})
	}
	if !f.replies && f.knows {
		return cluster.Reply{}, errLost
	}
	select {
	case rep := <-answer:
		return rep, nil
	case <-ctx.Done():
		return cluster.Reply{}, context.Cause(ctx)
	}
}

// after calls f after d; at once if that is now.
func after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, f)
}

// Subscribe hands on what ledgers publish on the channels.
func (s *Store) Subscribe(ctx context.Context, channels []string, ready func(), heard func(cluster.Message)) error {
	if err := s.chance.err(); err != nil {
		return err
	}
	sub := newSubscription(s.chance, channels)
	s.ledgers.add(sub)
	defer s.ledgers.remove(sub)
	ready()
	return sub.run(ctx, heard)
}

// Stats returns the ledger of one gate as it stands.
func (s *Store) Stats(ctx context.Context, key string) (cluster.State, error) {
	f := s.chance.exchange()
	if f.err != nil {
		return cluster.State{}, f.err
	}
	answer := make(chan cluster.State, 1)
	if f.replies {
		after(f.there+f.back, func() { answer <- s.ledgers.state(key) })
	}
	select {
	case st := <-answer:
		return st, nil
	case <-ctx.Done():
		return cluster.State{}, context.Cause(ctx)
	}
}

// Exchanges returns how many steps all the ledgers have made so far.
func (s *Store) Exchanges() int { return s.ledgers.count() }

// Wipe empties the store, as FLUSHALL does.
func (s *Store) Wipe() { s.ledgers.wipe(false) }

// Restart replaces the server by an empty one. Subscriptions end.
func (s *Store) Restart() { s.ledgers.wipe(true) }

// Freeze has everything that comes wait until [Store.Thaw]: then it happens, whether
// anybody still waits for it or not, as with a server that was stopped and goes on.
func (s *Store) Freeze() { s.ledgers.freeze() }

// Thaw ends Freeze.
func (s *Store) Thaw() { s.ledgers.thaw() }

// Jump moves the server's clock.
func (s *Store) Jump(d time.Duration) { s.ledgers.jump(d) }

// Drift lets the server's clock run at another speed from now on: 1.1 is a tenth faster.
func (s *Store) Drift(speed float64) { s.ledgers.drift(speed) }

// HideIdentity has the server say no longer who it is, as where INFO is not allowed.
func (s *Store) HideIdentity() { s.ledgers.hide() }

// Replicate keeps a replica that is behind by lag, for [Store.Failover].
func (s *Store) Replicate(lag time.Duration) { s.ledgers.replicate(lag) }

// Failover puts the replica in the server's place: what it has not heard of is lost;
// without one, everything. Subscriptions end.
func (s *Store) Failover() { s.ledgers.failover() }
