package simulate

import (
	"time"

	"example.com/forebay/internal/admit"
)

// gate is a [Gate] of one instance: the machine, and when somebody's patience ends.
type gate struct {
	Gate
	sim     *sim
	machine *admit.Machine
	foreign Foreign // decides before the machine, which then lets everybody in; nil: none
	due     *event
	offered uint64 // calls that were put to the machine, chains' later links included
	since   instant
	area    struct{ inFlight, waiting, limit float64 } // × seconds
	tally   gateTally

	foreigners foreignLine
}

func newGate(s *sim, g Gate, instance int) *gate {
	m := &gate{Gate: g, sim: s}
	m.Config.Limiter = nil
	if g.Limiter != nil {
		m.Config.Limiter = g.Limiter(instance)
	}
	if g.Foreign != nil {
		m.foreign, m.foreigners, s.foreign = g.Foreign(instance), foreignLine{}, m
		m.Config = admit.Config{Limit: 1<<20 - 1}
	}
	m.machine = admit.New(s.time(0), m.Config)
	m.due = s.agenda.add(m.expire)
	return m
}

// touch brings the averages up to now; it comes before whatever changes the machine.
func (g *gate) touch() {
	if passed := time.Duration(g.sim.now - g.since).Seconds(); passed > 0 {
		v := g.machine.Gauge()
		if g.foreign != nil {
			v.Limit, v.Waiting = int32(g.foreign.Limit()), int32(len(g.foreigners))
		}
		g.area.inFlight += float64(v.InFlight) * passed
		g.area.waiting += float64(v.Waiting) * passed
		g.area.limit += float64(v.Limit) * passed
		g.since = g.sim.now
	}
}

func (g *gate) expire() {
	g.touch()
	next, ok := g.machine.ExpireDue(g.sim.time(g.sim.now))
	at := never
	if ok {
		at = max(instant(next.Sub(start)), g.sim.now+1)
	}
	g.sim.agenda.set(g.due, at)
	g.settle()
}

// ask puts a call to the gate, which may put it in line. A call that is granted has
// passed; one that is not is told so.
func (g *gate) ask(c *call) (passed bool) {
	if g.foreign != nil && !c.admitted {
		return g.askForeign(c)
	}
	return g.askMachine(c)
}

func (g *gate) askMachine(c *call) (passed bool) {
	g.touch()
	now := g.sim.time(g.sim.now)
	a := admit.Arrival{Claim: admit.Claim{Cost: c.route.cost, Lane: g.machine.Lane(c.route.Lane)}, Until: c.until, NoWait: c.noWait, Link: len(c.route.Gates) > 1}
	if c.crowd.Retries.Marked && c.tries > 1 {
		a.Lane = g.machine.Below(a.Lane)
	}
	if c.crowd.Tells && c.leavesAt != never {
		a.Deadline = g.sim.time(c.leavesAt)
	}
	if c.caller != "" && (g.Config.PerCaller > 0 || g.Config.Fair) {
		a.Caller = g.machine.Caller(c.caller)
	}
	g.offered++
	v := g.machine.Arrive(now, a)
	switch v {
	case admit.Queued:
		c.waiter = admit.Waiter{Owner: c}
		c.waits = g
		c.passed = append(c.passed, pass{gate: g, claim: a.Claim})
		g.machine.Join(now, a, &c.waiter)
		if until := instant(c.waiter.Until().Sub(start)); until < g.due.at {
			g.sim.agenda.set(g.due, max(until, g.sim.now))
		}
	case admit.Granted:
		c.passed = append(c.passed, pass{g, g.sim.now, a.Claim})
	}
	g.settle()
	if v != admit.Granted && v != admit.Queued {
		g.sim.refused(c, g, v)
	}
	return v == admit.Granted
}

// settle tells those in line what the machine has decided about them.
func (g *gate) settle() {
	for w := g.machine.Decided(); w != nil; {
		next := w.Next()
		c := w.Owner.(*call)
		c.waits = nil
		c.waited += w.Waited()
		if v := w.Verdict(); v == admit.Granted {
			c.passed[len(c.passed)-1].since = g.sim.now
			g.sim.pass(c)
		} else {
			c.passed = c.passed[:len(c.passed)-1]
			g.sim.refused(c, g, v)
		}
		w = next
	}
}

func (g *gate) release(c *call, p pass, o admit.Outcome) {
	g.touch()
	g.machine.Release(g.sim.time(g.sim.now), p.claim, admit.End{Held: time.Duration(g.sim.now - p.since), Outcome: o})
	g.settle()
	if g.foreign != nil {
		g.foreign.Release(c.number, c.left)
		g.answered()
	}
}

// arrive puts an attempt to the gates of its route.
func (s *sim) arrive(c *call) {
	c.waited, c.admitted = 0, false
	c.until, c.noWait = time.Time{}, false
	if len(c.route.Gates) > 1 {
		c.until, c.noWait = s.patience(c)
	}
	if s.counts(c.asked) {
		c.crowd.tally.Attempts++
	}
	s.pass(c)
}

// patience returns when the one patience of a chain ends, and whether it has none.
func (s *sim) patience(c *call) (time.Time, bool) {
	least := time.Duration(1<<63 - 1)
	for _, name := range c.route.Gates {
		least = min(least, s.instances[c.home].gates[name].Config.MaxWait)
	}
	return s.time(s.now).Add(least), least == 0
}

// pass takes a call on through the gates that it has not passed yet, until it has to
// wait, is refused, or runs.
func (s *sim) pass(c *call) {
	gates := c.route.Gates
	for len(c.passed) < len(gates) {
		if !s.instances[c.home].gates[gates[len(c.passed)]].ask(c) {
			return
		}
	}
	if len(gates) > 1 {
		first := c.passed[0].gate
		first.touch()
		first.machine.Count(s.time(s.now), admit.Granted)
	}
	s.run(c)
}

// refused ends an attempt that gate g did not let in. What the gates before it gave goes
// back unused.
func (s *sim) refused(c *call, g *gate, v admit.Verdict) {
	c.over = true
	if s.told != nil {
		s.told(c, v)
	}
	told := 0
	if c.crowd.Retries.Honours && v != admit.Canceled {
		told = g.machine.Appoint(s.time(s.now), g.machine.Lane(c.route.Lane), max(1, g.RetryLo), g.retryHi(), s.dice.IntN)
	}
	for i := len(c.passed) - 1; i >= 0; i-- {
		p := c.passed[i]
		p.gate.touch()
		p.gate.machine.Unwind(s.time(s.now), p.claim)
		p.gate.settle()
	}
	c.passed = c.passed[:0]
	s.points.refused(c, v)
	c.crowd.tally.refused(c, v)
	if s.counts(c.asked) {
		g.tally.decisions[v]++
	}
	c.crowd.unanswered(c, told)
}

func (g *gate) retryHi() int {
	if g.RetryHi == 0 {
		return max(30, g.RetryLo)
	}
	return g.RetryHi
}

// accepted counts a call that runs.
func (s *sim) accepted(c *call) {
	if s.told != nil {
		s.told(c, admit.Granted)
	}
	c.crowd.tally.accepted(c)
	s.points.waits.add(c.waited)
	if len(c.passed) > 0 && s.counts(c.asked) {
		c.passed[0].gate.tally.decisions[admit.Granted]++
		c.passed[0].gate.tally.waits.add(c.waited)
	}
}
