package forebaytest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Faults are what befalls the messages between an instance and a [Store]. The chances
// are from 0 to 1. The zero value is a store that answers at once, always.
type Faults struct {
	// Takes is how long an exchange takes: half of it on the way there. A push takes
	// half of it. Jitter is added to each way: up to as much, by chance.
	Takes, Jitter time.Duration
	// LoseRequest and LoseReply are the chances that an exchange fails without having
	// been one, and that it fails although it was. Either way the caller hears of it at
	// once, or waits in vain.
	LoseRequest, LoseReply float64
	// Delay is the chance that a request arrives only after up to LongDelay: behind others,
	// and mostly after its caller has given up.
	Delay float64
	// Repeat is the chance that a request arrives once more, up to LongDelay later.
	Repeat    float64
	LongDelay time.Duration
	// LosePush is the chance that a push is lost.
	LosePush float64
	// Err fails everything at once, and ends subscriptions. Nil: nothing does.
	Err error
}

// errLost is what a connection that broke says.
var errLost = errors.New("forebaytest: the connection was reset")

// fate is what becomes of one exchange.
type fate struct {
	there, back time.Duration
	arrives     bool
	again       time.Duration // after the first arrival; below 0: it does not
	replies     bool
	knows       bool // its caller is told at once that it failed, rather than not at all
	err         error
}

// chance is the faults of one way to a store, and the dice.
type chance struct {
	mu     sync.Mutex // guards what follows
	faults Faults
	dice   *rand.Rand
}

func newChance(seed uint64) *chance { return &chance{dice: rand.New(rand.NewPCG(seed, 1))} }

func (c *chance) set(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = f
}

// exchange throws the dice for one exchange.
func (c *chance) exchange() fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.faults
	if f.Err != nil {
		return fate{err: f.Err}
	}
	happens := func(p float64) bool { return p > 0 && c.dice.Float64() < p }
	upTo := func(d time.Duration) time.Duration { return time.Duration(c.dice.Int64N(int64(d) + 1)) }
	e := fate{there: f.Takes/2 + upTo(f.Jitter), back: f.Takes/2 + upTo(f.Jitter), again: -1}
	e.arrives = !happens(f.LoseRequest)
	e.replies = e.arrives && !happens(f.LoseReply)
	e.knows = happens(0.5)
	if happens(f.Delay) {
		e.there += upTo(f.LongDelay)
	}
	if happens(f.Repeat) {
		e.again = upTo(f.LongDelay)
	}
	return e
}

// push returns how long a push takes, and false if it is lost.
func (c *chance) push() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.faults
	if f.Err != nil || f.LosePush > 0 && c.dice.Float64() < f.LosePush {
		return 0, false
	}
	return f.Takes/2 + time.Duration(c.dice.Int64N(int64(f.Jitter)+1)), true
}

// err returns what fails everything now, nil if nothing does.
func (c *chance) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults.Err
}

// seed returns one for the dice of another.
func (c *chance) seed() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dice.Uint64()
}
