package admit

import "time"

// first returns the first in a lane's line who waits for nothing but room, or whose time
// is up; nil if there is nobody. Who waits for an end of his own caller's calls is passed
// by.
func (m *Machine) first(now time.Time, l *Lane) *Waiter {
	w := l.line.head
	for w != nil && m.capped(w) && w.until.After(now) {
		w = w.links[byLane].next
	}
	return w
}

// next returns who in line is decided next: somebody whose time is up, or who may run
// now; nil if that is nobody. Who goes first and does not fit keeps the others from
// passing, but for those of a lane that keeps enough for them.
func (m *Machine) next(now time.Time) *Waiter {
	if m.line.len == 0 {
		return nil
	}
	var heads [MaxLanes]*Waiter
	waiting := 0
	for i, l := range m.lanes {
		w := m.first(now, l)
		switch {
		case w == nil:
			continue
		case !w.until.After(now):
			return w
		}
		heads[i] = w
		waiting++
	}
	for blocked := false; waiting > 0; waiting-- {
		i := m.foremost(&heads)
		w := heads[i]
		heads[i] = nil
		switch l, cost := w.lane, w.Cost(); {
		case m.ownBound(l, cost):
		case m.fits(l, cost, blocked):
			return w
		default:
			blocked = true
		}
	}
	return nil
}

// foremost returns the lane whose first goes before the others.
func (m *Machine) foremost(heads *[MaxLanes]*Waiter) int {
	best := -1
	for i := range m.lanes {
		if w := heads[i]; w != nil && (best < 0 || m.precedes(w.bid(), heads[best].bid())) {
			best = i
		}
	}
	return best
}

// fits reports whether there is room for a call of a lane: of all that is nobody
// else's, or, while somebody goes before it, of what is kept for the lane.
func (m *Machine) fits(l *Lane, cost int, blocked bool) bool {
	return cost <= m.room() && (cost <= l.spare() || !blocked && cost <= m.roomOf(l))
}

// mayStart reports whether an arrival may run at once: there is room, and nobody in line
// goes before it.
func (m *Machine) mayStart(now time.Time, l *Lane, cost int) bool {
	if cost > m.room() {
		return false
	}
	if m.line.len == 0 && len(m.lanes) == 1 {
		return true
	}
	me := bid{l, cost, ^uint64(0)}
	blocked := false
	for _, other := range m.lanes {
		w := m.first(now, other)
		switch {
		case w == nil, other != l && m.ownBound(other, w.Cost()):
		case other == l:
			return false
		default:
			blocked = blocked || m.precedes(w.bid(), me)
		}
	}
	return !m.ownBound(l, cost) && m.fits(l, cost, blocked)
}

// waits reports whether somebody in line waits for room.
func (m *Machine) waits(now time.Time) bool {
	if m.line.len == 0 {
		return false
	}
	for _, l := range m.lanes {
		if w := m.first(now, l); w != nil && !m.ownBound(l, w.Cost()) {
			return true
		}
	}
	return false
}

// late returns what w is told when its time is up.
func (m *Machine) late(w *Waiter) Verdict {
	if w.expiry == Timeout && m.capped(w) {
		return Capped
	}
	return w.expiry
}

// sweep expires those at the head whose time is up although nobody has said so
// yet, so that they neither run nor take up a place. Whoever stands behind a
// patient head and has less patience is left to [Machine.ExpireDue].
func (m *Machine) sweep(now time.Time) {
	if w := m.next(now); w != nil && !w.until.After(now) {
		m.dispatch(now)
	}
}

// dispatch starts whoever goes first and fits, in order, and passes over
// those whose time is up. The limiter's word about one goes for the next.
func (m *Machine) dispatch(now time.Time) {
	for w := m.next(now); w != nil; w = m.next(now) {
		switch {
		case m.follow(now): // it may have been refused by that
		case !w.until.After(now):
			m.decide(now, w, m.late(w))
		default:
			m.decide(now, w, Granted)
		}
	}
}

// decide takes w out of the line with a verdict.
func (m *Machine) decide(now time.Time, w *Waiter, v Verdict) {
	m.line.remove(w)
	w.lane.line.remove(w)
	w.caller.leavesLine(w.Cost())
	if w.over {
		m.overs--
	}
	w.verdict, w.waited = v, max(0, now.Sub(w.arrived))
	if m.decidedLast == nil {
		m.decided = w
	} else {
		m.decidedLast.links[byArrival].next = w
	}
	m.decidedLast = w
	if w.ask {
		m.ledger.asking--
	}
	if v == Granted {
		m.start(now, w.Claim(), w.link, w.waited, w.deadline())
	} else {
		m.forget(w.caller)
		m.counts.Decisions[v]++
		w.lane.refuse(now)
		if m.cfg.Limiter != nil {
			m.observe(now, &Observation{Kind: Left, Cost: w.Cost(), Waited: w.waited, Deadline: w.deadline()})
		}
	}
	w.gauge = m.Gauge()
}

func (m *Machine) start(now time.Time, c Claim, link bool, waited time.Duration, deadline time.Time) {
	c.Caller.starts(c.Cost)
	l := m.lane(c.Lane)
	l.units += c.Cost
	l.granted++
	if len(m.lanes) > 1 {
		m.took(now, l, c.Cost)
	}
	m.inFlight += c.Cost
	m.peak = max(m.peak, m.inFlight)
	m.calls++
	m.counts.Granted++
	m.advance(now)
	m.demand.started += float64(c.Cost)
	if !link {
		m.counts.Decisions[Granted]++
	}
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Started, Cost: c.Cost, Waited: waited, Deadline: deadline})
	}
}

// ends counts the end of a call that had started.
func (m *Machine) ends(c Claim) {
	c.Caller.ends(c.Cost)
	m.forget(c.Caller)
	m.lane(c.Lane).units -= c.Cost
	m.inFlight -= c.Cost
	m.calls--
	m.counts.Released++
}

// move lets the limiter's wish take effect, and those in whom it lets in. It
// ends: only starts and departures from the line make the limiter speak again, and
// each takes one waiter out of the line.
func (m *Machine) move(now time.Time) {
	for m.follow(now) {
		m.dispatch(now)
	}
}

// settle ends an event: from here to the next one the gate is full or it is not.
func (m *Machine) settle(now time.Time) {
	m.move(now)
	m.rate.advance(now, m.measures() && m.full(now))
	m.advance(now)
	m.demand.waiting = m.line.len > 0
}
