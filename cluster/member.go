package cluster

import "fmt"

// member is an instance as the ledger knows it.
type member struct {
	host     string
	number   uint64 // of the last request
	granted  uint64 // in all
	returned uint64 // in all
	acked    uint64 // of granted, what the instance has surely heard of
	told     uint64 // granted, as it last spoke
	slots    []heldSlot

	inUse, waiting int
	oldest         int64

	heard, next uint64 // calls up to heard are known; those from next on that stand are in line
	queued      int    // calls in line
	spans       []Span // calls that stand
	last        int64  // place of its last ticket
	lastCost    int    // and what a call of it costs

	seen     int64 // by the ledger's clock
	lease    int64
	limit    int // configured
	withhold int64
	share    int   // the most that it may use once it is cut off, for all that it knows
	contact  int64 // by elapsed: of the latest answer that it surely heard
	fenced   bool  // its slots are numbered
	gone     bool  // given up, or cut off
	passed   int64 // place of its first ticket that was passed over; 0: none was
}

func (m *member) held() int { return int(m.granted - m.returned) }

// busy members are given up once their lease is surely over; others are forgotten later.
func (m *member) busy() bool { return m.held() > 0 || m.queued > 0 || m.withhold > 0 }

// givenUp returns when the member is given up.
func (m *member) givenUp() int64 { return m.seen + givenUpAfter(m.lease) }

// apart returns until when a member that is cut off may use its share. A tenth of that is
// for clocks that differ, and a quarter for jumps of the server's.
func (m *member) apart() int64 {
	if m.withhold == 0 {
		return 0
	}
	return m.givenUp() + m.withhold*11/8
}

// forgotten returns when the member is forgotten, if it is not busy or given up.
func (m *member) forgotten() int64 { return max(m.seen+membership*m.lease, m.apart()) }

// due returns a moment before which nothing becomes of the member by itself.
func (m *member) due() int64 {
	switch {
	case !m.gone && m.busy():
		return m.givenUp()
	case m.gone && m.share > 0:
		return m.apart()
	}
	return m.forgotten()
}

// recognise finds who speaks, or lets it in.
func (s *step) recognise() {
	m := s.members[s.r.Instance]
	if s.newer && s.r.Epoch != 0 && s.r.Epoch < s.epoch {
		s.claimed()
	}
	if m == nil && !s.r.Leaving {
		m = s.join()
		s.joined = true
	}
	s.m = m
	s.meet()
}

// join lets an instance in. Its figures begin above all that it may once have heard in
// this epoch, so that no message that is late can mean anything.
func (s *step) join() *member {
	r := s.r
	m := &member{
		granted: s.top, returned: s.top, acked: s.top, told: s.top,
		host: r.Host, limit: r.Limit, seen: s.clock, lease: s.lease, fenced: r.Fenced,
	}
	if n := len(r.Standing); n > 0 {
		m.heard = r.Standing[n-1].Last
	}
	m.next = m.heard + 1
	if len(s.names) == 0 {
		s.low = r.Limit
	}
	s.low = min(s.low, r.Limit)
	s.names = append(s.names, r.Instance)
	s.members[r.Instance] = m
	s.counted()
	return m
}

// counted tells everybody how many instances there are.
func (s *step) counted() {
	if !s.learning() {
		s.publish(s.key, fmt.Sprintf("n %d", len(s.names)))
	}
}

// giveBack takes everything from a member: what it holds, and its place in line.
func (s *step) giveBack(m *member) {
	s.held -= m.held()
	s.freeSlots(m.slots)
	s.inUse -= m.inUse
	s.waiting -= m.waiting
	s.line.queued -= m.queued
	m.returned, m.slots = m.granted, nil
	m.inUse, m.waiting, m.queued = 0, 0, 0
	m.next, m.spans = m.heard+1, nil
}

// count counts anew if something may be due, or who speaks leaves or is configured
// otherwise.
func (s *step) count() {
	m := s.members[s.r.Instance]
	s.newer = m == nil || s.r.Number > m.number
	says := m != nil && s.newer
	if says && (s.r.Leaving || m.limit != s.r.Limit) {
		m.limit = s.r.Limit
	} else if s.clock < s.nearest && s.elapsed() < s.doubt {
		return
	}
	leaves := ""
	if says && s.r.Leaving {
		leaves = s.r.Instance
	}
	s.recount(leaves)
}

// recount gives up and forgets whoever is due or leaves, and adds up what the others
// have.
func (s *step) recount(leaves string) {
	before := s.names
	s.names, s.withheld, s.shares = nil, 0, 0
	s.nearest, s.doubt = s.clock+membership*s.lease, s.elapsed()+membership*s.lease
	for _, name := range before {
		m := s.members[name]
		due := !m.gone && m.busy() && s.clock >= m.givenUp()
		forgotten := name == leaves || (m.gone || due || !m.busy()) && s.clock >= m.forgotten()
		if due && name != leaves {
			s.reclaimed += uint64(m.held())
		}
		if due || forgotten {
			s.giveBack(m)
			m.gone = true
		}
		if forgotten {
			delete(s.members, name)
			continue
		}
		if len(s.names) == 0 {
			s.low = m.limit
		}
		s.names = append(s.names, name)
		s.low = min(s.low, m.limit)
		if m.gone && s.clock >= m.apart() {
			m.share = 0
		}
		s.reserve(m)
		s.nearest = min(s.nearest, m.due())
	}
	s.line.fromTheFront()
	if len(s.names) != len(before) {
		s.counted()
	}
}
