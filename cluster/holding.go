package cluster

import (
	"cmp"
	"slices"
)

// holding is the numbered slots of an instance, for a fenced gate; nil for any other, of
// which the counts say enough.
type holding map[int]*numbered

// numbered is one number. It stays once it was held, so that an old message about it is
// known for what it is.
type numbered struct {
	fence uint64 // the highest that we know of
	state slotState
	extra bool // the ledger of this epoch does not know that it is ours
}

type slotState uint8

const (
	slotGone slotState = iota // not ours any more
	slotHere                  // ours, and the gate does not have it
	slotLent                  // the gate has it
	slotBack                  // given back, and the ledger was not told yet
)

// add takes slots that were lent to us, and not what we had and gave back.
func (h holding) add(slots []Slot) {
	if h == nil {
		return
	}
	for _, s := range slots {
		switch known := h[s.Number]; {
		case known == nil:
			h[s.Number] = &numbered{fence: s.Fence, state: slotHere}
		case s.Fence > known.fence:
			*known = numbered{fence: s.Fence, state: slotHere}
		case s.Fence == known.fence:
			known.extra = false
		}
	}
}

// are makes the slots all that is ours; the gate has none.
func (h holding) are(slots []Slot) {
	for _, s := range h {
		s.state = slotGone
	}
	h.add(slots)
	for _, s := range slots {
		if known := h[s.Number]; known != nil && known.fence == s.Fence {
			known.state = slotHere // also if we had it before, or gave it back in vain
		}
	}
}

// adopt takes over what another ledger counts as ours, and returns how much of that is:
// all of it at first, and later what we have not given back in a message that is lost.
func (h holding) adopt(slots []Slot, first bool) (ours int) {
	if first {
		h.are(slots)
		return len(slots)
	}
	for _, s := range h {
		s.extra = s.state == slotLent
	}
	for _, s := range slots {
		known := h[s.Number]
		if known == nil || known.state == slotGone || known.fence != s.Fence {
			continue
		}
		known.extra = false
		if known.state == slotBack {
			known.state = slotHere
		}
		ours++
	}
	return ours
}

// lend returns what the gate does not have, and has it from now on.
func (h holding) lend() []Slot {
	return h.collect(func(s *numbered) bool {
		if s.state != slotHere {
			return false
		}
		s.state = slotLent
		return true
	})
}

// held returns what is ours and was not given back.
func (h holding) held() []Slot {
	return h.collect(func(s *numbered) bool { return s.state == slotHere || s.state == slotLent })
}

func (h holding) collect(want func(*numbered) bool) (slots []Slot) {
	for n, s := range h {
		if want(s) {
			slots = append(slots, Slot{Number: n, Fence: s.fence})
		}
	}
	slices.SortFunc(slots, func(a, b Slot) int { return cmp.Compare(a.Number, b.Number) })
	return slots
}

// back notes that the gate gave slots back.
func (h holding) back(slots []Slot) {
	for _, s := range slots {
		if known := h[s.Number]; known != nil && known.fence == s.Fence {
			known.state = slotBack
		}
	}
}

// move gives up to n slots another state.
func (h holding) move(from, to slotState, n int) {
	for _, s := range h {
		if n > 0 && s.state == from {
			s.state = to
			n--
		}
	}
}

// told notes that the ledger is told what was given back.
func (h holding) told() { h.move(slotBack, slotGone, len(h)) }

// withdrawn notes that the gate has none any more.
func (h holding) withdrawn() { h.move(slotLent, slotHere, len(h)) }

// shed gives up what the ledger does not know to be ours.
func (h holding) shed() {
	for _, s := range h {
		if s.extra {
			s.state, s.extra = slotGone, false
		}
	}
}
