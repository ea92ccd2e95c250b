package admit

import (
	"math"
	"slices"
	"time"
)

// model is what the machine is supposed to do, written as plainly as possible:
// slices, no lists, everything computed afresh from the history.
type model struct {
	cfg      Config
	limit    int
	draining bool
	ledger   modelLedger
	running  []modelCall
	line     []*modelWaiter
	counts   Counts
	decided  []*modelWaiter

	lanes modelLanes
	now   time.Time

	spans []modelSpan // full time and departures, in order
	full  bool
	since time.Time
}

// modelCall is one that runs.
type modelCall struct {
	cost int
	who  string // its caller; empty: not known
	lane string // empty: it has none
}

type modelWaiter struct {
	w       *Waiter // the machine's
	cost    int
	who     string
	lane    string
	over    bool // more than its caller may have, when it came
	link    bool
	ask     bool
	number  uint64
	arrived time.Time
	until   time.Time
	expiry  Verdict
	verdict Verdict
	waited  time.Duration
}

type modelSpan struct {
	seconds   float64 // of full time
	departure bool    // rather than time
}

func newModel(c Config) *model {
	m := &model{cfg: c, limit: c.Limit}
	m.lanes.of = map[string]*modelLane{"": {}}
	m.setLanes(c.Lanes)
	return m
}

func (m *model) inFlight() (units int) {
	for _, c := range m.running {
		units += c.cost
	}
	return units
}

func (m *model) maxWaiting() int {
	if m.cfg.MaxWaiting != 0 {
		return m.cfg.MaxWaiting
	}
	n := 2 * m.limit
	if mu, known := m.mu(); known && m.limit > 0 {
		n = max(n, int(math.Ceil(mu*m.cfg.MaxWait.Seconds())))
	}
	return n
}

func (m *model) arrive(now time.Time, a Arrival, who, lane string) (Verdict, *modelWaiter) {
	if w := m.next(now); w != nil && !w.until.After(now) {
		m.dispatch(now)
	}
	m.lanes.log = append(m.lanes.log, modelDemand{at: now, lane: lane, offered: a.Cost})
	v, w := m.judge(now, a, who, lane)
	switch v {
	case Granted:
		m.start(now, a.Cost, a.Link, who, lane)
	case Queued:
		m.sit(now, w)
	default:
		m.counts.Decisions[v]++
		m.lanes.of[lane].refusedAt = now
	}
	m.settle(now)
	return v, w
}

func (m *model) judge(now time.Time, a Arrival, who, lane string) (Verdict, *modelWaiter) {
	over := m.over(a.Cost, who)
	if over && a.Cost > m.cfg.PerCaller {
		return TooLarge, nil
	}
	if a.Cost > m.most(lane, m.cfg.Limit) && a.Cost > m.most(lane, m.limit) {
		return TooLarge, nil
	}
	if m.draining {
		return Draining, nil
	}
	if !a.Deadline.IsZero() && !now.Before(a.Deadline) {
		return Deadline, nil
	}
	if a.Cost > m.most(lane, m.limit) {
		return Busy, nil
	}
	if m.ledger.refuse {
		return Store, nil
	}
	if !over && m.mayStart(now, lane, a.Cost) {
		return Granted, nil
	}
	w := &modelWaiter{cost: a.Cost, who: who, lane: lane, over: over, link: a.Link, arrived: now, until: now.Add(m.cfg.MaxWait), expiry: Timeout}
	if !a.Until.IsZero() {
		w.until = a.Until
	}
	if over && m.cfg.Ledger {
		return Capped, nil
	}
	if m.cfg.Ledger && (a.NoWait || m.cfg.MaxWait == 0 && a.Until.IsZero()) {
		w.ask, w.until, w.expiry = true, now.Add(50*time.Millisecond), Store
		if m.ledger.away || m.inFlight()+a.Cost > m.limit || len(m.line) > 0 && m.line[0].number <= m.ledger.answered {
			return Busy, nil
		}
	}
	if !a.Deadline.IsZero() {
		last := a.Deadline
		if mu, known := m.mu(); known { // half of what a unit is held
			last = last.Add(-time.Duration(float64(m.limit)/mu*1e9) / 2)
		}
		if last.Before(w.until) {
			w.until, w.expiry = last, Deadline
		}
	}
	seat := m.seat(w)
	overs := 0
	for _, w := range m.line {
		if w.over {
			overs++
		}
	}
	if over && (a.NoWait || !seat || 2*overs >= m.maxWaiting()) {
		return Capped, nil
	}
	if a.NoWait && !w.ask || !seat {
		return Busy, nil
	}
	if !now.Before(w.until) {
		if w.expiry == Timeout && over {
			return Capped, nil
		}
		if w.expiry == Deadline {
			return Deadline, nil
		}
		return Busy, nil
	}
	first := m.cfg.Ledger && len(m.line) == 0 // the ledger must hear of somebody
	if m.cfg.MaxWaiting == 0 && !w.ask && !first && !over && m.hopeless(m.ahead(lane, a.Cost)+1, w.until.Sub(now)) {
		return Busy, nil
	}
	return Queued, w
}

// callerOf says under what name a caller's next call counts.
func (m *model) callerOf(name string) string {
	var known []string
	for _, c := range m.running {
		known = append(known, c.who)
	}
	for _, w := range m.line {
		known = append(known, w.who)
	}
	if name == "" || slices.Contains(known, name) {
		return name
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(who string) bool { return who == "" || who == "shared" })
	if len(known) >= m.cfg.MaxCallers {
		return "shared"
	}
	return name
}

// has returns the units of a caller that run, and those in line.
func (m *model) has(who string) (running, waiting int) {
	for _, c := range m.running {
		if c.who == who {
			running += c.cost
		}
	}
	for _, w := range m.line {
		if w.who == who {
			waiting += w.cost
		}
	}
	return running, waiting
}

func (m *model) over(cost int, who string) bool {
	running, waiting := m.has(who)
	return m.cfg.PerCaller > 0 && who != "" && running+waiting+cost > m.cfg.PerCaller
}

func (m *model) capped(w *modelWaiter) bool {
	running, _ := m.has(w.who)
	return m.cfg.PerCaller > 0 && w.who != "" && running+w.cost > m.cfg.PerCaller
}

func (m *model) late(w *modelWaiter) Verdict {
	if w.expiry == Timeout && m.capped(w) {
		return Capped
	}
	return w.expiry
}

// configure puts another configuration in force; the limit comes after.
func (m *model) configure(c Config) {
	openEnded := func(c Config) bool { return c.MaxWait > 0 && c.MaxWaiting == 0 }
	if openEnded(m.cfg) != openEnded(c) {
		m.lanes.log = nil
	}
	m.cfg = c
	m.setLanes(c.Lanes)
}

func (m *model) start(now time.Time, cost int, link bool, who, lane string) {
	m.lanes.log = append(m.lanes.log, modelDemand{at: now, started: cost})
	m.passOver(now, lane, cost)
	m.running = append(m.running, modelCall{cost, who, lane})
	m.counts.Granted++
	if !link {
		m.counts.Decisions[Granted]++
	}
}

func (m *model) stop(c modelCall) {
	i := slices.Index(m.running, c)
	m.running = slices.Delete(m.running, i, i+1)
	m.counts.Released++
}

func (m *model) decide(now time.Time, w *modelWaiter, v Verdict) {
	i := slices.Index(m.line, w)
	m.line = slices.Delete(m.line, i, i+1)
	w.verdict, w.waited = v, max(0, now.Sub(w.arrived))
	m.decided = append(m.decided, w)
	if v == Granted {
		m.start(now, w.cost, w.link, w.who, w.lane)
	} else {
		m.lanes.of[w.lane].refusedAt = now
		m.counts.Decisions[v]++
	}
}

func (m *model) dispatch(now time.Time) {
	for w := m.next(now); w != nil; w = m.next(now) {
		if now.Before(w.until) {
			m.decide(now, w, Granted)
		} else {
			m.decide(now, w, m.late(w))
		}
	}
}

func (m *model) release(now time.Time, c modelCall) {
	if m.full {
		m.passes(now)
		m.spans = append(m.spans, modelSpan{departure: true})
	}
	m.unwind(now, c)
}

func (m *model) unwind(now time.Time, c modelCall) {
	m.stop(c)
	m.giveBack()
	m.dispatch(now)
	m.settle(now)
}

func (m *model) quit(now time.Time, w *modelWaiter, v Verdict) bool {
	if w.verdict != Queued {
		return false
	}
	m.decide(now, w, v)
	m.dispatch(now)
	m.settle(now)
	return true
}

func (m *model) disown(now time.Time, w *modelWaiter, v Verdict) {
	if w.verdict != Granted {
		return
	}
	w.verdict = v
	if !w.link {
		m.counts.Decisions[Granted]--
	}
	m.counts.Decisions[v]++
	m.unwind(now, modelCall{w.cost, w.who, w.lane})
}

func (m *model) setLimit(now time.Time, n int) {
	m.limit = n
	for _, w := range slices.Clone(m.line) {
		if w.cost > m.most(w.lane, n) {
			m.decide(now, w, Busy)
		}
	}
	m.dispatch(now)
	m.settle(now)
}

func (m *model) drain(now time.Time) {
	m.draining = true
	for len(m.line) > 0 {
		m.decide(now, m.line[0], Draining)
	}
	m.settle(now)
}

// passes counts the time up to now, if it was full.
func (m *model) passes(now time.Time) {
	if m.full && now.After(m.since) {
		m.spans = append(m.spans, modelSpan{seconds: now.Sub(m.since).Seconds()})
	}
	m.since = now
}

func (m *model) settle(now time.Time) {
	m.passes(now)
	measures := m.cfg.MaxWait > 0 || m.cfg.Measure
	m.full = measures && (m.waits(now) || m.inFlight() >= m.limit)
	m.lanes.log = append(m.lanes.log, modelDemand{at: now, waiting: len(m.line) > 0})
}

// hopeless computes the chance from the definition.
func (m *model) hopeless(place int, patience time.Duration) bool {
	mu, known := m.mu()
	return known && naiveTail(mu*patience.Seconds(), place) < chance
}

// mu is computed from the whole history.
func (m *model) mu() (perSecond float64, known bool) {
	var departures, seconds float64
	weight := 1.0
	for _, s := range slices.Backward(m.spans) {
		seconds += s.seconds * weight
		if s.departure {
			departures += weight
			weight *= 1 - 1.0/rateMemory
		}
	}
	if departures < rateKnown || seconds <= 0 {
		return 0, false
	}
	return departures / seconds, true
}

// naiveTail is P[Poisson(mean) ≥ k], one minus the sum of the terms below.
func naiveTail(mean float64, k int) float64 {
	below := 0.0
	for i := range k {
		lg, _ := math.Lgamma(float64(i) + 1)
		below += math.Exp(float64(i)*math.Log(mean) - mean - lg)
	}
	return 1 - below
}
