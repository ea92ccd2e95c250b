package forebay

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/admit"
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
	c := &clustered{over: true}
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
	if c.attached && !c.poked && (c.notify || m.Back() > 0 || m.Waiting() > 0 && m.Joined() > c.looked) {
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

// port is a gate as its source of slots sees it.
type port struct{ *Gate }

var _ feed.Gate = port{}

// Limit returns the configured limit.
func (p port) Limit() int { return p.settings.Load().MaxInFlight }

// Fenced makes the gate number its slots.
func (p port) Fenced() {
	p.lock()
	p.cluster.fenced = true
	p.unlock()
}

// Look returns what the ledger is to be told.
func (p port) Look(after uint64, maxRuns int) feed.View {
	p.lock()
	c, m := p.cluster, p.machine
	now := clock()
	v := feed.View{
		Slots: m.Lent(), InFlight: m.InFlight(), Waiting: m.Waiting(), Granted: m.Counts().Granted,
		Back: m.Fetch(now), Peak: m.Peak(), Lapses: c.lapses,
	}
	v.BackOf = c.popLocked(v.Back)
	c.poked, c.looked = false, m.Joined()
	for w := m.First(); w != nil; w = w.Next() {
		if w.Number() <= after {
			v.Standing = stands(v.Standing, w.Number(), maxRuns)
			continue
		}
		var ok bool
		if v.Arrived, ok = arrives(v.Arrived, w, maxRuns); !ok {
			c.looked = w.Number() - 1 // the rest goes with the next look
			break
		}
	}
	look := p.settings.Load().track && now.Sub(c.lookedAt) >= lookForOldest
	if look {
		c.lookedAt = now
	}
	p.unlock()
	if look {
		since := int64(0)
		if h := p.oldestHolder(); h != nil {
			since = int64(now.Add(-h.Held).Sub(epoch))
		}
		c.oldest.Store(since)
	}
	if since := c.oldest.Load(); since != 0 {
		v.Oldest = now.Sub(epoch.Add(time.Duration(since)))
	}
	return v
}

// lookForOldest is how often the oldest call is looked for, among all that run. An
// exchange may come every 50 µs; nobody needs to know as often.
const lookForOldest = 100 * time.Millisecond

// stands adds a call to those that still stand. Of too many spans the last says of
// some calls that they stand which do not: what is lent for them is not used.
func stands(spans []feed.Span, number uint64, most int) []feed.Span {
	if last := len(spans) - 1; last >= 0 && (spans[last].Last+1 == number || len(spans) >= most) {
		spans[last].Last = number
		return spans
	}
	return append(spans, feed.Span{First: number, Last: number})
}

// arrives adds a call to those that have arrived; false if it does not fit in.
func arrives(runs []feed.Run, w *admit.Waiter, most int) ([]feed.Run, bool) {
	if last := len(runs) - 1; last >= 0 {
		r := &runs[last]
		if r.First+uint64(r.Calls) == w.Number() && r.Cost == w.Cost() && r.Ask == w.Ask() {
			r.Calls++
			return runs, true
		}
	}
	if len(runs) >= most {
		return runs, false
	}
	return append(runs, feed.Run{First: w.Number(), Calls: 1, Cost: w.Cost(), Ask: w.Ask()}), true
}

// Lend adds n units.
func (p port) Lend(n int, slots []feed.Slot) {
	now := clock()
	p.lockAt(now)
	if p.cluster.fenced {
		p.cluster.free = append(p.cluster.free, slots...)
	}
	p.machine.Feed(now, n)
	p.unlock()
}

// Take takes back up to n units that nobody uses.
func (p port) Take(n int) (taken int, slots []feed.Slot) {
	p.lock()
	taken = p.machine.Take(clock(), n)
	slots = p.cluster.popLocked(taken)
	p.unlock()
	return taken, slots
}

// Return says whether units go back to the ledger as calls end.
func (p port) Return(on bool) {
	p.lock()
	p.machine.Return(clock(), on)
	p.unlock()
}

// Answered says that the ledger has heard of all calls up to number last.
func (p port) Answered(last uint64) {
	p.lock()
	p.machine.Answered(clock(), last)
	p.unlock()
}

// Renumber gives every call in line a new number.
func (p port) Renumber() {
	p.lock()
	p.machine.Renumber(clock())
	p.unlock()
}

// Renew says until when the slots may be used.
func (p port) Renew(until time.Time) {
	p.lock()
	c, now := p.cluster, clock()
	p.overLocked(now) // what was lost is lost
	c.term.Store(termUntil(until))
	if c.over && !c.ended() {
		c.over = false
		p.machine.Renew(now)
	}
	p.unlock()
}

// Lapse withdraws every slot at once.
func (p port) Lapse() {
	p.lock()
	c, now := p.cluster, clock()
	c.term.Store(termOver)
	p.endTermLocked(now)
	p.machine.Lapse(now)
	c.notify = false // it knows
	c.lapses++
	c.free = nil
	p.slots.outLocked(func(sl *slot) {
		if sl.numbers != nil {
			sl.numbers.withdrawn = true
		}
	})
	p.unlock()
}

// Alone says how to go on without the ledger.
func (p port) Alone(a feed.Alone) {
	p.lock()
	c := p.cluster
	c.term.Store(nil)
	c.away, c.over = true, false
	p.machine.Alone(clock(), a.Slots, a.Refuse)
	p.unlock()
}

// Together ends Alone.
func (p port) Together() {
	p.lock()
	c, now := p.cluster, clock()
	c.away = false
	if c.term.Load() == nil { // nobody has renewed it
		c.term.Store(termOver)
		p.endTermLocked(now)
	}
	p.machine.Together(now)
	p.unlock()
}

// SetLimit puts the cluster's limit in force here.
func (p port) SetLimit(n int) {
	p.lock()
	if p.machine.Limit() != n {
		p.machine.SetLimit(clock(), n)
	}
	p.unlock()
}
