package adaptive

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"example.com/forebay"
)

// VegasConfig is what a [Vegas] is told. The zero value of each field is its default.
type VegasConfig struct {
	// Healthy is the longest that an unloaded call can take: what is measured above it
	// is believed to be load. 0 means that whatever is measured is believed, which an
	// incident of an hour makes the new normal.
	Healthy time.Duration
	// Min is the least that the limit ever is. 0 means 1.
	Min int
	// Max is the most that it ever is. 0 means 1000.
	Max int
	// Start is the limit before anything is known. 0 means the gate's own, its
	// MaxInFlight, or what Min and Max leave of it.
	Start int
	// Seed makes the times at which the baseline is measured anew differ from one
	// limiter to another. Any number does.
	Seed uint64
}

func (c *VegasConfig) fill() error {
	return errors.Join(healthyError(c.Healthy), fillBounds(&c.Min, &c.Max, &c.Start))
}

func healthyError(d time.Duration) error {
	if d < 0 || d > longest {
		return fmt.Errorf("adaptive: Healthy is %v; it must be 0 (meaning unknown) to 24h", d)
	}
	return nil
}

// Vegas is a limiter that estimates how many calls queue in the backend, as limit × (1
// - shortest ÷ measured time), and keeps them few. Make one with [NewVegas] for each
// gate; it belongs to its gate's lock.
//
// The law is that of TCP Vegas (Brakmo and Peterson 1995) with the logarithmic steps of
// Netflix's concurrency-limits: below log10 of the limit it adds six of them, below
// three it adds one, above six it takes one away. Now and then, after some thirty
// rounds of calls, it takes what a call takes as the shortest time. It wants calls that
// all take about the same time; where they do not, it ends at a few calls.
type Vegas struct {
	cfg     VegasConfig
	dice    *rand.Rand
	base    float64 // seconds, the shortest that was measured; 0: not known
	ends    float64 // since the baseline was measured anew
	renewal float64 // of it, in rounds
	steps
}

// NewVegas returns a limiter that knows nothing yet.
func NewVegas(c VegasConfig) (*Vegas, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	l := &Vegas{cfg: c, dice: rand.New(rand.NewPCG(c.Seed, 5)), steps: newSteps(c.Min, c.Max, c.Start)}
	l.renew(0)
	return l, nil
}

// renew begins with another baseline, of so many seconds.
func (l *Vegas) renew(base float64) {
	l.base, l.ends, l.renewal = base, 0, 30*(0.5+0.5*l.dice.Float64())
}

// Observe implements [forebay.Limiter].
func (l *Vegas) Observe(o *forebay.Observation) int {
	switch l.learn(o) {
	case refused:
		l.decrease(o.Now, l.limit*backoff)
	case ended:
		l.ended(o)
	}
	return l.whole()
}

func (l *Vegas) ended(o *forebay.Observation) {
	took := o.Held.Seconds()
	if l.ends++; l.ends >= l.renewal*l.limit || l.base == 0 {
		l.renew(took)
	}
	l.base = min(l.base, took)
	if took == 0 || !halfFull(o) {
		return
	}
	base := l.base
	if h := l.cfg.Healthy.Seconds(); h > 0 {
		base = min(base, h)
	}
	step := max(1, math.Floor(math.Log10(l.limit)))
	switch queued := math.Ceil(l.limit * (1 - base/took)); {
	case queued <= step:
		l.set(l.limit + 6*step)
	case queued < 3*step:
		l.set(l.limit + step)
	case queued > 6*step:
		l.set(l.limit - step)
	}
}
