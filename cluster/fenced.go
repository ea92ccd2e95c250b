package cluster

// maxSlot is the highest number of a slot that is believed to be one.
const maxSlot = 1 << 16

// heldSlot is a numbered unit that a member holds.
type heldSlot struct {
	Slot
	grant uint64 // the member's figure of units granted as it was lent
}

// figures hears what the speaker holds.
func (s *step) figures() {
	m, r := s.m, s.r
	gone := m.gone
	if m.passed > 0 {
		m.passed = 0
		s.line.fromTheFront()
	}
	m.number, m.seen, m.lease = r.Number, s.clock, s.lease
	m.withhold = inMillis(r.Withhold)
	before := m.held()
	own := 0
	switch {
	case r.Epoch == s.epoch && m.fenced:
		own = len(r.Slots)
		s.keepSlots(m)
	case r.Epoch == s.epoch:
		own = int(r.Granted - min(r.Granted, r.Returned))
		m.returned = max(m.returned, min(r.Returned, m.granted))
	case r.Epoch != 0:
		own = r.Claim
	}
	if r.Epoch == s.epoch {
		m.acked = max(m.acked, min(r.Granted, m.granted))
	}
	if gone {
		m.acked = m.granted
	}
	if s.learning() && r.Epoch != 0 {
		s.claim(m)
	}
	s.held += m.held() - before
	s.lost = max(0, own-m.held())
	if s.joined || gone {
		s.lostTotal += uint64(s.lost)
	}
}

// claim accepts what the speaker surely holds of units that this epoch does not know.
func (s *step) claim(m *member) {
	r := s.r
	if m.fenced {
		s.claimSlots(m)
	} else if n := r.Claim - m.held(); n > 0 {
		m.granted += uint64(n)
		m.acked = m.granted
	}
	s.top = max(s.top, m.granted)
}

// keepSlots frees the slots that the speaker has heard of and does not list.
func (s *step) keepSlots(m *member) {
	listed := map[int]uint64{}
	for _, slot := range s.r.Slots {
		listed[slot.Number] = slot.Fence
	}
	var kept []heldSlot
	for _, slot := range m.slots {
		if fence, ok := listed[slot.Number]; slot.grant > s.r.Granted || ok && fence == slot.Fence {
			kept = append(kept, slot)
			continue
		}
		s.freeSlots([]heldSlot{slot})
		m.returned++
	}
	m.slots = kept
}

func (s *step) claimSlots(m *member) {
	for _, slot := range s.r.Slots[:min(max(0, s.r.Claim), len(s.r.Slots))] {
		if slot.Number < 1 || slot.Number > maxSlot || s.isUsed(slot.Number) {
			continue
		}
		s.use(slot.Number)
		m.granted++
		m.acked = m.granted
		m.slots = append(m.slots, heldSlot{Slot: slot, grant: m.granted})
	}
}

func (m *member) slotsAbove(acked uint64) (slots []Slot) {
	for _, s := range m.slots {
		if s.grant > acked {
			slots = append(slots, s.Slot)
		}
	}
	return slots
}

// lowestSlot takes the lowest number that nobody holds, with a new fence.
func (s *step) lowestSlot(grant uint64) heldSlot {
	number := 1
	for s.isUsed(number) {
		number++
	}
	s.use(number)
	s.fences++
	return heldSlot{Slot: Slot{Number: number, Fence: s.epoch<<fenceBits + s.fences}, grant: grant}
}

func (s *step) isUsed(number int) bool { return number <= len(s.used) && s.used[number-1] }

func (s *step) use(number int) {
	for len(s.used) < number {
		s.used = append(s.used, false)
	}
	s.used[number-1] = true
}

func (s *step) freeSlots(slots []heldSlot) {
	for _, slot := range slots {
		s.used[slot.Number-1] = false
	}
	for n := len(s.used); n > 0 && !s.used[n-1]; n-- {
		s.used = s.used[:n-1]
	}
}
