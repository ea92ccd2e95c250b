package cluster

import "time"

// usage measures for how long calls hold a unit, by what comes back.
type usage struct {
	busy  time.Duration // units times the time that they were out
	ended int           // units that came back meanwhile
}

// usageMemory is over how many units it is measured.
const usageMemory = 64

// note says how many units came back, of those that were out for a time.
func (u *usage) note(back, out int, passed time.Duration) {
	if back == 0 || passed > time.Second { // nothing was to come back, or nobody looked
		return
	}
	u.busy += time.Duration(out+back) * passed
	u.ended += back
	if u.ended > usageMemory {
		u.busy /= 2
		u.ended /= 2
	}
}

// hold returns for how long a call holds its unit; 0 while that is not known.
func (u *usage) hold() time.Duration {
	if u.ended == 0 {
		return 0
	}
	return u.busy / time.Duration(u.ended)
}
