package adaptive

import (
	"fmt"
	"time"

	"example.com/forebay"
)

const (
	longest  = 24 * time.Hour
	backoff  = 0.9                    // what a refusal of the backend's own leaves of a limit
	shortest = 100 * time.Millisecond // between two decreases: a burst of refusals is one sign
)

// steps is what limiters have in common that learn from calls one by one: a limit between
// two bounds, and a decrease at most once in the time that calls take.
type steps struct {
	least, most float64
	limit       float64 // a fraction of a call admits nobody; 0: the gate's own, once it is known
	took        residence
	cutNext     time.Time // no decrease before
}

func newSteps(least, most, start int) steps {
	return steps{least: float64(least), most: float64(most), limit: float64(start)}
}

// lesson is what an observation is to such a limiter.
type lesson uint8

const (
	nothing lesson = iota // of the backend
	ended                 // a call came to its end
	refused               // the backend refused it
)

// learn says what an observation teaches.
func (s *steps) learn(o *forebay.Observation) lesson {
	if s.limit == 0 {
		s.set(float64(o.Limit))
	}
	if o.Kind != forebay.ObservedFinish {
		return nothing
	}
	switch o.Outcome {
	case forebay.OutcomeDone:
		s.took.add(o.Held.Seconds(), s.whole())
		return ended
	case forebay.OutcomeOverloaded:
		return refused
	}
	return nothing
}

func (s *steps) set(limit float64) { s.limit = max(s.least, min(s.most, limit)) }

// decrease lowers the limit, unless that has just been done: what ends meanwhile began
// before, and says nothing of the lower limit.
func (s *steps) decrease(now time.Time, to float64) {
	if now.Before(s.cutNext) {
		return
	}
	s.set(to)
	s.cutNext = now.Add(max(shortest, time.Duration(min(s.took.mean, longest.Seconds())*float64(time.Second))))
}

// whole is the limit that is wanted. With one of 4.9 a fifth call would be too many.
func (s *steps) whole() int { return int(s.limit) }

// halfFull reports whether at least half of the limit ran until this call ended. With
// less the limit was not what mattered, and nothing says that more would do.
func halfFull(o *forebay.Observation) bool { return 2*(o.InFlight+o.Cost) >= o.Limit }

// fillBounds puts in the defaults of a limit's bounds and says what is wrong with them.
func fillBounds(least, most, start *int) error {
	if *least < 0 || *most < 0 || *start < 0 {
		return fmt.Errorf("adaptive: Min is %d, Max %d, Start %d; none may be below 0", *least, *most, *start)
	}
	*least = max(1, *least)
	if *most == 0 {
		*most = max(1000, *least)
	}
	if *most < *least || *most > mostUnits {
		return fmt.Errorf("adaptive: Max is %d; it must be from Min, %d, to %d", *most, *least, mostUnits)
	}
	if *start > 0 && (*start < *least || *start > *most) {
		return fmt.Errorf("adaptive: Start is %d; it must be from Min, %d, to Max, %d", *start, *least, *most)
	}
	return nil
}

const mostUnits = 1<<20 - 1 // what a gate can count
