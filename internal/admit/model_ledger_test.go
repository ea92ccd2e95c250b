package admit

import (
	"slices"
	"time"
)

// modelLedger is what the model knows of an outer ledger.
type modelLedger struct {
	lent, back       int
	returning        bool
	over             bool
	away, refuse     bool
	alone            int
	joined, answered uint64
}

func (m *model) slots() int {
	switch {
	case !m.cfg.Ledger:
		return unlimited
	case m.ledger.over:
		return 0
	case m.ledger.away:
		return m.ledger.alone
	}
	return m.ledger.lent
}

func (m *model) idle() int { return max(0, m.ledger.lent-m.inFlight()) }

func (m *model) giveBack() {
	if m.ledger.returning && !m.ledger.away {
		n := m.idle()
		m.ledger.lent -= n
		m.ledger.back += n
	}
}

// fed is the end of whatever changes the slots.
func (m *model) fed(now time.Time) {
	m.dispatch(now)
	m.giveBack()
	m.settle(now)
}

func (m *model) feed(now time.Time, n int) {
	m.ledger.lent += n
	m.fed(now)
}

func (m *model) take(now time.Time, n int) int {
	n = min(n, m.idle())
	m.ledger.lent -= n
	m.fed(now)
	return n
}

func (m *model) giveBackOrNot(now time.Time, on bool) {
	m.ledger.returning = on
	if !on {
		m.ledger.lent, m.ledger.back = m.ledger.lent+m.ledger.back, 0
	}
	m.fed(now)
}

func (m *model) hear(now time.Time, last uint64) {
	m.ledger.answered = last
	m.refuseAsking(now, last)
}

func (m *model) refuseAsking(now time.Time, last uint64) {
	for _, w := range slices.Clone(m.line) {
		if w.ask && w.number <= last {
			m.decide(now, w, Busy)
		}
	}
	m.dispatch(now)
	m.settle(now)
}

func (m *model) renumber() {
	for _, w := range m.line {
		m.ledger.joined++
		w.number = m.ledger.joined
	}
}

func (m *model) goAlone(now time.Time, n int, refuse bool) {
	m.ledger.away, m.ledger.refuse, m.ledger.over, m.ledger.alone = true, refuse, false, n
	if refuse {
		m.ledger.alone = 0
		for len(m.line) > 0 {
			m.decide(now, m.line[0], Store)
		}
	}
	m.fed(now)
	m.refuseAsking(now, m.ledger.joined)
}

func (m *model) retract(now time.Time, c modelCall) {
	m.counts.Decisions[Granted]--
	m.unwind(now, c)
}
