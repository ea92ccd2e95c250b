package adaptive

import (
	"errors"
	"fmt"
	"time"

	"example.com/forebay"
)

// AIMDConfig is what an [AIMD] is told. The zero value of each field is its default.
type AIMDConfig struct {
	// Timeout is how long a call takes that says that the backend has too much. 0 means
	// 1 s, the default deadline of a [Probe].
	Timeout time.Duration
	// Backoff is what a sign of overload leaves of the limit. 0 means 0.9; it must be
	// from 0.5 to less than 1. With half of what it takes away a recovery takes longer
	// to come, with twice of it more is left unused after it.
	Backoff float64
	// Min is the least that the limit ever is. 0 means 1.
	Min int
	// Max is the most that it ever is. 0 means 1000. Nothing else bounds the limit
	// before a backend that becomes slow and never late.
	Max int
	// Start is the limit before anything is known. 0 means the gate's own, its
	// MaxInFlight, or what Min and Max leave of it.
	Start int
}

func (c *AIMDConfig) fill() error {
	var errs []error
	if c.Timeout < 0 || c.Timeout > longest {
		errs = append(errs, fmt.Errorf("adaptive: Timeout is %v; it must be 0 (meaning 1s) to 24h", c.Timeout))
	}
	if c.Timeout == 0 {
		c.Timeout = time.Second
	}
	if c.Backoff == 0 {
		c.Backoff = 0.9
	}
	if !(c.Backoff >= 0.5 && c.Backoff < 1) {
		errs = append(errs, fmt.Errorf("adaptive: Backoff is %v; it must be 0 (meaning 0.9) or from 0.5 to less than 1", c.Backoff))
	}
	return errors.Join(append(errs, fillBounds(&c.Min, &c.Max, &c.Start))...)
}

// AIMD is a limiter that adds one for each round of calls that end well while the gate
// is at least half full, and multiplies by Backoff when the backend refuses a call or
// takes longer than Timeout. Make one with [NewAIMD] for each gate; it belongs to its
// gate's lock.
//
// The law is that of Chiu and Jain (1989), as TCP has it (RFC 5681): at most one
// decrease in the time that calls take. It finds no limit of a backend that only
// becomes slow: it goes to where calls take Timeout.
type AIMD struct {
	cfg AIMDConfig
	steps
}

// NewAIMD returns a limiter that knows nothing yet.
func NewAIMD(c AIMDConfig) (*AIMD, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	return &AIMD{cfg: c, steps: newSteps(c.Min, c.Max, c.Start)}, nil
}

// Observe implements [forebay.Limiter].
func (l *AIMD) Observe(o *forebay.Observation) int {
	switch l.learn(o) {
	case refused:
		l.decrease(o.Now, l.limit*l.cfg.Backoff)
	case ended:
		switch {
		case o.Held > l.cfg.Timeout:
			l.decrease(o.Now, l.limit*l.cfg.Backoff)
		case halfFull(o):
			l.set(l.limit + float64(o.Cost)/l.limit)
		}
	}
	return l.whole()
}
