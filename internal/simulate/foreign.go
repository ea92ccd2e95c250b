package simulate

import (
	"time"

	"example.com/forebay/internal/admit"
)

// Foreign is a gate that is not ours and takes time of its own: somebody else's module,
// or a whole gate of the library, in a bubble of testing/synctest. [Run] alone calls
// it, so that the same calls meet it as meet the machine. Times are from the start; a
// call has a number.
type Foreign interface {
	// Ask puts a call to it. busy is the part that is in use of the resource that has
	// most to do.
	Ask(call uint64, busy float64) Answer
	// Leave says that the caller of one that waits has left; that is answered as well.
	Leave(call uint64)
	// Release says that one that was let in has come to its end. late: nobody waits for
	// it.
	Release(call uint64, late bool)
	// Wait lets time pass up to a time, or to the first answer to one that waits, and
	// returns what time it is.
	Wait(until time.Duration) time.Duration
	// Answers returns what was decided since it was last called about calls that waited.
	Answers() []Answered
	// Limit returns the limit in force, 0 if it has none.
	Limit() int
}

// Answer is what a [Foreign] says about a call.
type Answer uint8

// The answers.
const (
	Refused  Answer = iota // at once, or in the end
	Admitted               // it runs
	Waits                  // the answer comes later
)

// Answered is the answer to a call that waited: [Refused] or [Admitted].
type Answered struct {
	Call   uint64
	Answer Answer
}

// foreignLine is who waits in a foreign gate.
type foreignLine map[uint64]*call

// askForeign puts a call to a foreign gate.
func (g *gate) askForeign(c *call) (passed bool) {
	g.touch()
	switch g.foreign.Ask(c.number, g.sim.busiest()) {
	case Admitted:
		return g.askMachine(c)
	case Waits:
		c.waits = g
		g.foreigners[c.number] = c
		return false
	}
	g.sim.refused(c, g, admit.Busy)
	return false
}

// answered tells those who waited in a foreign gate what it has decided, and reports
// whether there was anybody.
func (g *gate) answered() bool {
	all := g.foreign.Answers()
	for _, a := range all {
		g.touch()
		c := g.foreigners[a.Call]
		delete(g.foreigners, a.Call)
		c.waits = nil
		c.waited += time.Duration(g.sim.now - c.asked)
		switch {
		case a.Answer == Admitted:
			c.admitted = true
			g.sim.pass(c)
		case g.sim.now >= c.leavesAt:
			g.sim.refused(c, g, admit.Canceled)
		default:
			g.sim.refused(c, g, admit.Timeout)
		}
	}
	return len(all) > 0
}

// waitForeign lets time pass for the foreign gate, if there is one. It reports whether an
// answer came, at which time it is then.
func (s *sim) waitForeign(until instant) bool {
	if s.foreign == nil {
		return false
	}
	s.now = max(s.now, min(until, instant(s.foreign.foreign.Wait(time.Duration(until)))))
	return s.foreign.answered()
}

// busiest returns the part that is in use of the resource of which most is.
func (s *sim) busiest() (busy float64) {
	for _, b := range s.inOrder {
		n := len(b.served)
		part := float64(n) * b.pace(n) / b.best(b.servers)
		if n > 0 {
			busy = max(busy, min(1, part))
		}
	}
	return busy
}
