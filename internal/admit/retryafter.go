package admit

import "time"

// RetryAfter returns in how many seconds a refused caller had best come back, when the
// line ahead of it would take that long (0: unknown): ahead rounded up, plus a random
// part of up to 2 s, or half of that if it is more, so that those refused together do
// not come back together; from lo to hi. random returns a uniform number in [0, n).
func RetryAfter(ahead time.Duration, lo, hi int, random func(n int) int) int {
	base := min(max(lo, WholeSeconds(ahead)), hi)
	return min(base+random(max(2, base/2)+1), hi)
}

// WholeSeconds rounds up, to at least 1.
func WholeSeconds(d time.Duration) int {
	if d <= time.Second {
		return 1
	}
	return int((d-1)/time.Second) + 1
}
