package forebaytest

import "time"

// stopwatch measures the time since it was made. In a bubble that is exact. This file is
// the only one of the kit that reads a clock.
type stopwatch struct{ start time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

// elapsed returns the time since the start.
func (w stopwatch) elapsed() time.Duration { return time.Since(w.start) }

// mayWait is how long a test outside bubbles waits for what does not come: far longer
// than any machine needs, since no test passes by it.
var mayWait = time.Minute

// overdue returns when a wait that begins now is given up.
func overdue() time.Time { return time.Now().Add(mayWait) }

func past(t time.Time) bool { return time.Now().After(t) }
