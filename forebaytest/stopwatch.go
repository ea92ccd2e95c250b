package forebaytest

import "time"

// stopwatch measures the time since it was made. In a bubble that is exact. It is
// the only place of the kit that reads a clock.
type stopwatch struct{ start time.Time }

func startWatch() stopwatch { return stopwatch{time.Now()} }

// elapsed returns the time since the start.
func (w stopwatch) elapsed() time.Duration { return time.Since(w.start) }
