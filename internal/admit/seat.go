package admit

import (
	"math"
	"time"
)

// longest bounds a line that has no bound of its own.
const longest = 1 << 20

// MaxWaiting returns the bound of the line in force: the one that is set, or else as many
// calls as leave within a patience, and at least twice the limit.
func (m *Machine) MaxWaiting() int {
	if m.cfg.MaxWaiting > 0 {
		return m.cfg.MaxWaiting
	}
	n := 2 * m.limit
	if mu, known := m.rate.perSecond(); known && m.limit > 0 {
		n = max(n, int(math.Ceil(min(mu*m.cfg.MaxWait.Seconds(), longest))))
	}
	return n
}

// ahead returns how many of those in line go before the next call of a lane.
func (m *Machine) ahead(l *Lane, cost int) int {
	if l.due(cost) {
		return l.line.len
	}
	n := 0
	for _, other := range m.lanes {
		if other.Rank <= l.Rank {
			n += other.line.len
		}
	}
	return n
}

// crowded reports whether there is no place in line for one more call of a lane.
func (m *Machine) crowded(l *Lane, cost, waiting, ahead int) bool {
	if waiting >= m.MaxWaiting() {
		return true
	}
	if !m.openEnded() || l.due(cost) && l.line.len == 0 {
		return false
	}
	k, some := m.enough(l)
	return some && ahead >= k
}

// seat reports whether a call may stand in line: there is a place, or somebody has to
// give his up for it.
func (m *Machine) seat(l *Lane, a Arrival) bool {
	return !m.crowded(l, a.Cost, m.line.len, m.ahead(l, a.Cost)) || m.yields(l, a) != nil
}

// yields returns who gives up his place for a newcomer: the newest of the lowest lane, if
// that is below the newcomer's or if it is the newcomer's turn; else the newest call of
// the caller who has most of those in his lane, if that is more than the newcomer has.
func (m *Machine) yields(l *Lane, a Arrival) *Waiter {
	turn := l.due(a.Cost) && l.line.len == 0
	for i := len(m.lanes) - 1; i >= 0; i-- {
		k := m.lanes[i]
		if k != l && (k.Rank > l.Rank || turn) && k.line.len > 0 && !(k.line.len == 1 && k.due(k.line.headCost())) {
			return k.line.tail
		}
	}
	return m.greediest(l, a)
}

// lookBack is among how many of those who came last in a lane the greediest is looked
// for. Who has most of a line is among them but for bad luck; with half of it bad luck is
// more often, and to look at all of a long line would cost more than a refusal may.
const lookBack = 64

// greediest returns the newest call in a lane's line of the caller who has most, running
// and in line, if with one more the newcomer's caller would still have less.
func (m *Machine) greediest(l *Lane, a Arrival) *Waiter {
	if !m.cfg.Fair || a.Caller == nil {
		return nil
	}
	var most *Waiter
	w := l.line.tail
	for n := 0; n < lookBack && w != nil; n++ {
		if w.caller != nil && (most == nil || w.caller.has() > most.caller.has()) {
			most = w
		}
		w = w.links[byLane].prev
	}
	if most == nil || most.caller.has() <= a.Caller.has()+a.Cost {
		return nil
	}
	return most
}

// makeSeat sends away who gives up his place for a newcomer, if one is needed.
func (m *Machine) makeSeat(now time.Time, l *Lane, a Arrival) {
	if !m.crowded(l, a.Cost, m.line.len, m.ahead(l, a.Cost)) {
		return
	}
	switch out := m.yields(l, a); {
	case out == nil: // nobody has to: it asks a ledger, or waits for its own caller
	case out.lane == l:
		m.decide(now, out, Capped)
	default:
		m.decide(now, out, Shed)
	}
}

// trim sends away the newest of the lanes below l whose place has become too far back.
func (m *Machine) trim(now time.Time, l *Lane) {
	for i := len(m.lanes) - 1; i >= 0 && m.lanes[i].Rank > l.Rank; i-- {
		low := m.lanes[i]
		for low.line.len > 0 && m.crowded(low, low.line.headCost(), 0, m.ahead(low, low.line.headCost())-1) {
			m.decide(now, low.line.tail, Shed)
		}
	}
}
