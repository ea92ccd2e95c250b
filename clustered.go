package forebay

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/feed"
)

// clustered is what a gate has besides if its slots come from a cluster. The machine
// decides within the slots that are lent; what is here is the time for which they
// are, their numbers, and who is to be told what.
type clustered struct {
	supplier feed.Supplier
	term     atomic.Pointer[term] // nil: without end
	oldest   atomic.Int64         // when the oldest call began, after epoch; 0: not known

	// Guarded by the gate's lock.
	attached bool
	over     bool      // the term has ended, and the machine knows
	away     bool      // the gate goes on without the ledger
	poked    bool      // the supplier was told that there is something to say, and has not looked since
	looked   uint64    // the number of the last call that it has seen
	lookedAt time.Time // for the oldest call
	notify   bool      // there is something that it cannot see by looking
	lapses   uint64
	fenced   bool
	free     []feed.Slot // numbered units on which nothing runs
	watched  map[*watched]struct{}
	ends     []context.CancelCauseFunc // of the contexts of leases that were lost
}

// attach has the gate fed by a source.
func (g *Gate) attach(source feed.Source) error {
	c := &clustered{over: true, watched: map[*watched]struct{}{}}
	c.term.Store(termOver)
	g.cluster = c
	g.machine.Expire(clock())
	supplier, err := source.Attach(port{g})
	if err != nil {
		return fmt.Errorf("forebay: gate %q gets no slots from its cluster: %w", g.name, err)
	}
	c.supplier = supplier
	g.lock()
	c.attached = true
	g.unlock()
	return nil
}

// alone reports whether the gate goes on without the ledger.
func (g *Gate) alone() bool {
	if g.cluster == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cluster.away
}

// ended reports whether the time is over for which slots were lent.
func (c *clustered) ended() bool { return c.term.Load().over() }

// overLocked is ended, and has the machine know.
func (g *Gate) overLocked(now time.Time) bool {
	if !g.cluster.over && g.cluster.ended() {
		g.endTermLocked(now)
	}
	return g.cluster.over
}

// endTermLocked ends the term: nobody starts, and every lease that is out is lost.
func (g *Gate) endTermLocked(now time.Time) {
	g.cluster.over, g.cluster.notify = true, true
	g.machine.Expire(now)
	g.loseLocked()
}

// notices is what is to be said once the lock is given up.
type notices struct {
	poke feed.Supplier
	ends []context.CancelCauseFunc
}

// noticesLocked says whether the supplier has something to look at, once for each
// Look of it, and whose contexts end.
func (g *Gate) noticesLocked() (n notices) {
	c, m := g.cluster, g.machine
	n.ends, c.ends = c.ends, nil
	if c.attached && !c.poked && (c.notify || m.Back() > 0 || m.Joined() > c.looked) {
		c.poked, c.notify = true, false
		n.poke = c.supplier
	}
	return n
}

func (n notices) deliver() {
	if n.poke != nil {
		n.poke.Poke()
	}
	for _, end := range n.ends {
		end(ErrLeaseLost)
	}
}
