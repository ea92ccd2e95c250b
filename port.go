package forebay

import (
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/feed"
)

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
		Slots: m.Lent(), InFlight: m.InFlight(), Waiting: m.Waiting(),
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
