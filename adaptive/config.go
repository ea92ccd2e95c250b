package adaptive

import (
	"errors"
	"fmt"
	"time"
)

// ProbeConfig is what a [Probe] is told. The zero value of each field is its default.
type ProbeConfig struct {
	// Deadline is how long after it came a call's answer is still of use. 0 means 1 s,
	// what people take for at once; most clients wait longer. It bounds how many calls
	// may run: a third of what can end within it. With half of it a slow backend is
	// used less than it could be, with twice it calls take longer before the limit
	// falls.
	Deadline time.Duration
	// Min is the least that the limit ever is. 0 means 1: the truth may be 1.
	Min int
	// Max is the most that it ever is, probes included. 0 means 1000: a backend that
	// takes more at once is rare, and memory is what calls take then. With half of it
	// such a backend is not used, twice it bounds a mistake at twice as much.
	Max int
	// Start is the centre of the limits that are tried before anything is known. 0
	// means the gate's own limit, its MaxInFlight, or what Min and Max leave of it. It
	// is doubled several times a second if that is too little; half or twice of it
	// costs or gains one step.
	Start int
	// Seed makes the lengths of experiments differ from one limiter to another, so that
	// many of them do not probe in step. Any number does; those of one process had best
	// differ.
	Seed uint64
	// Moved is told of each move of the centre, with both and the reason, while the gate's
	// lock is held: it may not block, and not call the gate. Nil: nobody is told.
	Moved func(from, to float64, why Reason)
}

func (c *ProbeConfig) fill() error {
	var errs []error
	if c.Deadline < 0 || c.Deadline > longest {
		errs = append(errs, fmt.Errorf("adaptive: Deadline is %v; it must be 0 (meaning 1s) to 24h", c.Deadline))
	}
	if c.Deadline == 0 {
		c.Deadline = time.Second
	}
	return errors.Join(append(errs, fillBounds(&c.Min, &c.Max, &c.Start))...)
}

// Configure puts other settings in force. What was learnt stays, within the new bounds;
// Start and Seed are those of the beginning. On error nothing has changed. Like Observe
// it belongs under the gate's lock: a limiter of your own around this one calls it in
// its Observe.
func (p *Probe) Configure(c ProbeConfig) error {
	if err := c.fill(); err != nil {
		return err
	}
	c.Start, c.Seed = p.cfg.Start, p.cfg.Seed
	p.cfg, p.deadline = c, c.Deadline.Seconds()
	p.clamp()
	return nil
}

// Config returns what is in force, with every default filled in.
func (p *Probe) Config() ProbeConfig { return p.cfg }
