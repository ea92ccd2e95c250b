package story

import (
	"iter"
	"slices"
)

// pages is how many stories are made room for at once.
const pages = 64

// chunk is room for stories of one gate.
type chunk struct {
	pages [pages]page
	n     int // that are written
}

// shelf keeps the latest stories of each gate. While there is room everybody gets more;
// then who has most of it gives the oldest away, so that one gate's storm does not cost
// another its last refusals.
type shelf struct {
	most   int // chunks, over all gates
	taken  int
	byGate map[string][]*chunk
	whole  int64 // every story after this instant is there; 0: every one
}

// next returns where the next story of a gate is written.
func (s *shelf) next(gate string) *page {
	own := s.byGate[gate]
	if len(own) == 0 || own[len(own)-1].n == pages {
		room := s.room(gate)
		own = append(s.byGate[gate], room)
		if s.byGate == nil {
			s.byGate = map[string][]*chunk{}
		}
		s.byGate[gate] = own
	}
	last := own[len(own)-1]
	last.n++
	return &last.pages[last.n-1]
}

// room returns an empty chunk. Those that are given up are used again: somebody may still
// look for a call in one, and would keep it in memory.
func (s *shelf) room(gate string) *chunk {
	if s.taken < s.most {
		s.taken++
		return &chunk{}
	}
	from, most := gate, s.byGate[gate]
	for name, own := range s.byGate {
		if len(own) > len(most) || len(own) == len(most) && own[0].pages[0].at < most[0].pages[0].at {
			from, most = name, own
		}
	}
	oldest := most[0]
	s.whole = max(s.whole, oldest.pages[oldest.n-1].at)
	s.byGate[from] = slices.Delete(most, 0, 1)
	if len(s.byGate[from]) == 0 {
		delete(s.byGate, from)
	}
	oldest.n = 0
	return oldest
}

// all goes through everything that is kept, in no order.
func (s *shelf) all() iter.Seq[*page] {
	return func(yield func(*page) bool) {
		for _, own := range s.byGate {
			for _, c := range own {
				for i := range c.n {
					if !yield(&c.pages[i]) {
						return
					}
				}
			}
		}
	}
}

// latest returns the latest stories of each gate, n of each at most, in no order: whoever
// looks every second must not hold up the calls.
func (s *shelf) latest(n int) (found []page) {
	for _, own := range s.byGate {
		left := n
		for i := len(own) - 1; i >= 0 && left > 0; i-- {
			c := own[i]
			from := max(0, c.n-left)
			found = append(found, c.pages[from:c.n]...)
			left -= c.n - from
		}
	}
	return found
}
