package story

import "time"

// clock is the only place of this package that reads the time: refusals are stamped with
// it.
func clock() time.Time { return time.Now() }
