package simulate

import "math"

// instant is a simulated time, in nanoseconds from the start.
type instant int64

const never instant = math.MaxInt64

// agenda says what happens next. Each thing that can happen of itself is one event in
// it, there from the start, which is set to another time again and again. There are few:
// a client's next call is one, not each of its calls. Of two at one instant the one that
// was added first comes first.
type agenda struct{ events heap }

// event is something that happens at a time.
type event struct {
	entry
	at instant
}

// add adds an event that happens never, until it is set.
func (a *agenda) add(fire func()) *event {
	e := &event{at: never, entry: entry{key: float64(never), order: uint64(len(a.events)), fire: fire}}
	a.events.push(&e.entry)
	return e
}

// set moves an event to another time.
func (a *agenda) set(e *event, at instant) {
	if at != e.at {
		e.at = at
		a.events.move(&e.entry, float64(at))
	}
}
