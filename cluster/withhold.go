package cluster

// An instance that is cut off goes on with its share: it begins by its own clock, and
// nobody can be told. So that all together stay within the limit, the ledger counts for
// an instance whatever is more, what it is lent or its share, from before it may begin
// until after it has ended:
//
//   - The instance begins 1.65 leases after the last answer that it heard, at the
//     earliest. The ledger misses it three quarters of a lease after the last answer that
//     it surely heard, which is the one that its latest request names: a request that
//     comes late, or whose answer is lost, proves nothing.
//   - It is counted so until it says that it uses nothing any more but what it is lent,
//     and names an answer that is not older than that.
//   - It ends when its time is over, and so does what runs on it. The ledger waits for
//     longer.
//   - Shares together are within the limit: who speaks is told no more than the others
//     leave, whose shares count as they know them.

// missedAfter is how old the last answer may be that an instance surely heard. One that
// speaks every quarter of its lease names one that is half a lease old at most.
func missedAfter(lease int64) int64 { return lease * 3 / 4 }

// missed reports whether a member may use its share by now, for all that is known.
func (l *Ledger) missed(m *member) bool {
	return m.withhold > 0 && l.elapsed()-m.contact >= missedAfter(m.lease)
}

// reserved returns what the others must not have because of a member, besides what it
// is lent.
func (l *Ledger) reserved(m *member) int {
	if !l.missed(m) {
		return 0
	}
	return max(0, m.share-m.held())
}

// room returns the units that may be lent to a member.
func (l *Ledger) room(m *member) int { return l.free() + l.reserved(m) }

// reserve counts what is withheld for a member.
func (l *Ledger) reserve(m *member) {
	if m.withhold == 0 {
		return
	}
	l.shares += m.share
	l.withheld += l.reserved(m)
	if !l.missed(m) {
		l.doubt = min(l.doubt, m.contact+missedAfter(m.lease))
	}
}

// release takes the speaker out of what is counted, and returns what was kept for it.
func (s *step) release() (kept int) {
	if s.m.withhold > 0 {
		kept = s.reserved(s.m)
		s.withheld -= kept
		s.shares -= s.m.share
	}
	return kept
}

// withhold counts the speaker anew, by what it says of itself.
func (s *step) withhold(before int) {
	m, r := s.m, s.r
	if m.gone {
		m.gone = false
		s.line.fromTheFront()
	}
	s.share = s.shareBeside(s.shares)
	m.share = max(r.Share, s.share)
	switch {
	case r.Contact == 0:
		m.contact = s.elapsed() - missedAfter(m.lease)
	case r.Contact < 0 || r.Epoch != s.epoch: // another ledger's clock says nothing here
		m.contact = s.elapsed()
	default:
		m.contact = min(r.Contact, s.elapsed())
	}
	s.reserve(m)
	if s.reserved(m) < before {
		s.line.fromTheFront()
	}
}

// shareBeside returns what an instance may use if it is cut off from now on, beside the
// shares of others. All together are within the limit, unless MinShare says otherwise.
func (s *step) shareBeside(others int) int {
	share := s.limit / max(1, len(s.names))
	if s.r.Withhold > 0 {
		share = min(share, max(0, s.limit-others))
	}
	return min(max(share, s.r.MinShare), max(0, s.limit))
}

// shareNow is what an instance is told that says nothing new.
func (s *step) shareNow() int {
	if s.m == nil || s.m.withhold == 0 {
		return s.shareBeside(s.shares)
	}
	return min(s.m.share, s.shareBeside(s.shares-s.m.share))
}
