package forebaytest

import (
	"slices"
	"sync"

	"example.com/forebay"
)

// Limit is a [forebay.Limiter] that wants what the test sets, and keeps what it
// was told. The zero value leaves the gate's limit as it is. It is safe for
// concurrent use; give each gate its own.
type Limit struct {
	mu   sync.Mutex // guards what follows
	want int        // 0: nothing set
	seen []forebay.Observation
}

// Set makes n units the limit that l wants, from the next observation on: a gate
// asks its limiter only when something happens. 0 makes it want nothing again,
// and leave the limit as it is. Below 0 it panics.
func (l *Limit) Set(n int) {
	if n < 0 {
		panic("forebaytest: Limit.Set below 0; 0 leaves the limit as it is")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.want = n
}

// Observe keeps a copy of the observation and returns the limit that was set, or
// else the one in force.
func (l *Limit) Observe(o *forebay.Observation) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, *o)
	if l.want == 0 {
		return o.Limit
	}
	return l.want
}

// Observations returns a copy of everything that l was told, in order.
func (l *Limit) Observations() []forebay.Observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// Reset forgets what l was told; the limit that was set stays.
func (l *Limit) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = nil
}
