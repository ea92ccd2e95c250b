package admit

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// modelLanes is what the model knows of lanes, by name, and of what is asked.
type modelLanes struct {
	of  map[string]*modelLane
	log []modelDemand // in order
}

type modelLane struct {
	LaneConfig
	debt      int
	refusedAt time.Time
}

// modelDemand is one thing of three: units that are offered in a lane, units that start,
// or a moment after which somebody waits or nobody does.
type modelDemand struct {
	lane             string
	offered, started int
	at               time.Time
	waiting          bool
}

func (m *model) setLanes(configs []LaneConfig) {
	for name := range m.lanes.of {
		if name != "" && !slices.ContainsFunc(configs, func(c LaneConfig) bool { return c.Name == name }) {
			delete(m.lanes.of, name)
			for i := range m.running {
				if m.running[i].lane == name {
					m.running[i].lane = ""
				}
			}
			for _, w := range m.line {
				if w.lane == name {
					w.lane = ""
				}
			}
		}
	}
	for _, c := range configs {
		if m.lanes.of[c.Name] == nil {
			m.lanes.of[c.Name] = &modelLane{}
		}
		m.lanes.of[c.Name].LaneConfig = c
	}
}

func (m *model) rank(lane string) int {
	if lane == "" {
		return math.MaxInt
	}
	return m.lanes.of[lane].Rank
}

func (m *model) unitsOf(lane string) (n int) {
	for _, c := range m.running {
		if c.lane == lane {
			n += c.cost
		}
	}
	return n
}

func (m *model) waitingOf(lane string) (all []*modelWaiter) {
	for _, w := range m.line {
		if w.lane == lane {
			all = append(all, w)
		}
	}
	return all
}

func (m *model) reserved(lane string, limit int) int {
	n := m.lanes.of[lane].Reserved
	if limit < m.cfg.Limit {
		n = n * limit / m.cfg.Limit
	}
	return n
}

func (m *model) most(lane string, limit int) int {
	n := limit
	for other := range m.lanes.of {
		if other != lane {
			n -= m.reserved(other, limit)
		}
	}
	if share := m.lanes.of[lane].MaxShare; share > 0 {
		n = min(n, max(1, int(share*float64(limit))))
	}
	return n
}

// fits: what is free, without what others have kept and not in use, or what one's own
// lane has kept.
func (m *model) fits(lane string, cost int, blocked bool) bool {
	free := min(m.limit, m.slots()) - m.inFlight()
	if cost > free {
		return false
	}
	if kept := m.reserved(lane, m.limit) - m.unitsOf(lane); cost <= kept {
		return true
	}
	for other := range m.lanes.of {
		if other != lane {
			free -= max(0, m.reserved(other, m.limit)-m.unitsOf(other))
		}
	}
	return !blocked && cost <= free
}

func (m *model) laneFull(lane string, cost int) bool {
	return m.lanes.of[lane].MaxShare > 0 && m.unitsOf(lane)+cost > m.most(lane, m.limit)
}

// before says who goes first: negative if a does.
func (m *model) before(a, b *modelWaiter) int {
	yes := func(x bool) int {
		if x {
			return 0
		}
		return 1
	}
	short := func(w *modelWaiter) bool {
		share := m.lanes.of[w.lane].Share
		return share > 0 && float64(m.unitsOf(w.lane)+w.cost) <= share*float64(m.limit)
	}
	due := func(w *modelWaiter) bool { return m.lanes.of[w.lane].debt >= turn*w.cost }
	return cmp.Or(
		cmp.Compare(yes(due(a)), yes(due(b))),
		cmp.Compare(yes(short(a)), yes(short(b))),
		cmp.Compare(m.rank(a.lane), m.rank(b.lane)),
		cmp.Compare(a.number, b.number),
	)
}

// heads are the first of each lane, those who wait for their own callers apart, in the
// order in which they go.
func (m *model) heads(now time.Time) (heads []*modelWaiter) {
	for lane := range m.lanes.of {
		for _, w := range m.waitingOf(lane) {
			if !m.capped(w) || !now.Before(w.until) {
				heads = append(heads, w)
				break
			}
		}
	}
	slices.SortFunc(heads, m.before)
	return heads
}

func (m *model) next(now time.Time) *modelWaiter {
	heads := m.heads(now)
	ranked := slices.Clone(heads)
	slices.SortStableFunc(ranked, func(a, b *modelWaiter) int { return cmp.Compare(m.order(a.lane), m.order(b.lane)) })
	for _, w := range ranked {
		if !now.Before(w.until) {
			return w
		}
	}
	blocked := false
	for _, w := range heads {
		if m.laneFull(w.lane, w.cost) {
			continue
		}
		if m.fits(w.lane, w.cost, blocked) {
			return w
		}
		blocked = true
	}
	return nil
}

// order is a lane's place among the lanes: by rank, then as they were configured.
func (m *model) order(lane string) int {
	var names []string
	for _, c := range m.cfg.Lanes {
		names = append(names, c.Name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return m.rank(a) - m.rank(b) })
	if lane == "" {
		return len(names)
	}
	return slices.Index(names, lane)
}

func (m *model) mayStart(now time.Time, lane string, cost int) bool {
	me := &modelWaiter{lane: lane, cost: cost, number: math.MaxUint64}
	blocked := false
	for _, w := range m.heads(now) {
		if w.lane == lane {
			return false
		}
		if !m.laneFull(w.lane, w.cost) && m.before(w, me) < 0 {
			blocked = true
		}
	}
	return !m.laneFull(lane, cost) && m.fits(lane, cost, blocked)
}

func (m *model) waits(now time.Time) bool {
	return slices.ContainsFunc(m.heads(now), func(w *modelWaiter) bool { return !m.laneFull(w.lane, w.cost) })
}

// passOver counts a start for the lanes that want to run.
func (m *model) passOver(now time.Time, lane string, cost int) {
	if len(m.lanes.of) == 1 {
		return
	}
	for name, l := range m.lanes.of {
		waiting := m.waitingOf(name)
		head := 1
		if len(waiting) > 0 {
			head = waiting[0].cost
		}
		wants := len(waiting) > 0 || !l.refusedAt.IsZero() && now.Sub(l.refusedAt) < memory
		switch {
		case name == lane:
			l.debt = max(0, l.debt-turn*cost)
		case wants:
			l.debt = min(l.debt+cost, turn*head)
		}
	}
}

func (m *model) ahead(lane string, cost int) (n int) {
	if m.lanes.of[lane].debt >= turn*cost {
		return len(m.waitingOf(lane))
	}
	for _, w := range m.line {
		if m.rank(w.lane) <= m.rank(lane) {
			n++
		}
	}
	return n
}

func (m *model) crowded(lane string, cost, waiting, ahead int) bool {
	switch {
	case waiting >= m.maxWaiting():
		return true
	case m.cfg.MaxWait == 0 || m.cfg.MaxWaiting > 0:
		return false
	case m.lanes.of[lane].debt >= turn*cost && len(m.waitingOf(lane)) == 0:
		return false
	}
	return float64(ahead) >= m.enough(lane)
}

func (m *model) seat(w *modelWaiter) bool {
	return !m.crowded(w.lane, w.cost, len(m.line), m.ahead(w.lane, w.cost)) || m.yields(w) != nil
}

func (m *model) yields(w *modelWaiter) *modelWaiter {
	turnIs := m.lanes.of[w.lane].debt >= turn*w.cost && len(m.waitingOf(w.lane)) == 0
	var lowest []*modelWaiter
	for lane, l := range m.lanes.of {
		waiting := m.waitingOf(lane)
		if lane == w.lane || len(waiting) == 0 || len(waiting) == 1 && l.debt >= turn*waiting[0].cost {
			continue
		}
		if m.rank(lane) > m.rank(w.lane) || turnIs {
			if lowest == nil || m.order(lane) > m.order(lowest[0].lane) {
				lowest = waiting
			}
		}
	}
	if lowest != nil {
		return lowest[len(lowest)-1]
	}
	if !m.cfg.Fair || w.who == "" {
		return nil
	}
	has := func(who string) int { running, waiting := m.has(who); return running + waiting }
	var most *modelWaiter
	for _, other := range slices.Backward(m.waitingOf(w.lane)) {
		if other.who != "" && (most == nil || has(other.who) > has(most.who)) {
			most = other
		}
	}
	if most == nil || has(most.who) <= has(w.who)+w.cost {
		return nil
	}
	return most
}

// sit puts a call in line, in somebody else's place if need be.
func (m *model) sit(now time.Time, w *modelWaiter) {
	if m.crowded(w.lane, w.cost, len(m.line), m.ahead(w.lane, w.cost)) {
		if out := m.yields(w); out != nil && out.lane == w.lane {
			m.decide(now, out, Capped)
		} else if out != nil {
			m.decide(now, out, Shed)
		}
	}
	w.over = m.over(w.cost, w.who)
	m.ledger.joined++
	w.number = m.ledger.joined
	m.line = append(m.line, w)
	lower := slices.SortedFunc(maps.Keys(m.lanes.of), func(a, b string) int { return m.order(b) - m.order(a) })
	for _, lane := range lower {
		for m.rank(lane) > m.rank(w.lane) {
			waiting := m.waitingOf(lane)
			if len(waiting) == 0 || !m.crowded(lane, waiting[0].cost, 0, m.ahead(lane, waiting[0].cost)-1) {
				break
			}
			m.decide(now, waiting[len(waiting)-1], Shed)
		}
	}
	if len(m.lanes.of) > 1 || m.cfg.Fair {
		m.dispatch(now)
	}
}

// enough is computed from the whole log.
func (m *model) enough(lane string) float64 {
	fades := func(at time.Time) float64 { return math.Exp(-m.now.Sub(at).Seconds()) }
	offered, started, waited := 0.0, 0.0, 0.0
	var since time.Time
	for _, e := range m.lanes.log {
		if e.offered > 0 && m.lanes.of[e.lane] != nil && m.rank(e.lane) <= m.rank(lane) {
			offered += float64(e.offered) * fades(e.at)
		}
		started += float64(e.started) * fades(e.at)
		if e.offered+e.started == 0 {
			if !since.IsZero() {
				waited += fades(e.at) - fades(since)
			}
			since = time.Time{}
			if e.waiting {
				since = e.at
			}
		}
	}
	if !since.IsZero() {
		waited += 1 - fades(since)
	}
	if rho := offered / started; waited >= standing && started > 0 && rho > 1.001 {
		return math.Ceil(math.Log(1+(rho-1)/idle) / math.Log(rho))
	}
	return math.Inf(1)
}
