package admit

import (
	"math"
	"slices"
	"time"
)

// MaxLanes is how many lanes a machine may have, with the one of calls without a lane.
const MaxLanes = 16

// turn is how many units others start until a lane that wants to run gets one of its own,
// whatever its rank: 2 %. With 25 the highest lane pays 4 % of its starts for each lane
// below it, with 100 a lane with little patience may never see its turn.
const turn = 50

// LaneConfig is one lane: a business process with a rank.
type LaneConfig struct {
	Name     string  // told apart by it
	Rank     int     // 1 goes first; calls without a lane go last
	Reserved int     // units that nobody else may use; fewer in proportion under a lower limit
	Share    float64 // of the limit, that it gets before the others once it waits; 0: none
	MaxShare float64 // of the limit, that it may use if nobody else does; 0: all of it
}

// Lane is a lane of a machine.
type Lane struct {
	LaneConfig
	line      line
	kept      int     // of the limit in force, for this lane alone
	most      int     // units that it may have of that
	mostEver  int     // and of the configured one
	units     int     // in flight
	debt      int     // units that others started while this one wanted to, up to a turn
	offered   float64 // see demand
	granted   uint64
	refused   uint64
	refusedAt time.Time
	book      *book // nil: nobody was refused yet
	newcomers newcomers
	into      *Lane // of one that is no more: whose its calls are now
}

// LaneGauge is what a lane shows at one instant.
type LaneGauge struct {
	LaneConfig
	InFlight int    // units
	Waiting  int    // calls
	Granted  uint64 // leases given, links of chains included
	Refused  uint64 // calls turned away, or gone out of the line
}

// Lanes returns what the lanes show, in the order of their ranks, the one of calls
// without a lane last.
func (m *Machine) Lanes() []LaneGauge {
	all := make([]LaneGauge, len(m.lanes))
	for i, l := range m.lanes {
		all[i] = LaneGauge{l.LaneConfig, l.units, l.line.len, l.granted, l.refused}
	}
	return all
}

// Lane returns the lane of that name, for arrivals; nil, the one of calls without a
// lane, if there is none.
func (m *Machine) Lane(name string) *Lane {
	for _, l := range m.lanes {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Below returns the lane that a call comes in by that was refused before: while others
// wait, one rank below that of calls that come first.
func (m *Machine) Below(l *Lane) *Lane {
	l = m.lane(l)
	if m.line.len > 0 {
		for _, lower := range m.lanes {
			if lower.Rank > l.Rank {
				return lower
			}
		}
	}
	return l
}

// lane returns the lane that stands for l.
func (m *Machine) lane(l *Lane) *Lane {
	switch {
	case l == nil:
		return &m.rest
	case l.into != nil:
		return l.into
	}
	return l
}

// setLanes puts lanes in force. Those of the same name go on; the calls of one that is
// no more are calls without a lane from now on.
func (m *Machine) setLanes(configs []LaneConfig) {
	before := m.lanes
	m.rest.LaneConfig = LaneConfig{Rank: math.MaxInt}
	m.lanes = nil
	for _, c := range configs {
		i := slices.IndexFunc(before, func(l *Lane) bool { return l.Name == c.Name })
		if i < 0 {
			m.lanes = append(m.lanes, &Lane{LaneConfig: c, line: line{by: byLane}})
			continue
		}
		before[i].LaneConfig = c
		m.lanes = append(m.lanes, before[i])
	}
	m.lanes = append(m.lanes, &m.rest)
	slices.SortStableFunc(m.lanes, func(a, b *Lane) int { return a.Rank - b.Rank })
	for _, l := range before {
		if !slices.Contains(m.lanes, l) {
			l.into = &m.rest
			m.rest.units += l.units
		}
	}
	m.shareOut()
	m.rest.line = line{by: byLane}
	for w := m.line.head; w != nil; w = w.Next() {
		if w.lane = m.lane(w.lane); w.lane == &m.rest {
			m.rest.line.push(w)
		}
	}
}

// shareOut works out what of the limit in force is kept for each lane, and the most that
// it may have. A lane keeps what is reserved for it in proportion under a limit that is
// lower than the configured one, so that something is left for the others.
func (m *Machine) shareOut() {
	for _, l := range m.lanes {
		l.kept = m.reserved(l, m.limit)
	}
	for _, l := range m.lanes {
		l.most, l.mostEver = m.mostUnder(l, m.limit), m.mostUnder(l, m.cfg.Limit)
	}
}

func (m *Machine) reserved(l *Lane, limit int) int {
	if limit >= m.cfg.Limit {
		return l.Reserved
	}
	return l.Reserved * limit / m.cfg.Limit
}

func (m *Machine) mostUnder(l *Lane, limit int) int {
	n := limit
	for _, other := range m.lanes {
		if other != l {
			n -= m.reserved(other, limit)
		}
	}
	if l.MaxShare > 0 {
		n = min(n, max(1, int(l.MaxShare*float64(limit))))
	}
	return n
}

// spare returns the units that are kept for a lane and not in use.
func (l *Lane) spare() int { return max(0, l.kept-l.units) }

// roomOf returns the units that a lane may start now, of those that are nobody else's.
func (m *Machine) roomOf(l *Lane) int {
	n := m.room()
	for _, other := range m.lanes {
		if other != l {
			n -= other.spare()
		}
	}
	return n
}

// ownBound reports whether a call has to wait for its own lane, whatever room there is.
func (m *Machine) ownBound(l *Lane, cost int) bool {
	return l.MaxShare > 0 && l.units+cost > l.most
}

// Whose turn it is.

// due reports whether a lane has been passed over for as long as it may be.
func (l *Lane) due(cost int) bool { return l.debt >= turn*cost }

// short reports whether a lane has less than its share, with a call of this cost.
func (m *Machine) short(l *Lane, cost int) bool {
	return l.Share > 0 && float64(l.units+cost) <= l.Share*float64(m.limit)
}

// bid is a call that wants to run.
type bid struct {
	lane   *Lane
	cost   int
	number uint64 // of those in line; later ones have higher ones
}

// precedes reports whether a goes before b: if it is its turn; if its lane has less than
// its share; by rank; in the order of arrival.
func (m *Machine) precedes(a, b bid) bool {
	if x, y := a.lane.due(a.cost), b.lane.due(b.cost); x != y {
		return x
	}
	if x, y := m.short(a.lane, a.cost), m.short(b.lane, b.cost); x != y {
		return x
	}
	if a.lane.Rank != b.lane.Rank {
		return a.lane.Rank < b.lane.Rank
	}
	return a.number < b.number
}

// took counts the start of a call of one lane for those that want to run.
func (m *Machine) took(now time.Time, l *Lane, cost int) {
	for _, other := range m.lanes {
		if other != l && other.wants(now) {
			other.debt = min(other.debt+cost, turn*other.line.headCost())
		}
	}
	l.debt = max(0, l.debt-turn*cost)
}

// refuse notes that a call of the lane was refused on arrival.
func (l *Lane) refuse(now time.Time) {
	l.refused++
	l.refusedAt = now
}

// memory is for how long a lane that nobody waits in is still one that wants to run after
// a refusal, so that its turn comes even if the lanes above leave it no place in line.
const memory = time.Second

func (l *Lane) wants(now time.Time) bool {
	return l.line.len > 0 || !l.refusedAt.IsZero() && now.Sub(l.refusedAt) < memory
}
