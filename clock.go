package forebay

import (
	"math"
	"time"
)

// epoch is where this process began to count. Only differences to it matter.
var epoch = time.Now()

// clock is what gates take for the time. Apart from onClock, from term, and from the
// display of when something began, this package reads no other. It moves with the
// monotonic clock alone, so no step of the wall clock shortens or stretches a wait,
// and costs half of what time.Now does. In a testing/synctest bubble it moves with
// the bubble.
func clock() time.Time { return epoch.Add(time.Since(epoch)) }

// term is until when a cluster lends slots. It ends by the monotonic clock, or by the
// wall clock if that comes first: the monotonic one stands still while a machine is
// suspended, and a step of the wall clock cannot be told from that.
type term struct {
	until time.Time
	wall  int64     // the same, in nanoseconds of the wall clock alone
	due   time.Time // the same, as clock tells the time
}

// termOver is the term of slots that nobody has lent yet, or that were withdrawn.
var termOver = &term{wall: math.MinInt64}

func termUntil(t time.Time) *term { return &term{t, t.UnixNano(), onClock(clock(), t)} }

// over reports whether the term has ended. A nil one never does.
func (t *term) over() bool {
	if t == nil {
		return false
	}
	now := time.Now()
	return !now.Before(t.until) || now.UnixNano() >= t.wall
}

// passed reports whether the term has ended by the monotonic clock alone.
func (t *term) passed(now time.Time) bool { return t != nil && !now.Before(t.due) }

// onClock returns the moment of clock at which d, which may know nothing of the
// monotonic clock, is due.
func onClock(now, d time.Time) time.Time { return now.Add(time.Until(d)) }
