package admit

import "time"

// first returns the first in line who waits for nothing but room, or whose time is up;
// nil if there is nobody. Who waits for an end of his own caller's calls is passed by.
func (m *Machine) first(now time.Time) *Waiter {
	w := m.line.head
	for w != nil && m.capped(w) && w.until.After(now) {
		w = w.next
	}
	return w
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
	if w := m.first(now); w != nil && !w.until.After(now) {
		m.dispatch(now)
	}
}

// dispatch starts whoever is first and fits, in order, and passes over
// those whose time is up. The limiter's word about one goes for the next.
func (m *Machine) dispatch(now time.Time) {
	for w := m.first(now); w != nil; w = m.first(now) {
		if m.follow(now) {
			continue // it may have been refused by that
		}
		switch {
		case !w.until.After(now):
			m.decide(now, w, m.late(w))
		case w.Cost() <= m.room():
			m.decide(now, w, Granted)
		default:
			return
		}
	}
}

// decide takes w out of the line with a verdict.
func (m *Machine) decide(now time.Time, w *Waiter, v Verdict) {
	m.line.remove(w)
	w.caller.leavesLine(w.Cost())
	if w.over {
		m.overs--
	}
	w.verdict, w.waited = v, max(0, now.Sub(w.arrived))
	if m.decidedLast == nil {
		m.decided = w
	} else {
		m.decidedLast.next = w
	}
	m.decidedLast = w
	if w.ask {
		m.ledger.asking--
	}
	if v == Granted {
		m.start(now, w.caller, w.Cost(), w.link, w.waited, w.deadline())
	} else {
		m.forget(w.caller)
		m.counts.Decisions[v]++
		if m.cfg.Limiter != nil {
			m.observe(now, &Observation{Kind: Left, Cost: w.Cost(), Waited: w.waited, Deadline: w.deadline()})
		}
	}
	w.gauge = m.Gauge()
}

func (m *Machine) start(now time.Time, c *Caller, cost int, link bool, waited time.Duration, deadline time.Time) {
	c.starts(cost)
	m.inFlight += cost
	m.peak = max(m.peak, m.inFlight)
	m.calls++
	m.counts.Granted++
	if !link {
		m.counts.Decisions[Granted]++
	}
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Started, Cost: cost, Waited: waited, Deadline: deadline})
	}
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
}
