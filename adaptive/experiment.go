package adaptive

import "math"

// sample is what was measured in a phase while the gate was full.
type sample struct {
	area    float64 // calls × seconds, slots that are left empty included
	time    float64 // seconds
	ends    float64 // calls served
	refused float64 // calls that the backend refused
}

// pool is several samples of one side.
type pool = sample

func (s *sample) add(o sample) {
	s.area += o.area
	s.time += o.time
	s.ends += o.ends
	s.refused += o.refused
}

func (s *sample) halve() {
	s.area /= 2
	s.time /= 2
	s.ends /= 2
	s.refused /= 2
}

// calls are all that have ended.
func (s *sample) calls() float64 { return s.ends + s.refused }

// rate is ln of the calls that are served in a second, without what was lost by those
// that were refused.
func (s *sample) rate() float64 {
	return math.Log(max(s.ends-lost*s.refused, s.ends/20) / s.time)
}

// holding is a rest at the centre.
type holding struct {
	length, end float64 // seconds
	rate, ends  float64 // as the rest began: ln of calls a second, and of how many calls
}

// decide ends the phase if it has seen enough, and moves the centre if the pair says so.
func (p *Probe) decide() {
	if p.took.mean <= 0 {
		return
	}
	if p.phase == minus && !p.demand.presses(p.last.Waiting > 0) {
		p.begin(plus) // nothing stands at the gate: no experiment downwards
		return
	}
	if !p.enough() {
		if p.now-p.begun > 20+4*p.took.mean { // hardly ever full: what there is says nothing
			p.begin(p.phase)
			p.forget()
		}
		return
	}
	if p.jumped() {
		p.width, p.heading, p.hold.length = wide, 0, 0
		p.forget()
		p.begin(plus)
		return
	}
	p.learnt++
	if p.phase == resting {
		p.watch()
		return
	}
	p.keep()
	if p.phases < 2 || p.pair[minus].ends == 0 || p.pair[plus].ends == 0 {
		return
	}
	worth := price * p.took.mean / p.deadline
	worth = max(flat, worth/(1+worth))
	way, err := p.test(&p.pair, sure, worth)
	if !math.IsInf(err, 1) {
		p.elasticity, p.unsure = elasticity(&p.pair), err
	}
	if way == 0 {
		way, _ = p.test(&p.recent, sureFast, worth)
	}
	if way == 0 {
		p.undecided(err)
		return
	}
	p.step(way)
}

// jumped reports whether calls take another length altogether than in the phase before,
// at about the same limit: the backend has changed, and what was known of it is void.
// Between limits that are far apart such a jump is the answer of the experiment.
func (p *Probe) jumped() bool {
	was, is := p.lately, p.seen
	p.lately = is
	if was.ends == 0 || is.area == 0 || math.Abs(math.Log(is.area/is.time*was.time/was.area)) > 0.5 {
		return false
	}
	change := math.Abs(math.Log(is.area / is.calls() * was.calls() / was.area))
	return change > max(math.Log(4), 6*math.Sqrt(max(1, p.spread)*(1/is.calls()+1/was.calls())))
}

// enough reports whether the phase has seen enough. A wide experiment needs half of it.
func (p *Probe) enough() bool {
	need := p.length * p.took.mean
	if p.reach() >= 0.99*wide {
		need /= 2
	}
	return p.seen.time >= need && p.seen.calls() >= leastEnds && p.seen.ends > 0
}

// keep puts the phase into the pools and begins the other side's.
func (p *Probe) keep() {
	s, side := p.seen, p.phase
	if b := p.before[side]; b.ends > 0 {
		d := s.rate() - b.rate()
		d = d * d / (1/s.ends + 1/b.ends)
		p.spread += 0.1 * (min(d, 8) - p.spread)
	}
	p.before[side] = s
	p.pair[side].add(s)
	p.recent[side].halve()
	p.recent[side].add(s)
	p.phases++
	p.begin(1 - side)
}

// test says which way is up: +1, -1, or 0 where chance explains the difference. err is
// the standard error of the elasticity.
func (p *Probe) test(pair *[2]pool, z, worth float64) (way int, err float64) {
	lo, hi := &pair[minus], &pair[plus]
	if lo.ends < 5 || hi.ends < 5 {
		return 0, math.Inf(1)
	}
	apart := math.Log(hi.area / hi.time / (lo.area / lo.time))
	if apart < 0.01 {
		return 0, math.Inf(1)
	}
	e := elasticity(pair)
	err = math.Sqrt(max(0.7, p.spread)*(1/hi.ends+1/lo.ends)) / apart
	switch {
	case e-z*err > worth:
		return 1, err
	case e+z*err < worth:
		return -1, err
	}
	return 0, err
}

// elasticity is the difference of ln of the rates over that of ln of the limits.
func elasticity(pair *[2]pool) float64 {
	lo, hi := &pair[minus], &pair[plus]
	return (hi.rate() - lo.rate()) / math.Log(hi.area/hi.time/(lo.area/lo.time))
}

// undecided narrows the experiment once there is no difference worth the name, and rests
// where it is narrow already.
func (p *Probe) undecided(err float64) {
	narrowest := p.width <= narrow*1.01
	if err >= settled && !(p.phases >= 8 && narrowest) {
		return
	}
	p.heading = 0
	if !narrowest {
		p.width = max(narrow, p.width/1.5)
		p.forget()
		return
	}
	if err < settled { // that much is known; what comes next shall count as well
		p.pair[minus].halve()
		p.pair[plus].halve()
	}
	p.reason = Settled
	p.rest()
}

// step moves the centre one probe up or down.
func (p *Probe) step(way int) {
	low, high := p.bounds()
	if way > 0 && p.reach() >= 0.99*wide && p.heading >= 0 && elasticity(&p.pair) > ladder {
		p.climb(high)
		return
	}
	turned := p.heading != 0 && way != p.heading
	switch {
	case way == p.heading:
		p.width = min(wide, p.width*1.5)
		p.hold.length = 0 // on its way
	case turned:
		p.width = max(narrow, p.width/1.5)
	}
	between := turned && p.reach() <= narrow*1.01 // the best lies between two centres
	p.heading = way
	was := p.centre
	if way > 0 {
		p.centre, p.reason = max(high, p.centre+1), Climbed
	} else {
		p.centre, p.reason = min(low, p.centre-1), Descended
	}
	p.clamp()
	p.forget()
	if between {
		p.centre, p.heading, p.reason = (was+p.centre)/2, 0, Settled
		p.rest()
	}
}

// climb takes the next rung where the limit is far too low: the plus of this experiment
// is the minus of the next, and its sample is used again.
func (p *Probe) climb(high float64) {
	old := p.pair[plus]
	p.heading, p.reason = 1, Climbed
	p.centre = max(high+1, high/(1-p.reach()))
	p.clamp()
	p.forget()
	p.pair[minus], p.recent[minus], p.phases = old, old, 1
	p.begin(plus)
}

func (p *Probe) clamp() {
	p.centre = max(float64(p.cfg.Min), min(float64(p.cfg.Max), p.centre))
}

// rest stays at the centre for a while, longer each time, and for longer where a
// comparison takes longer: probing costs something.
func (p *Probe) rest() {
	p.hold.length = min(max(3, 1.5*(p.now-p.since)), max(1.6*p.hold.length, 1, 8*p.took.mean))
	p.hold.end = p.now + p.hold.length
	p.hold.ends = 0
	p.recent, p.phases = [2]pool{}, 0 // the pair is kept: what is known of a centre adds up
	p.begin(resting)
}

// watch compares a rest with how it began.
func (p *Probe) watch() {
	s, moved := p.seen, false
	if h := &p.hold; h.ends > 0 {
		err := math.Sqrt(max(1, p.spread) * (1/s.ends + 1/h.ends))
		moved = math.Abs(s.rate()-h.rate) > max(3*err, 0.1)
		if !moved {
			part := s.ends / (s.ends + h.ends)
			h.rate += part * (s.rate() - h.rate)
			h.ends = min(h.ends+s.ends, 20*s.ends)
		}
	} else {
		h.rate, h.ends = s.rate(), s.ends
	}
	switch {
	case moved:
		p.hold.length = 0
		p.width = max(p.width, 0.2)
		p.forget()
		p.begin(plus)
	case p.now >= p.hold.end:
		p.begin(plus)
	default:
		p.begin(resting)
	}
}
