package rivals

import (
	"context"
	"math/rand/v2"
	"time"
)

// answerWithin is how long a release waits for the server.
const answerWithin = 2 * time.Second

// usualPoll is a common choice where nobody is woken.
const usualPoll = 10 * time.Millisecond

// poll tries until it works, fails, or the patience or ctx ends.
func (c Config) poll(ctx context.Context, try func() (bool, error)) error {
	if ok, err := try(); ok || err != nil {
		return err
	}
	pause := c.Poll
	if pause == 0 {
		pause = usualPoll
	}
	for end := time.Now().Add(c.MaxWait); ; {
		rest := time.Until(end)
		if rest <= 0 {
			return ErrFull
		}
		timer := time.NewTimer(min(rest, pause/2+rand.N(pause)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		if ok, err := try(); ok || err != nil {
			return err
		}
	}
}

// failed is the end of an attempt that did not work.
func (c Config) failed(ctx context.Context, err error) (func(), error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case c.FailOpen && err != ErrFull:
		return func() {}, nil
	}
	return nil, err
}

// letGo runs a command that gives a slot back. What it says is of no use: nobody
// would try again.
func letGo(command func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_ = command(ctx)
}

// leaseOr returns the configured time or, if there is none, the usual one.
func (c Config) leaseOr(usual time.Duration) time.Duration {
	if c.Lease > 0 {
		return c.Lease
	}
	return usual
}
