package adaptive

import (
	"math"

	"example.com/forebay"
)

// refusals are what the backend itself refuses. A slot on which it has refused a call is
// left empty for about as long as calls take: whoever waits would be sent into the same
// refusal. To an experiment a refused call is work lost, so the centre goes to where few
// are; where many are at once, it is cut by the slots that are empty.
//
// Refusals need not have to do with how many run: an upstream may count the calls of one
// customer. Then as great a part of the slots is empty after a cut as before, and it is
// taken back.
type refusals struct {
	empty  float64 // slots that are left so
	lately float64 // the part of the last calls that was refused
	ends   float64 // calls that have ended since the last cut
	done   float64 // of them, that were not refused

	cutAt float64
	next  float64 // no cut before
	from  float64 // the centre before a cut that is still on trial; 0: none is
	part  float64 // of the slots that was empty then
	pause float64 // how long refusals have cut nothing the last time
}

const (
	emptyFor   = 1   // residence times that a slot is left empty
	emptyLeast = .05 // seconds, at least
	emptyMore  = 4   // times as long where everything is refused, and once more
	lost       = .5  // what a refused call is to an experiment, of one that was served
	manyEmpty  = .25 // of the slots, for a cut
	manyEnds   = 12  // calls that must have ended before one
	trial      = 6   // residence times that a cut is on trial
	trialLeast = .3  // seconds, at least
	asEmpty    = .6  // of the part that was empty: the cut has not helped
	pauseLeast = 10.0
	pauseMost  = 160.0
)

// pass lets slots come back, the later the more is refused; one by one, not all at once.
func (r *refusals) pass(passed, took float64) {
	if r.empty == 0 || passed == 0 {
		return
	}
	r.empty *= fade(passed, max(emptyLeast, emptyFor*took)*(1+emptyMore*r.lately))
	if r.empty < .01 {
		r.empty = 0
	}
}

// without is a limit without the slots that are left empty.
func (r *refusals) without(n float64) float64 {
	if r.empty == 0 {
		return n
	}
	return math.Floor(n - r.empty)
}

// served notes a call that the backend did not refuse.
func (r *refusals) served() {
	r.lately -= r.lately / 32
	r.ends++
	r.done++
}

// refused notes one that it did.
func (p *Probe) refused(o *forebay.Observation) {
	r := &p.refusals
	r.lately += (1 - r.lately) / 32
	if p.wasFull(o) && p.now-p.begun > p.took.mean {
		p.seen.refused++
	}
	_, slots := p.bounds()
	r.empty = min(r.empty+1, slots)
	if p.now-o.Held.Seconds() < r.cutAt {
		return // it began before the last cut, and says nothing of how it is since
	}
	r.ends++
	part := r.empty / slots
	if r.from > 0 {
		p.tried(part)
		return
	}
	// Where nothing is done at all the backend does not have too much, it is away.
	if part >= manyEmpty && r.ends >= manyEnds && r.done > 0 && p.now >= r.next {
		p.cutRefused(part, o.InFlight)
	}
}

// cutRefused cuts the centre by the slots that are empty, which changes nothing at once.
func (p *Probe) cutRefused(part float64, runs int) {
	r := &p.refusals
	r.from, r.part = p.centre, part
	_, slots := p.bounds()
	inForce := slots - r.empty
	p.cut(max(p.centre*(1-part), float64(runs)), Refused)
	p.width = 0.2 // the way back is short
	_, slots = p.bounds()
	r.empty, r.ends, r.done, r.cutAt = max(0, slots-inForce), 0, 0, p.now
}

// tried ends the trial of a cut.
func (p *Probe) tried(part float64) {
	r := &p.refusals
	if p.now-r.cutAt < max(trialLeast, trial*p.took.mean) || r.ends < manyEnds {
		return
	}
	if part < asEmpty*r.part {
		r.from, r.pause = 0, 0
		return
	}
	r.pause = min(pauseMost, max(pauseLeast, 2*r.pause))
	r.next = p.now + r.pause
	if r.from > p.centre {
		p.centre, p.reason = r.from, Unrelated
		p.clamp()
		p.forget()
		p.begin(plus)
	}
	r.from = 0
}
