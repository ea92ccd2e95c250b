package cluster

import (
	"fmt"
	"maps"
)

// checks are what must hold of a ledger after every step, whoever said what before.
type checks struct {
	polite bool            // instances make sense
	fences map[int]uint64  // the highest that each slot had
	minted map[uint64]bool // all that there were
}

// before is what a step is compared with.
type before struct {
	epoch   uint64
	granted map[string]uint64
	tickets map[int64]ticket
}

func (c *checks) before(l *Ledger, r *Request) before {
	b := before{epoch: l.epoch, granted: map[string]uint64{}, tickets: maps.Clone(l.line.tickets)}
	for name, m := range l.members {
		b.granted[name] = m.granted
	}
	return b
}

// after returns what does not hold, "" if all does.
func (c *checks) after(b before, l *Ledger, r *Request, reply *Reply) string {
	for _, check := range []func() string{
		func() string { return sums(l) },
		func() string { return c.lent(b, l, r) },
		func() string { return c.slots(l) },
		func() string { return c.line(l) },
		func() string { return c.nobodyWaits(b, l) },
	} {
		if wrong := check(); wrong != "" {
			return wrong
		}
	}
	if l.epoch < b.epoch {
		return fmt.Sprintf("epoch %d after %d", l.epoch, b.epoch)
	}
	if reply.Epoch != l.epoch || reply.Returned > reply.Granted {
		return "the reply is not of this ledger"
	}
	return ""
}

// sums: what is kept of all together is what the members have.
func sums(l *Ledger) string {
	var held, inUse, waiting, queued, withheld, shares int
	low := 0
	for i, name := range l.names {
		m := l.members[name]
		if m == nil {
			return name + " is a name without a member"
		}
		if m.returned > m.granted || m.granted > l.top || m.told > m.granted {
			return fmt.Sprintf("%s: granted %d, returned %d, told %d, top %d", name, m.granted, m.returned, m.told, l.top)
		}
		if m.queued < 0 || m.queued != between(m.spans, m.next, m.heard) {
			return fmt.Sprintf("%s has %d in line, of %v from %d to %d", name, m.queued, m.spans, m.next, m.heard)
		}
		if m.gone && (m.held() > 0 || m.queued > 0) {
			return name + " was given up and has something"
		}
		if l.clock < l.nearest && !m.gone && m.busy() && l.clock >= m.givenUp() {
			return name + " is overdue"
		}
		if i == 0 {
			low = m.limit
		}
		held, inUse, waiting, queued = held+m.held(), inUse+m.inUse, waiting+m.waiting, queued+m.queued
		withheld += l.reserved(m)
		if m.withhold > 0 {
			shares += m.share
		}
		low = min(low, m.limit)
	}
	if len(l.names) > 0 && low != l.low {
		return fmt.Sprintf("the lowest limit is %d, not %d", low, l.low)
	}
	if len(l.names) != len(l.members) || held != l.held || inUse != l.inUse || waiting != l.waiting ||
		queued != l.line.queued || withheld != l.withheld || shares != l.shares {
		return fmt.Sprintf("sums: %d names, held %d, in use %d, waiting %d, queued %d, withheld %d, shares %d",
			len(l.names), held, inUse, waiting, queued, withheld, shares)
	}
	return ""
}

// lent: nothing is lent above the limit, nor while the ledger learns; then only the
// speaker's claim counts.
func (c *checks) lent(b before, l *Ledger, r *Request) string {
	if b.epoch != l.epoch {
		b.granted = nil
	}
	for name, m := range l.members {
		was := b.granted[name]
		if m.granted < was {
			return name + " was granted less than before"
		}
		grown := min(int(m.granted-was), m.held()) // it may have joined anew
		if grown == 0 {
			continue
		}
		switch {
		case l.learning() && (name != r.Instance || r.Epoch == 0 || grown > r.Claim):
			return name + " was lent something by a ledger that learns"
		case !l.learning() && l.held+l.withheld > l.limit && (name != r.Instance || l.held+l.withheld-l.reserved(m) > l.limit):
			return fmt.Sprintf("%s was lent something, and %d are held and %d withheld of %d", name, l.held, l.withheld, l.limit)
		case name != r.Instance && m.granted > m.told+maxUnacked && was != m.told:
			return name + " was lent too much before it spoke"
		}
	}
	return ""
}

// slots: each is held by one member, and its fence is higher than whoever had it before.
func (c *checks) slots(l *Ledger) string {
	if c.fences == nil {
		c.fences, c.minted = map[int]uint64{}, map[uint64]bool{}
	}
	owner := map[int]string{}
	for _, name := range l.names {
		m := l.members[name]
		if m.fenced && m.held() != len(m.slots) {
			return fmt.Sprintf("%s holds %d, and the slots %v", name, m.held(), m.slots)
		}
		for _, s := range m.slots {
			if other, taken := owner[s.Number]; taken {
				return fmt.Sprintf("slot %d is lent to %s and %s", s.Number, other, name)
			}
			owner[s.Number] = name
			if s.Number > len(l.used) || !l.used[s.Number-1] {
				return fmt.Sprintf("slot %d is held and free", s.Number)
			}
			if c.polite && !c.minted[s.Fence] && s.Fence < c.fences[s.Number] {
				return fmt.Sprintf("slot %d has the fence %d after %d", s.Number, s.Fence, c.fences[s.Number])
			}
			c.minted[s.Fence] = true
			c.fences[s.Number] = max(c.fences[s.Number], s.Fence)
		}
	}
	for n, used := range l.used {
		if _, held := owner[n+1]; used && !held {
			return fmt.Sprintf("slot %d is neither held nor free", n+1)
		}
	}
	return ""
}

// line: every call in it has its place, in order.
func (c *checks) line(l *Ledger) string {
	q := &l.line
	if q.head > q.cursor || q.cursor > q.tail+1 || q.tail-q.head+1 > 2*int64(q.queued)+maxHoles {
		return fmt.Sprintf("the line has head %d, cursor %d, tail %d and %d in it", q.head, q.cursor, q.tail, q.queued)
	}
	placed, next := map[string]int{}, map[string]uint64{}
	for place := q.head; place <= q.tail; place++ {
		t, ok := q.tickets[place]
		m := l.members[t.instance]
		if !ok || m == nil {
			continue
		}
		from := max(m.next, next[t.instance])
		if t.last < from {
			continue
		}
		n := between(m.spans, from, min(t.last, m.heard))
		placed[t.instance] += n
		next[t.instance] = t.last + 1
		if n > 0 && place < q.cursor && (m.passed == 0 || m.passed > place) {
			return fmt.Sprintf("%s stands in front of the cursor and was not passed over", t.instance)
		}
	}
	for name, m := range l.members {
		if c.polite && placed[name] != m.queued {
			return fmt.Sprintf("%s has %d calls in line and tickets for %d", name, m.queued, placed[name])
		}
	}
	for place := range q.tickets {
		if place < q.head || place > q.tail {
			return fmt.Sprintf("the ticket at %d stands outside the line", place)
		}
	}
	return ""
}

// nobodyWaits: while something is free nobody waits for it, but for calls that cost more
// than is free, those behind them, and those that cannot be reached.
func (c *checks) nobodyWaits(b before, l *Ledger) string {
	if !c.polite || l.learning() || l.free() <= 0 {
		return ""
	}
	q := &l.line
	looked := 0
	for place := range b.tickets {
		if _, still := q.tickets[place]; !still {
			looked++ // in this step, so it counts
		}
	}
	stuck := map[*member]bool{}
	for place := q.head; place <= q.tail; place++ {
		t, ok := q.tickets[place]
		m := l.members[t.instance]
		if !ok || m == nil || m.stand(t) == 0 {
			continue
		}
		since := int(m.granted - m.told)
		if stuck[m] || t.cost > l.limit-l.withheld || since > 0 && t.cost > maxUnacked-since {
			stuck[m] = true
			looked++
			continue
		}
		if t.cost <= l.free() && looked < maxWalk {
			return fmt.Sprintf("%d are free, and %s waits for %d at %d", l.free(), t.instance, t.cost, place)
		}
		return ""
	}
	return ""
}
