package verdict

import (
	"math/bits"
	"time"
)

// spread counts times by their size, four classes for each doubling from a microsecond
// on.
type spread [spreadLen]uint32

const (
	spreadLen  = 4 * 32 // to an hour and more
	halveAbove = 1 << 14
)

func (s *spread) add(d time.Duration) {
	at := &s[classOf(d)]
	*at++
	if *at > halveAbove { // what was long ago weighs less and less
		for i := range s {
			s[i] /= 2
		}
	}
}

// classOf: two bits below the highest one.
func classOf(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	if us < 4 {
		return int(us)
	}
	top := bits.Len64(us) - 1
	return min(4*(top-1)+int(us>>(top-2)&3), spreadLen-1)
}

// endOf is the time that all of a class are below.
func endOf(class int) time.Duration {
	if class < 4 {
		return time.Duration(class) * time.Microsecond
	}
	top, part := class/4+1, class%4
	return time.Duration(5+part) << (top - 2) * time.Microsecond
}

func (s *spread) n() (n int) {
	for _, c := range s {
		n += int(c)
	}
	return n
}

// quantile returns a time that such a share is not above; 0 of nothing.
func (s *spread) quantile(q float64) time.Duration {
	left := q * float64(s.n())
	for i, c := range s {
		if left -= float64(c); c > 0 && left <= 0 {
			return endOf(i)
		}
	}
	return 0
}
