package admit

import "time"

// Release gives back what a call took and lets in whoever fits now.
func (m *Machine) Release(now time.Time, c Claim, end End) {
	m.rate.depart(now)
	m.ends(c)
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Finished, Cost: c.Cost, Held: end.Held, Outcome: end.Outcome})
	}
	m.follow(now) // a lower limit comes before the slot is handed on
	m.giveBack()
	m.dispatch(now)
	m.settle(now)
	m.noteRelease(now, c, end)
}

// Unwind gives back a grant that never ran: its caller left as it was made, or a
// later gate of its chain refused. It counts as given and given back, and tells
// the limiter and the departure rate nothing.
func (m *Machine) Unwind(now time.Time, c Claim) {
	m.handBack(now, c)
	m.noteClaim(now, "unwind", c)
}

func (m *Machine) handBack(now time.Time, c Claim) {
	m.ends(c)
	if m.cfg.Limiter != nil {
		m.observe(now, &Observation{Kind: Left, Cost: c.Cost})
	}
	m.giveBack()
	m.dispatch(now)
	m.settle(now)
}

// Leave takes w out of the line because its caller left (v is [Canceled]) or the
// caller's own deadline passed ([Deadline]), and reports whether it stood there.
// If not, its verdict was given before, and a grant among them is to be handed
// on with [Machine.Disown].
func (m *Machine) Leave(now time.Time, w *Waiter, v Verdict) bool {
	stood := w.verdict == Queued
	if stood {
		m.decide(now, w, v)
		m.dispatch(now)
		m.settle(now)
	}
	m.noteWaiter(now, "leave", w, v)
	return stood
}

// ExpireDue takes everybody whose time is up out of the line, and returns when
// the next one's will be; false if nobody waits.
func (m *Machine) ExpireDue(now time.Time) (next time.Time, ok bool) {
	for w := m.line.head; w != nil; {
		behind := w.Next()
		if !w.until.After(now) {
			m.decide(now, w, m.late(w))
		}
		w = behind
	}
	m.dispatch(now)
	m.settle(now)
	for w := m.line.head; w != nil; w = w.Next() {
		if !ok || w.until.Before(next) {
			next, ok = w.until, true
		}
	}
	m.note(now, "due", "")
	return next, ok
}

// Disown turns a grant that cannot run into v: its caller left ([Canceled],
// [Deadline]), or the time for which its slot was lent is over ([Store]). The slot
// goes to the next in line. Any other verdict stands.
func (m *Machine) Disown(now time.Time, w *Waiter, v Verdict) {
	if w.verdict == Granted {
		w.verdict = v
		if !w.link {
			m.counts.Decisions[Granted]--
		}
		m.counts.Decisions[v]++
		m.handBack(now, w.Claim())
	}
	m.noteWaiter(now, "disown", w, v)
}
