package adaptive

import (
	"math"
	"math/rand/v2"
	"time"

	"example.com/forebay"
)

// Probe is a limiter that finds the limit by experiment. Make one with [NewProbe] for
// each gate; like every limiter it belongs to its gate's lock.
//
// It searches the limit at which ln X - R/Deadline is greatest, X being the calls that
// end in a second and R how long they take: as much as can be done, as long as that does
// not make calls slow. It holds the limit for a while somewhat above (+) and somewhat
// below (-) a centre. The elasticity e, the difference of ln X over that of ln n, says
// which way is up; the experiment goes on until e differs from what R/Deadline allows by
// more than chance explains.
type Probe struct {
	cfg      ProbeConfig
	deadline float64 // seconds
	dice     *rand.Rand
	now      float64 // seconds since the first observation
	zero     time.Time
	last     forebay.Observation // the gate has shown this since
	demand   demand
	calm     calm
	full     throughput // while the gate is full, short of memory
	took     residence

	centre   float64
	width    float64 // of the probes, a part of the centre: narrow to wide
	phase    phase
	begun    float64 // the phase
	since    float64 // what is compared was measured since
	length   float64 // of the phase, in residence times; random
	overload float64 // overload as the pair of phases began
	seen     sample  // this phase so far
	lately   sample  // the phase before
	pair     [2]pool // minus and plus
	recent   [2]pool // the same, of which each phase halves what was
	phases   int     // that are in the pools
	heading  int     // the last step: -1, 0, +1
	spread   float64 // of counts, in those of a Poisson process
	before   [2]pool // of that spread: the last phase of each side
	hold     holding
	cutNext  float64 // no cut for the deadline before
	refusals refusals
	reason   Reason
	told     float64 // the centre of which Moved was told last

	learnt             uint64  // phases that have taught something
	elasticity, unsure float64 // of the last comparison, and its standard error
}

// phase is what is tried now.
type phase uint8

const (
	minus phase = iota
	plus
	resting // at the centre, with an eye on whether anything changes
)

var phaseNames = [...]string{"below", "above", "resting"}

// String returns "below" or "above" the centre, or "resting".
func (p phase) String() string { return phaseNames[p] }

// Reason says why the limit is what it is.
type Reason string

// The reasons. Reasons has all of them that a limit can move for.
const (
	Started   Reason = "start"      // nothing was learnt yet
	Climbed   Reason = "climb"      // more does more
	Descended Reason = "descend"    // more does not do more, or is too slow
	Settled   Reason = "settle"     // neither way is better
	TooLate   Reason = "deadline"   // calls would take too much of the deadline
	Refused   Reason = "overloaded" // the backend itself refuses
	Unrelated Reason = "unrelated"  // it refuses as much at half the limit: back to where it was
)

// Reasons are those for which a limit moves.
var Reasons = []Reason{Climbed, Descended, Settled, TooLate, Refused, Unrelated}

const (
	narrow    = 0.10 // the least width: narrower takes too long to tell from chance
	wide      = 0.35 // the most: doubles the limit in one step of the ladder
	price     = 1.0  // of time: what R/Deadline weighs against ln X
	flat      = 0.03 // an elasticity that is as good as none
	sure      = 1.5  // standard errors that a decision needs
	sureFast  = 2.0  // of what is recent
	ladder    = 0.5  // an elasticity at which twice as much is next
	settled   = 0.12 // a standard error at which no difference is one
	leastEnds = 12   // calls that end, in a phase
	capPart   = 1.0 / 3
	unseen    = 20 // the centre of one that has no gate and was told no Start
)

// NewProbe returns a limiter that knows nothing yet.
func NewProbe(c ProbeConfig) (*Probe, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	start := c.Start
	if start == 0 {
		start = max(c.Min, min(unseen, c.Max)) // until there is a gate
	}
	return &Probe{
		cfg: c, deadline: c.Deadline.Seconds(), dice: rand.New(rand.NewPCG(c.Seed, 4)),
		centre: float64(start), width: wide, spread: 1.5, length: 2, phase: plus, overload: 1, reason: Started,
	}, nil
}

// State is what a [Probe] has found out.
type State struct {
	Limit    int           // wanted now
	Centre   float64       // of the two limits that are compared
	Reason   Reason        // of the last move of the centre
	Phase    string        // what is tried now: "below" or "above" the centre, or "resting" at it
	Overload float64       // calls that came over calls that were let in, of the last second; 1: as many
	Took     time.Duration // a call from its start to its end; 0: not known
	Rate     float64       // calls that end in a second while the gate is full; 0: not known
	Cap      int           // what the deadline allows; 0: not known

	// Phases is how many phases have taught something, rests included.
	Phases uint64
	// Elasticity is by how many per cent more calls end in a second if one per cent more
	// may run, as the last two limits that were compared say; Unsure is the standard error of
	// that, 0: nothing was compared yet.
	Elasticity, Unsure float64
}

// State returns what was found out so far. Like Observe it is not safe for concurrent
// use: who shows it has a limiter of his own around this one, which copies it.
func (p *Probe) State() State {
	s := State{
		Limit: p.limit(), Centre: p.centre, Reason: p.reason, Phase: p.phase.String(), Overload: p.demand.ratio(),
		Took:   time.Duration(p.took.mean * float64(time.Second)),
		Phases: p.learnt, Elasticity: p.elasticity, Unsure: p.unsure,
	}
	if rate, known := p.full.perSecond(); known {
		s.Rate, s.Cap = rate, int(p.cap())
	}
	return s
}

// Observe implements [forebay.Limiter].
func (p *Probe) Observe(o *forebay.Observation) int {
	if p.zero.IsZero() || o.Limit == 0 { // of a gate that is closed what ends says nothing
		p.Skip(o)
		return p.limit()
	}
	p.pass(o)
	if o.Kind == forebay.ObservedFinish {
		p.finished(o)
	}
	if p.centre != p.told {
		p.tell()
	}
	p.last = *o
	p.last.Limit = p.limit()
	return p.last.Limit
}

// Skip lets a change pass without learning from it, in place of Observe: for a limiter of
// your own around this one, while a limit that somebody has set by hand is in force. What
// the gate shows until the next change counts as not full.
func (p *Probe) Skip(o *forebay.Observation) {
	if p.zero.IsZero() {
		p.zero = o.Now
		if p.cfg.Start == 0 && o.Limit > 0 {
			p.centre = float64(o.Limit)
			p.clamp()
		}
		p.told = p.centre
	}
	p.last = *o
	p.last.Limit = math.MaxInt
}

func (p *Probe) tell() {
	was := p.told
	p.told = p.centre
	if p.cfg.Moved != nil {
		p.cfg.Moved(was, p.centre, p.reason)
	}
}

// pass lets the time since the last observation pass: the gate has shown all along what
// that one said.
func (p *Probe) pass(o *forebay.Observation) {
	passed := max(0, o.Now.Sub(p.last.Now).Seconds())
	p.now += passed
	if o.Waiting > 0 && p.last.Waiting == 0 {
		p.calm.stirs(p.demand.waited)
	}
	p.demand.pass(passed, p.last.Waiting > 0, o.Offered-p.last.Offered)
	if o.Kind == forebay.ObservedStart {
		p.demand.begun()
	}
	full := p.wasFull(o)
	p.full.pass(passed, full, p.last.Waiting == 0 && 10*p.last.InFlight < 9*o.Limit)
	p.refusals.pass(passed, p.took.mean)
	if !full {
		p.calm.pass(passed, p.last.InFlight)
	} else if p.now-p.begun > p.took.mean {
		p.seen.area += passed * (float64(p.last.InFlight) + p.refusals.empty)
		p.seen.time += passed
	}
	// Overload may have begun in a phase in which nothing stood at the gate, or have
	// grown so much that a wider experiment costs nobody anything.
	r := max(p.demand.ratio(), p.demand.sudden())
	idle := p.phases == 0 && p.phase != minus && r > 1.2*p.overload+0.2
	if passed > 0 && (idle || p.reachAt(r) > 1.5*p.reach()) {
		p.forget()
		p.begin(plus)
		if p.overload = r; idle {
			p.rush(r)
		}
	}
}

// wasFull reports whether the gate was full up to this observation.
func (p *Probe) wasFull(o *forebay.Observation) bool {
	if o.Kind == forebay.ObservedChange {
		return p.last.InFlight >= p.last.Limit
	}
	return p.last.InFlight >= o.Limit
}

// finished learns from a call that has ended. Of those that say nothing about the backend
// it learns nothing, and those that it refused are no work done.
func (p *Probe) finished(o *forebay.Observation) {
	switch o.Outcome {
	case forebay.OutcomeOverloaded:
		p.refused(o)
		return
	case forebay.OutcomeDone:
		p.refusals.served()
	default:
		return
	}
	p.took.add(min(o.Held.Seconds(), 10*p.deadline), p.limit())
	if !p.wasFull(o) {
		p.calm.ends++
	} else if p.now-p.begun > p.took.mean {
		p.seen.ends++
	}
	p.full.ended(p.memory())
	if c := p.cap(); p.full.since > 0.3 && p.full.ends >= 30 && c < 0.8*(p.centre-p.refusals.empty) {
		if p.now >= p.cutNext {
			p.cut(max(c, 0.7*p.centre), TooLate)
			p.cutNext = p.now + max(0.1, p.took.mean)
		}
		return
	}
	p.decide()
}

// cut lowers the centre at once.
func (p *Probe) cut(to float64, why Reason) {
	p.centre, p.reason = max(float64(p.cfg.Min), to), why
	p.forget()
	p.heading, p.width = -1, wide // what was known is void, and the way back may be long
	p.begin(plus)
}

// memory is the time constant of the throughput, in seconds: 200 ms, or 30 calls.
func (p *Probe) memory() float64 {
	if p.took.mean <= 0 {
		return 0.2
	}
	return max(0.2, 30*p.took.mean/float64(p.limit()))
}

// cap is how many calls may run so that they end within a part of the deadline (Little's
// law), at the rate at which they end while the gate is full.
func (p *Probe) cap() float64 {
	x, known := p.full.perSecond()
	if !known {
		return math.Inf(1)
	}
	return max(2, x*p.deadline*capPart)
}

// reach is how far from the centre the probes are: never further than the load that is
// being refused anyway.
func (p *Probe) reach() float64 { return p.reachAt(p.overload) }

func (p *Probe) reachAt(overload float64) float64 {
	return max(narrow, min(p.width, (overload-1)/2))
}

// bounds are the two limits that are compared.
func (p *Probe) bounds() (low, high float64) {
	least, most := float64(p.cfg.Min), float64(p.cfg.Max)
	low = max(least, math.Round(p.centre*(1-p.reach())))
	high = min(most, max(low+1, math.Round(p.centre*(1+p.reach()))))
	return max(least, min(low, high-1)), high
}

// limit is the limit that is wanted now. While demand does not press the higher one
// holds: to try less would refuse calls for nothing.
func (p *Probe) limit() int {
	low, n := p.bounds()
	switch hot := p.demand.presses(p.last.Waiting > 0); {
	case p.phase == plus || !hot:
	case p.phase == minus:
		n = low
	default:
		n = math.Round(p.centre)
	}
	n = min(p.refusals.without(n), math.Floor(p.cap()), float64(p.cfg.Max))
	return int(max(float64(p.cfg.Min), n))
}

// begin begins a phase. Its length is random: with calls that all take the same time a
// fixed one would fall into step with them.
func (p *Probe) begin(next phase) {
	if p.phases == 0 {
		p.overload = p.demand.ratio()
	}
	p.phase, p.begun, p.seen = next, p.now, sample{}
	p.length = 2 * (0.75 + 0.5*p.dice.Float64())
}

func (p *Probe) forget() {
	p.since = p.now
	p.pair, p.recent, p.before, p.phases = [2]pool{}, [2]pool{}, [2]pool{}, 0
}
