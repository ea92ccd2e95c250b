package forebay

import "time"

// epoch is where this process began to count. Only differences to it matter.
var epoch = time.Now()

// clock is what gates take for the time. Apart from onClock, and from the display
// of when something began, this package reads no other. It moves with the monotonic
// clock alone, so no step of the wall clock shortens or stretches a wait,
// and costs half of what time.Now does. In a testing/synctest bubble it moves with
// the bubble.
func clock() time.Time { return epoch.Add(time.Since(epoch)) }

// onClock returns the moment of clock at which d, which may know nothing of the
// monotonic clock, is due.
func onClock(now, d time.Time) time.Time { return now.Add(time.Until(d)) }
