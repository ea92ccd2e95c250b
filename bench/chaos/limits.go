//go:build linux

package main

import (
	"time"
)

// settling is within which a lower limit must be followed everywhere: an instance that
// nobody tells hears of it with its next sign of life, and what runs then may run on.
const settling = 1500 * time.Millisecond

// A change of the limit, and for how long it is watched.
type change struct {
	units int
	watch time.Duration
}

// changeLimit sets the limit by hand, each time through another worker.
func changeLimit(all ...change) func(*stage) error {
	return func(st *stage) error {
		limit := st.sheet.Limit
		for i, c := range all {
			began := now()
			if err := st.members[i%len(st.members)].tell(order{Do: doLimit, Limit: c.units}); err != nil {
				return err
			}
			if c.units < limit {
				began = began.add(settling)
			}
			limit = c.units
			st.bound = st.bound.then(began, limit)
			time.Sleep(c.watch)
		}
		return nil
	}
}

// followedLimits demands that each limit was also reached: nobody may get away with
// keeping to a lower one.
func followedLimits(st *stage, v *verdict) {
	for i, s := range st.bound {
		end := st.later.to
		if i+1 < len(st.bound) {
			end = st.bound[i+1].from
		}
		from := max(s.from, st.before.from)
		most := overlapOf(within(st.story.holds, span{from, end}), always(1<<20)).most
		if most < s.units {
			v.fault("only %d of %d units were ever held while that was the limit", most, s.units)
		}
	}
}

// within cuts holds down to a span.
func within(holds []hold, s span) (all []hold) {
	for _, h := range holds {
		h.from, h.to = max(h.from, s.from), min(h.to, s.to)
		if h.from < h.to {
			all = append(all, h)
		}
	}
	return all
}

// deploy replaces the workers one by one with others that are configured with another
// limit, waits, and then does it again with the limit of before. As long as both kinds
// are alive the lower limit holds.
func deploy(units int, pace, side time.Duration) func(*stage) error {
	return func(st *stage) error {
		old := st.sheet.Limit
		ready, err := st.replace(units, pace)
		if err != nil {
			return err
		}
		st.bound = st.bound.then(ready.add(settling), units)
		time.Sleep(side)
		if _, err := st.replace(old, pace); err != nil {
			return err
		}
		st.bound = st.bound.then(st.members[len(st.members)-st.crew-1].gone.add(-time.Second), old)
		return nil
	}
}

// replace starts a worker with that limit for each of the last ones, and ends those in
// good order. It returns when the first had started.
func (st *stage) replace(units int, pace time.Duration) (first instant, err error) {
	st.sheet.Limit = units
	old := st.members[len(st.members)-st.crew:]
	for i, m := range old {
		next, err := st.hire(len(st.members))
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first = now()
		}
		st.members = append(st.members, next)
		time.Sleep(pace / 2)
		if err := m.part(); err != nil {
			return 0, err
		}
		time.Sleep(pace / 2)
	}
	return first, nil
}
