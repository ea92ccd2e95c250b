package adaptive

// calm is what ran in the last second or so in which the gate was not full. How much ends
// then and how many run is as good as a sample of a lower limit, so that a rush needs no
// experiment downwards before the first one upwards.
type calm struct {
	sample
	waited float64 // the part of the second before somebody came to wait in which somebody had
}

// pass lets a time pass in which the gate was not full.
func (c *calm) pass(passed float64, inFlight int) {
	f := fade(passed, 1)
	c.area = c.area*f + passed*float64(inFlight)
	c.time = c.time*f + passed
	c.ends *= f
}

// stirs is told that somebody begins to wait, after a second of which a part had waiters.
func (c *calm) stirs(waited float64) { c.waited = waited }

// known reports whether that was calm, and enough was seen of it. Between bursts it is
// not: what runs there is what a burst has left.
func (c *calm) known() bool { return c.waited < 0.1 && c.ends >= leastEnds }

// ran is how many calls did, on average.
func (c *calm) ran() float64 { return c.area / c.time }

// rush begins the first experiment of a load that has grown at once: twice as much as ran
// before, if that is asked for and more than the limit, is compared with what ran before.
func (p *Probe) rush(overload float64) {
	if !p.calm.known() {
		return
	}
	ran := p.calm.ran()
	if to := ran * min(2, overload) / (1 + wide); to > p.centre {
		p.centre, p.reason = to, Climbed
		p.clamp()
	}
	if _, high := p.bounds(); ran < 0.8*high {
		p.pair[minus], p.recent[minus], p.phases = p.calm.sample, p.calm.sample, 1
	}
}
