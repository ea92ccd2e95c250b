package cluster

import "time"

// breaker says whether the store is away, and when it may be asked again. While it is
// away nobody asks but the exchanger, in the background.
type breaker struct {
	failures int       // in a row
	since    time.Time // when the first of them was sent; zero: the last exchange went well
	next     time.Time // no exchange before
	setup    bool      // the store was reached, and is not set up to work
	text     string    // of the last failure
}

const (
	// firstRetry follows the first failure: most are a single lost message.
	firstRetry = 10 * time.Millisecond
	// enoughFailures in a row open the breaker. One may be a lost message.
	enoughFailures = 2
)

// failed notes an exchange that failed, and puts off the next: by twice as long each
// time, up to a quarter of a lease, and spread so that instances which failed together
// do not come back together.
func (b *breaker) failed(now, sent time.Time, setup bool, text string, spread uint64, longest time.Duration) {
	if b.failures == 0 {
		b.since = sent
	}
	wait := min(firstRetry<<min(b.failures, 16), longest)
	b.failures++
	b.setup, b.text = setup, text
	spread = (spread + uint64(b.failures)) * 0x9e3779b97f4a7c15 >> 48 // 0 to 65535
	b.next = now.Add(wait - wait*time.Duration(spread)>>17)           // half of it to all of it
}

// well notes an exchange that went well.
func (b *breaker) well() { *b = breaker{} }

// open reports whether the store counts as away.
func (b *breaker) open() bool { return b.failures >= enoughFailures || b.setup }
