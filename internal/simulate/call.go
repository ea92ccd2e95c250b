package simulate

import (
	"time"

	"example.com/forebay/internal/admit"
)

// call is one call of a caller, through all its attempts.
type call struct {
	entry            // among those served at its resource, or those who come again
	prev, next *call // in line at a resource
	at         *resource
	number     uint64 // grows with every call, also where the memory is used again
	crowd      *crowd
	route      *route
	home       int // its instance
	caller     string
	work       []float64 // seconds, of each visit
	visit      int       // the one it is at
	born       instant   // when it came first
	asked      instant   // when this attempt came
	leavesAt   instant
	tries      int
	over       bool // this attempt is: answered, refused, or left
	left       bool // its caller left while it ran
	passed     []pass
	waiter     admit.Waiter
	waits      *gate // in whose line it stands
	until      time.Time
	noWait     bool
	admitted   bool // by a foreign gate, in whose line it stood
	waited     time.Duration
}

// pass is a gate that a call has passed.
type pass struct {
	gate  *gate
	since instant
	claim admit.Claim
}

func (s *sim) newCall() *call {
	var c *call
	if n := len(s.unused); n > 0 {
		c = s.unused[n-1]
		s.unused = s.unused[:n-1]
		*c = call{work: c.work[:0], passed: c.passed[:0]}
	} else {
		c = &call{}
	}
	s.calls++
	c.number, c.order, c.place, c.call = s.calls, s.calls, -1, c
	return c
}

// free keeps a call's memory for another one.
func (s *sim) free(c *call) {
	c.number = 0
	s.unused = append(s.unused, c)
}

// born counts a new call.
func (s *sim) born(c *call) {
	s.points.offered(c)
	if s.counts(c.born) {
		c.crowd.tally.Calls++
	}
}

// counts reports whether what began at t counts.
func (s *sim) counts(t instant) bool { return t >= instant(s.sc.WarmUp) }

// visited sends a call on to its next part, or lets it end.
func (s *sim) visited(c *call) {
	if c.visit++; c.visit < len(c.route.visit) {
		c.route.visit[c.visit].start(c)
		return
	}
	s.finish(c, admit.Done)
}

// run starts a call's work.
func (s *sim) run(c *call) {
	s.accepted(c)
	if c.visit = 0; len(c.route.visit) == 0 {
		s.finish(c, admit.Done)
		return
	}
	c.route.visit[0].start(c)
}

// finish ends a call's work and gives its slots back. Who has left is not answered.
func (s *sim) finish(c *call, o admit.Outcome) {
	c.over = true
	if s.ended != nil {
		s.ended(c)
	}
	for _, w := range c.work {
		s.worked += w
		if c.left {
			s.wasted += w
		}
	}
	for i := len(c.passed) - 1; i >= 0; i-- {
		p := c.passed[i]
		p.gate.release(c, p, o)
	}
	c.passed = c.passed[:0]
	if !c.left {
		s.points.answered(c)
		c.crowd.tally.answered(c)
	}
	s.free(c)
}

// gone is told that a caller has left without an answer. If its work runs it runs on for
// nobody, unless somebody cancels it; the caller may come again meanwhile.
func (s *sim) gone(c *call) {
	if g := c.waits; g != nil && g.foreign != nil {
		g.foreign.Leave(c.number)
		g.answered()
		return
	} else if g != nil {
		g.touch()
		g.machine.Leave(s.time(s.now), &c.waiter, admit.Canceled)
		g.settle() // says to c that it is canceled
		return
	}
	c.crowd.tally.left(c)
	heir := s.heir(c)
	c.left, c.over = true, true
	if c.crowd.Cancels {
		c.work[c.visit] -= c.at.undone(c)
		c.work = c.work[:c.visit+1]
		c.at.leave(c)
		s.finish(c, admit.Aborted)
	}
	heir.crowd.unanswered(heir, 0)
}

// heir returns the same call again, for further attempts.
func (s *sim) heir(c *call) *call {
	h := s.newCall()
	h.crowd, h.route, h.home, h.caller = c.crowd, c.route, c.home, c.caller
	h.work, h.born, h.tries, h.over = append(h.work, c.work...), c.born, c.tries, true
	return h
}
