package adaptive

import (
	"errors"
	"fmt"
	"time"

	"example.com/forebay"
)

// Gradient2Config is what a [Gradient2] is told. The zero value of each field is its
// default.
type Gradient2Config struct {
	// Tolerance is how much longer than usual calls may take before the limit falls. 0
	// means 1.5; it must be from 1 to 10. At 1 chance lowers the limit; at 3 calls take
	// three times as long before it falls.
	Tolerance float64
	// Headroom is what is added each second, in calls, so that the limit can grow. 0
	// means 4; it must be from 1 to 1000. It also is what stands in line in the backend
	// at least.
	Headroom int
	// Healthy is the longest that calls take on average while all is well: a baseline
	// above it is not believed. 0 means that any is, which follows a long overload
	// upwards.
	Healthy time.Duration
	// Min is the least that the limit ever is. 0 means 1.
	Min int
	// Max is the most that it ever is. 0 means 1000. In mild overload without Healthy
	// nothing else stops the limit from climbing.
	Max int
	// Start is the limit before anything is known. 0 means the gate's own, its
	// MaxInFlight, or what Min and Max leave of it.
	Start int
}

func (c *Gradient2Config) fill() error {
	var errs []error
	if c.Tolerance == 0 {
		c.Tolerance = 1.5
	}
	if !(c.Tolerance >= 1 && c.Tolerance <= 10) {
		errs = append(errs, fmt.Errorf("adaptive: Tolerance is %v; it must be 0 (meaning 1.5) or from 1 to 10", c.Tolerance))
	}
	if c.Headroom < 0 || c.Headroom > 1000 {
		errs = append(errs, fmt.Errorf("adaptive: Headroom is %d; it must be 0 (meaning 4) to 1000", c.Headroom))
	}
	if c.Headroom == 0 {
		c.Headroom = 4
	}
	return errors.Join(append(errs, healthyError(c.Healthy), fillBounds(&c.Min, &c.Max, &c.Start))...)
}

// Gradient2 is a limiter that compares how long calls take in a second with how long they
// took over some ten minutes: as long as that is less than Tolerance times more it adds
// Headroom, else it multiplies by the ratio, but never by less than a half. Make one with
// [NewGradient2] for each gate; it belongs to its gate's lock.
//
// The law is that of Netflix's concurrency-limits, with its constants: windows of a
// second and at least ten calls, a baseline of 600 windows, a fifth of the way in each.
// Its baseline learns from overload too, unless Healthy bounds it.
type Gradient2 struct {
	cfg    Gradient2Config
	window struct {
		ends      time.Time // zero: it has not begun
		sum       float64   // seconds that its calls took
		calls     float64
		mostInUse int // units that ran at once
	}
	usual   float64 // seconds that calls take
	windows float64 // that are in it
	steps
}

const (
	windowLength   = time.Second
	leastInWindow  = 10
	warmUpWindows  = 10  // whose plain mean begins the baseline
	usualWindows   = 600 // of the baseline
	smoothing      = 0.2 // part of the way to where the gradient says
	steepest       = 0.5
	recovery       = 0.95 // of a baseline that is more than twice what calls take now
	baselineIsHigh = 2
)

// NewGradient2 returns a limiter that knows nothing yet.
func NewGradient2(c Gradient2Config) (*Gradient2, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	return &Gradient2{cfg: c, steps: newSteps(c.Min, c.Max, c.Start)}, nil
}

// Observe implements [forebay.Limiter].
func (l *Gradient2) Observe(o *forebay.Observation) int {
	switch l.learn(o) {
	case refused:
		l.decrease(o.Now, l.limit*backoff)
	case ended:
		w := &l.window
		if w.ends.IsZero() {
			w.ends = o.Now.Add(windowLength)
		}
		w.sum += o.Held.Seconds()
		w.calls++
		w.mostInUse = max(w.mostInUse, o.InFlight+o.Cost)
		if w.calls >= leastInWindow && !o.Now.Before(w.ends) {
			l.judge(w.sum/w.calls, float64(w.mostInUse))
			w.sum, w.calls, w.mostInUse, w.ends = 0, 0, 0, o.Now.Add(windowLength)
		}
	}
	return l.whole()
}

// judge moves the limit at the end of a window.
func (l *Gradient2) judge(took, inUse float64) {
	l.windows++
	part := 1 / l.windows
	if l.windows > warmUpWindows {
		part = 2.0 / (usualWindows + 1)
	}
	l.usual += part * (took - l.usual)
	if l.usual > baselineIsHigh*took {
		l.usual *= recovery
	}
	if inUse < l.limit/2 {
		return
	}
	usual := l.usual
	if h := l.cfg.Healthy.Seconds(); h > 0 {
		usual = min(usual, h)
	}
	gradient := 1.0
	if took > 0 {
		gradient = max(steepest, min(1, l.cfg.Tolerance*usual/took))
	}
	want := l.limit*gradient + float64(l.cfg.Headroom)
	l.set(l.limit + smoothing*(want-l.limit))
}
