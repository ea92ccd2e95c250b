package forebay

import (
	"sync/atomic"
	"unsafe"

	"example.com/forebay/internal/admit"
)

// slots is a gate's table of slots, and the border between the two ways to
// count. While the machine has nothing to decide, some of its room is lent: open
// says through how many slots a caller may look for a free one. While open is 0
// the machine counts, every free slot is closed, and whoever comes or goes takes
// the gate's lock.
//
// The border is crossed under the lock only: collect sets open to 0 first and
// closes what is free after. A caller reads open before and again after its one
// swap, so each swap is either seen by collect's pass, or sees that open is 0
// and brings its slot to the lock.
type slots struct {
	open  atomic.Uint32
	table atomic.Pointer[slotTable]

	gate *Gate // whose they are

	// Guarded by the gate's lock.
	closed []*slot    // of the newest table
	room   int        // what may be lent besides what is; while open is not 0
	top    int        // no slot of the newest table from here on was ever opened
	batch  int        // how many slots to lend next
	wide   admit.Loan // what leases of more than one unit take
}

// slotTable is one allocation of slots. A table that is too small is followed by
// one of twice the size; it stays while leases are out on it.
type slotTable struct {
	slots []slot
	older atomic.Pointer[slotTable]
}

const (
	// firstSlots carries most gates without growing, at 1 KiB a gate.
	firstSlots = 16
	// firstBatch is lent at first, then twice as many each time up to maxBatch:
	// what is lent must be closed again, one swap each, before the machine counts.
	firstBatch = 16
	maxBatch   = 256
	// maxProbes is how many slots a caller looks at before it takes the lock: with half
	// of them taken it finds one in two, and a search of all would cost a gate with a
	// thousand calls out more than the lock does.
	maxProbes = 64
)

// find claims a free slot among the open ones. It starts where the goroutine's
// stack lies, which costs nothing to find out, spreads goroutines over the slots
// and brings the same goroutine back to the one whose memory it has at hand.
func (s *slots) find(state uint64) (*slot, uint64) {
	open := uint64(s.open.Load())
	if open == 0 {
		return nil, 0
	}
	var here byte
	table := s.table.Load().slots
	open = min(open, uint64(len(table)))
	i := uint64(uint32(uintptr(unsafe.Pointer(&here))>>10)*0x9e3779b1) * open >> 32
	for range min(open, maxProbes) {
		sl := &table[i]
		if word, ok := sl.claim(state); ok {
			return sl, word
		}
		if i++; i == open {
			i = 0
		}
	}
	return nil, 0
}

// lendLocked opens some of room, so that there is a slot for whoever comes.
func (s *slots) lendLocked(room int) {
	if s.batch == 0 {
		s.batch = firstBatch
	}
	n := min(room, s.batch)
	s.room = room - n
	s.batch = min(2*s.batch, maxBatch)
	for ; n > 0; n-- {
		sl := s.popLocked()
		sl.word.Store(with(sl.word.Load(), slotFree))
	}
	s.open.Store(uint32(s.top))
}

// moreLocked lends more of the room while some is lent, and claims one slot of it for
// a caller that has found none. Nil: nothing is lent, or all of it.
func (s *slots) moreLocked(state uint64) (*slot, uint64) {
	if s.open.Load() == 0 || s.room == 0 {
		return nil, 0
	}
	sl := s.popLocked()
	word := with(sl.word.Load(), state) + slotNext
	sl.word.Store(word)
	s.lendLocked(s.room - 1)
	return sl, word
}

// collectLocked ends the loan: it closes every free slot and counts the others.
// False if nothing was lent.
func (s *slots) collectLocked() (admit.Loan, bool) {
	if s.open.Load() == 0 {
		return admit.Loan{}, false
	}
	s.open.Store(0)
	loan := s.wide
	newest := s.table.Load()
	used := s.top
	s.top = 0
	for kept, t := newest, newest; t != nil; t = t.older.Load() {
		out := 0
		for i := used - 1; i >= 0; i-- { // so that the lowest are lent first
			out += s.inspectLocked(&t.slots[i], &loan)
		}
		if older := t.older.Load(); older != nil {
			used = len(older.slots) // all of which were
		}
		if t == newest || out > 0 {
			kept = t
		} else {
			kept.older.Store(t.older.Load())
		}
	}
	return loan, true
}

// inspectLocked closes a free slot, counts what was claimed on it since it was
// last seen, and returns 1 if a lease is out on it.
func (s *slots) inspectLocked(sl *slot, loan *admit.Loan) int {
	w := sl.word.Load()
	for stateOf(w) == slotFree {
		if sl.word.CompareAndSwap(w, with(w, slotClosed)) {
			s.pushLocked(sl)
			break
		}
		w = sl.word.Load() // claimed meanwhile
	}
	claimed := generationOf(w) - sl.seen
	loan.Grants += claimed
	sl.seen = generationOf(w)
	if stateOf(w) <= slotFree {
		if claimed > 0 {
			loan.Gone++
		}
		return 0
	}
	if s.newest(sl) {
		s.top = max(s.top, sl.index+1)
	}
	if sl.wide == 0 {
		loan.Units++
		loan.Calls++
	}
	return 1
}

// grantLocked claims a closed slot for a call that the machine has admitted, and
// counted.
func (s *slots) grantLocked(state uint64, cost int) (*slot, uint64) {
	sl := s.popLocked()
	word := with(sl.word.Load(), state) + slotNext
	sl.seen = generationOf(word)
	if cost > 1 {
		sl.wide = cost
		s.wide.Units += cost
		s.wide.Calls++
	}
	sl.word.Store(word)
	return sl, word
}

// closeLocked takes a slot of the given word, on which no lease is out any more,
// back to the machine; false if it is not in that state.
func (s *slots) closeLocked(sl *slot, word uint64) bool {
	if !sl.word.CompareAndSwap(word, with(word, slotClosed)) {
		return false
	}
	if sl.wide > 0 {
		s.wide.Units -= sl.wide
		s.wide.Calls--
		sl.wide = 0
	}
	if sl.numbers != nil {
		s.gate.cluster.giveBackLocked(sl.numbers)
	}
	s.pushLocked(sl)
	return true
}

func (s *slots) newest(sl *slot) bool {
	t := s.table.Load().slots
	return sl.index < len(t) && &t[sl.index] == sl
}

func (s *slots) pushLocked(sl *slot) {
	if s.newest(sl) {
		s.closed = append(s.closed, sl)
	}
}

func (s *slots) popLocked() *slot {
	if len(s.closed) == 0 {
		s.growLocked()
	}
	sl := s.closed[len(s.closed)-1]
	s.closed = s.closed[:len(s.closed)-1]
	s.top = max(s.top, sl.index+1)
	return sl
}

func (s *slots) growLocked() {
	old := s.table.Load()
	size := firstSlots
	if old != nil {
		size = 2 * len(old.slots)
	}
	t := &slotTable{slots: make([]slot, size)}
	t.older.Store(old)
	s.closed = make([]*slot, 0, size)
	for i := size - 1; i >= 0; i-- {
		t.slots[i].index, t.slots[i].gate = i, s.gate
		s.closed = append(s.closed, &t.slots[i])
	}
	s.top = 0
	s.table.Store(t)
}

// outLocked shows visit every slot on which a lease is out, while nothing is lent.
func (s *slots) outLocked(visit func(*slot)) {
	for t := s.table.Load(); t != nil; t = t.older.Load() {
		for i := range t.slots {
			if stateOf(t.slots[i].word.Load()) > slotFree {
				visit(&t.slots[i])
			}
		}
	}
}

// each shows visit what is kept of every lease that is out, but for those that
// are just being taken or given back, whose number it returns. visit must not wait
// for anything.
func (s *slots) each(visit func(*holder)) (skipped int) {
	for t := s.table.Load(); t != nil; t = t.older.Load() {
		for i := range t.slots {
			sl := &t.slots[i]
			w := sl.word.Load()
			if stateOf(w) == slotSeen {
				w = with(w, slotKept)
			}
			if stateOf(w) == slotKept && sl.look(w) {
				if sl.holder != nil {
					visit(sl.holder)
				}
				sl.put(w)
			} else if stateOf(w) == slotBusy {
				skipped++
			}
		}
	}
	return skipped
}
