package admit

import (
	"math"
	"time"
)

// demand measures what is asked of a machine whose line has no bound of its own: by how
// much more is offered than can start, and for how much of the time somebody waits. Both
// have a memory of one second: half of it sees a standing line in what is a burst, twice
// it lets callers wait in vain for as long again when one begins.
type demand struct {
	since   time.Time // up to where time was counted
	waiting bool      // from then on
	waited  float64   // the part of the time in which somebody waited
	started float64   // units; of those offered each lane has its own
}

// advance lets the memory fade up to now. It comes before whatever is counted, so that it
// makes no difference how many events there are.
func (m *Machine) advance(now time.Time) {
	if !m.openEnded() {
		return
	}
	d := &m.demand
	dt := now.Sub(d.since)
	if dt > 0 && dt < anotherClock {
		keep := fades(dt.Seconds())
		d.waited *= keep
		if d.waiting {
			d.waited += 1 - keep
		}
		d.started *= keep
		for _, l := range m.lanes {
			l.offered *= keep
		}
	}
	if dt > 0 || dt < -anotherClock {
		d.since = now
	}
}

// fades returns e^-t. For up to a millisecond four terms of its series are exact to
// thirteen digits, and take no time.
func fades(t float64) float64 {
	if t < 1e-3 {
		return 1 - t*(1-t/2*(1-t/3))
	}
	return math.Exp(-t)
}

// standing is the part of the time, with somebody in line, from which on that is no
// burst that passes. With .35 it is one after .4 s of waiting, with .95 after 3 s.
const standing = 0.7

// idle is how often a backend may find nobody in a line that stands, and costs that much
// of its throughput. Half of it makes lines longer by one place in seven at 2 × the load,
// twice it shorter by as much.
const idle = 0.002

// enough returns how many calls in line, of one's own rank and above, are enough to keep
// a backend busy to which ρ times as much is offered as it can start: that of M/M/1/K
// whose P[idle] = (ρ−1) ÷ (ρ^(K+1) − 1) is at most .002. Longer lines only make their
// callers wait. False: as many as there are, for not more is offered than can start, or
// this is a burst.
func (m *Machine) enough(l *Lane) (int, bool) {
	if m.demand.waited < standing || m.demand.started <= 0 {
		return 0, false
	}
	offered := 0.0
	for _, other := range m.lanes {
		if other.Rank <= l.Rank {
			offered += other.offered
		}
	}
	rho := offered / m.demand.started
	if rho <= 1.001 { // from there on it is a line of four hundred
		return 0, false
	}
	return int(math.Ceil(math.Log1p((rho-1)/idle) / math.Log(rho))), true
}

// openEnded reports whether there is a line, and nobody has said how long it may be.
func (m *Machine) openEnded() bool { return m.cfg.MaxWait > 0 && m.cfg.MaxWaiting == 0 }

func (m *Machine) forgetDemand() {
	m.demand = demand{}
	for _, l := range m.lanes {
		l.offered = 0
	}
}

// Missed counts calls, of one unit and no lane, that were refused by what
// [Machine.Refuses] had said.
func (m *Machine) Missed(n uint64) {
	m.rest.offered += float64(n)
	m.rest.comes(m.rate.since, int(n))
}
