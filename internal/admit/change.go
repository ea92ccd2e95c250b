package admit

import (
	"fmt"
	"strconv"
	"time"
)

// Count counts one decision that was made elsewhere: a chain's, once every gate
// of it has granted, or a call that had left before it arrived.
func (m *Machine) Count(now time.Time, v Verdict) {
	m.counts.Decisions[v]++
	m.note(now, "count", v.String())
}

// SetLimit puts a limit in force; 0 closes. Calls that run go on. If it grew,
// exactly the difference starts; if it shrank, nothing starts until there is
// room, and whoever costs more than the new limit is refused at once.
func (m *Machine) SetLimit(now time.Time, n int) {
	m.setLimit(now, n)
	m.note(now, "limit", strconv.Itoa(n))
}

func (m *Machine) setLimit(now time.Time, n int) {
	m.want = n
	m.limit = n
	m.shareOut()
	m.refuseTooBig(now)
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Changed})
	}
	m.follow(now)
	m.dispatch(now)
	m.settle(now)
}

func (m *Machine) applyLimit(now time.Time, n int) {
	shrank := n < m.limit
	m.limit = n
	m.shareOut()
	if shrank {
		m.refuseTooBig(now)
	}
}

// refuseTooBig refuses whom the limit, or his lane's part of it, no longer lets run.
func (m *Machine) refuseTooBig(now time.Time) {
	for w := m.line.head; w != nil; {
		behind := w.Next()
		if w.Cost() > w.lane.most {
			m.decide(now, w, Busy)
		}
		w = behind
	}
}

// Configure puts another configuration in force, with the given limit; who runs
// goes on, who waits keeps place and patience.
func (m *Machine) Configure(now time.Time, c Config, limit int) {
	was := m.openEnded()
	m.cfg = c
	if m.openEnded() != was {
		m.forgetDemand()
	}
	m.setLanes(c.Lanes)
	m.setLimit(now, limit)
	m.note(now, "configure", fmt.Sprintf("%s now=%d", c.script(), limit))
}

// Drain refuses everybody from now on, those in line at once.
func (m *Machine) Drain(now time.Time) {
	m.draining = true
	for m.line.head != nil {
		m.decide(now, m.line.head, Draining)
	}
	m.settle(now)
	m.note(now, "drain", "")
}

// Resume ends a drain.
func (m *Machine) Resume(now time.Time) {
	m.draining = false
	m.note(now, "resume", "")
}
