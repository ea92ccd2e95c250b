package admit

// A machine that has nothing to decide lends its room to the gate around it,
// which then admits with a single atomic operation. The loan ends with
// [Machine.Collect], before anything else is asked of the machine.

// Loan is what the gate around a machine counted while it had the room.
type Loan struct {
	Units  int    // in flight now
	Calls  int    // leases out now
	Grants uint64 // granted, and accepted, since the loan began
	Gone   int    // units that were in use meanwhile and are not now
}

// Lend returns the room that may be lent, and false while the machine needs to
// see every event itself: somebody waits, it drains or is closed, callers are told apart,
// there are lanes, a limiter watches, a journal records, or nothing is free, as while
// units are missed elsewhere.
func (m *Machine) Lend() (room int, ok bool) {
	room = m.room()
	switch {
	case m.line.len > 0, m.draining, m.journal != nil, m.cfg.Limiter != nil, m.cfg.PerCaller > 0, m.cfg.Fair, len(m.lanes) > 1, room <= 0:
		return 0, false
	}
	return room, true
}

// Collect ends a loan. Each call granted during it and not out now was released. For what
// is asked of the machine they all came with its last event: when is not known.
func (m *Machine) Collect(l Loan) {
	m.counts.Granted += l.Grants
	m.counts.Decisions[Granted] += l.Grants
	m.counts.Released += l.Grants + uint64(m.calls) - uint64(l.Calls)
	m.inFlight, m.calls = l.Units, l.Calls
	m.rest.units = l.Units
	m.rest.granted += l.Grants
	m.rest.offered += float64(l.Grants)
	m.rest.comes(m.rate.since, int(l.Grants))
	m.demand.started += float64(l.Grants)
	m.peak = max(m.peak, l.Units+l.Gone)
}

// Refuses returns the verdict that an ordinary arrival (cost 1, no nearer
// deadline) would meet now whatever the time, and false if it depends. The gate
// then refuses without asking again, until the next event.
func (m *Machine) Refuses() (Verdict, bool) {
	switch {
	case m.draining:
		return Draining, true
	case m.cfg.PerCaller > 0, m.cfg.Fair, len(m.lanes) > 1: // it depends on whose it is
		return Queued, false
	case m.limit == 0, m.line.len > 0 && m.crowded(&m.rest, 1, m.line.len, m.line.len):
		return Busy, true
	case m.ledger.refuse:
		return Store, true
	case m.cfg.MaxWait == 0 && (m.inFlight >= m.limit || m.ledger.away && m.room() <= 0):
		return Busy, true
	}
	return Queued, false
}
