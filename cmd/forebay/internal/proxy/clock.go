package proxy

import "time"

// clock is what upstreams are timed by.
func clock() time.Time { return time.Now() }
