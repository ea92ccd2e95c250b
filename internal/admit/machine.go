package admit

import (
	"math"
	"time"
)

// unlimited is the number of slots of a machine that no outer ledger feeds.
const unlimited = math.MaxInt

// Config is what a machine is told once and can be told again.
type Config struct {
	Limit      int           // units that may run at once; at least 1
	MaxWait    time.Duration // patience in line; 0: refuse at once
	MaxWaiting int           // calls in line; 0: see MaxWaiting, and the chance rule applies
	Measure    bool          // measure departures even when nobody may wait
	Limiter    Limiter       // moves the limit; nil: it stays where it is set
	PerCaller  int           // units of one caller that may run at once; 0: no bound
	Fair       bool          // who has most gives up a place in line to whom has less
	MaxCallers int           // callers that are told apart at once; further ones share one
	Lanes      []LaneConfig  // of different names; at most MaxLanes - 1
	Ledger     bool          // slots come from an outer ledger, and at first there are none; it never changes
}

// Claim is what a call takes of a machine, from its start to its end.
type Claim struct {
	Cost   int     // units; at least 1
	Caller *Caller // whose it is; nil: not known
	Lane   *Lane   // nil: that of calls without one
}

// Arrival is one call that wants to run.
type Arrival struct {
	Claim
	Deadline time.Time // the caller's own; zero: none
	Until    time.Time // end of a patience that began elsewhere, in a chain; zero: now + MaxWait
	NoWait   bool      // refuse rather than queue; where a ledger lends, ask it first
	Link     bool      // one gate of a chain: its grant is no decision yet
}

// Counts is what a machine has done so far. Granted is the leases given, links
// of chains included; Decisions[Granted] is the calls accepted.
type Counts struct {
	Decisions [Verdicts]uint64
	Granted   uint64
	Released  uint64
}

// Machine admits calls up to a limit. Make one with [New].
type Machine struct {
	cfg      Config
	limit    int // in force; 0: closed
	want     int // what the limiter wants to be in force; see follow
	told     Observation
	slots    int // that may be used now, whatever the limit; 0: none yet, so everybody waits
	inFlight int // units
	peak     int // the most of them since somebody asked
	calls    int // leases
	offered  uint64
	draining bool
	line     line
	lanes    []*Lane // by rank
	rest     Lane    // of calls without one: the last of them
	callers  callers
	overs    int // calls in line that were over their caller's bound as they came
	rate     rate
	demand   demand
	counts   Counts
	ledger   ledger // of a machine whose slots come from one

	decided, decidedLast *Waiter
	journal              *journal // nil unless somebody records
}

// New returns a machine with nothing in flight.
func New(now time.Time, c Config) *Machine {
	m := &Machine{cfg: c, limit: c.Limit, want: c.Limit, slots: unlimited}
	m.setLanes(c.Lanes)
	if c.Ledger {
		m.slots = 0
	}
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Changed})
	}
	m.move(now)
	return m
}

// Limit returns the limit in force, in units; 0 means closed.
func (m *Machine) Limit() int { return m.limit }

// InFlight returns the units that run now.
func (m *Machine) InFlight() int { return m.inFlight }

// Calls returns the leases that are out now.
func (m *Machine) Calls() int { return m.calls }

// Waiting returns the calls in line.
func (m *Machine) Waiting() int { return m.line.len }

// Draining reports whether the machine admits nobody because it drains.
func (m *Machine) Draining() bool { return m.draining }

// Counts returns what was decided, granted and released so far.
func (m *Machine) Counts() Counts { return m.counts }

// Gauge is what a machine shows at one instant.
type Gauge struct {
	InFlight int32 // units
	Waiting  int32 // calls
	Limit    int32
}

// Gauge returns what the machine shows now.
func (m *Machine) Gauge() Gauge { return Gauge{int32(m.inFlight), int32(m.line.len), int32(m.limit)} }

// Ahead returns how long the next call of a lane would stand in line at the measured
// departure rate, and false while that is not known.
func (m *Machine) Ahead(l *Lane) (time.Duration, bool) {
	mu, known := m.rate.perSecond()
	if !known {
		return 0, false
	}
	seconds := float64(m.ahead(m.lane(l), 1)+1) / mu
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second)), true
}

// maxSeconds keeps a forecast within what a Duration can hold.
const maxSeconds = 1e9

// room returns the units that may start now; negative after a shrink, and while
// units run without a slot.
func (m *Machine) room() int { return min(m.limit, m.slots) - m.inFlight }

// full leaves slots out: one that has none and is asked for none says nothing of
// the backend. Nor do those who wait for their own caller.
func (m *Machine) full(now time.Time) bool { return m.inFlight >= m.limit || m.waits(now) }

func (m *Machine) measures() bool { return m.cfg.MaxWait > 0 || m.cfg.Measure }

// Arrive decides an arrival. [Queued] means that the call may wait: the caller
// then puts it in line with [Machine.Join], before anything else is asked of the
// machine. Every other verdict is final.
func (m *Machine) Arrive(now time.Time, a Arrival) Verdict {
	a.Caller.comes(1) // or it would be forgotten if its last call in line ends by this
	m.sweep(now)
	m.offered++
	m.advance(now)
	l := m.lane(a.Lane)
	l.offered += float64(a.Cost)
	l.comes(now, 1)
	v := m.judge(now, l, a)
	if v == Queued {
		m.makeSeat(now, l, a)
	}
	a.Caller.comes(-1)
	switch v {
	case Queued:
		return v
	case Granted:
		m.start(now, a.Claim, a.Link, 0, a.Deadline)
	default:
		m.counts.Decisions[v]++
		l.refuse(now)
		m.forget(a.Caller)
	}
	m.settle(now)
	m.noteArrival(now, a, v, nil)
	return v
}

// Join puts a call that [Machine.Arrive] has just queued in line as w, which must
// be zero but for its Owner.
func (m *Machine) Join(now time.Time, a Arrival, w *Waiter) {
	w.cost, w.link, w.arrived = int32(a.Cost), a.Link, now
	if w.over = m.over(a.Caller, a.Cost); w.over {
		m.overs++
	}
	w.caller, w.lane = a.Caller, m.lane(a.Lane)
	w.caller.joins(a.Cost)
	if !a.Deadline.IsZero() {
		w.own = a.Deadline.Sub(now)
	}
	w.until, w.expiry = m.patience(now, a)
	m.number(w)
	if w.ask = m.asks(a); w.ask {
		m.ledger.asking++
	}
	m.line.push(w)
	w.lane.line.push(w)
	m.trim(now, w.lane)
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Joined, Cost: a.Cost, Deadline: a.Deadline})
	}
	if len(m.lanes) > 1 || m.cfg.Fair { // who was sent away may have kept others from starting
		m.dispatch(now)
	}
	m.settle(now)
	m.noteArrival(now, a, Queued, w)
}

// judge says what becomes of an arrival.
func (m *Machine) judge(now time.Time, l *Lane, a Arrival) Verdict {
	over := m.over(a.Caller, a.Cost)
	switch {
	case a.Cost > max(l.mostEver, l.most), over && a.Cost > m.cfg.PerCaller:
		return TooLarge
	case m.draining:
		return Draining
	case !a.Deadline.IsZero() && !a.Deadline.After(now): // a call nobody waits for never runs
		return Deadline
	case a.Cost > l.most: // closed, or shrunk below this call: it would block the line
		return Busy
	case m.ledger.refuse:
		return Store
	case !over && m.mayStart(now, l, a.Cost):
		return Granted
	}
	until, expiry := m.patience(now, a)
	asks, seat := m.asks(a), m.seat(l, a)
	switch {
	case over && (a.NoWait || !seat || !m.mayStandOver()):
		return Capped
	case asks && !m.mayAsk(a.Cost), a.NoWait && !asks, !seat:
		return Busy
	case !until.After(now) && expiry == Deadline:
		return Deadline
	case !until.After(now) && over:
		return Capped
	case !until.After(now):
		return Busy
	case m.cfg.MaxWaiting == 0 && !asks && !over && !m.scouts() && m.rate.hopeless(m.ahead(l, a.Cost)+1, until.Sub(now)):
		return Busy
	}
	return Queued
}

// scouts reports whether an arrival is the first in the line of a gate whose slots come
// from a ledger. It has a chance whatever was measured here: the ledger lends to whom it
// hears of, and of a gate that refuses everybody at once it would never hear again.
func (m *Machine) scouts() bool { return m.cfg.Ledger && m.line.len == 0 }

// patience returns until when an arrival may wait, and what it is told if that
// passes: the gate's patience, a chain's, or the last moment at which it is worth to
// start for the caller's own deadline, if that comes first.
func (m *Machine) patience(now time.Time, a Arrival) (time.Time, Verdict) {
	until, expiry := now.Add(m.cfg.MaxWait), Timeout
	if !a.Until.IsZero() {
		until = a.Until
	}
	if m.asks(a) {
		until, expiry = now.Add(askTime), Store
	}
	if !a.Deadline.IsZero() {
		if last := a.Deadline.Add(-m.rate.hold(m.limit) / 2); last.Before(until) {
			until, expiry = last, Deadline
		}
	}
	return until, expiry
}

// Decided returns the waiters decided since the last call of it, in order,
// chained by [Waiter.Next], and forgets them.
func (m *Machine) Decided() *Waiter {
	w := m.decided
	m.decided, m.decidedLast = nil, nil
	if m.journal != nil {
		m.journal.told = nil
	}
	return w
}
