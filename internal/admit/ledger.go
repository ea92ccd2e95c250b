package admit

import (
	"strconv"
	"time"
)

// ledger is what a machine knows of the outer ledger that lends it slots, and that
// many machines share. The machine decides as ever within the slots that it has at
// this moment; calls that the ledger should know of are numbered as they join the
// line.
type ledger struct {
	lent      int  // units that were lent, and neither given back nor taken
	back      int  // units that were given back, and not fetched yet
	returning bool // units are missed elsewhere: none stays here idle
	over      bool // the time is over for which they were lent
	away      bool // the ledger is away, and alone says what may run
	refuse    bool // it is away, and everybody is refused
	alone     int

	joined   uint64 // number of the call that joined the line last
	answered uint64 // the ledger has heard of all calls up to this one
	asking   int    // calls in line that wait for an answer only
}

// askTime is how long a call that may not wait stands in line for the ledger's
// answer. An exchange takes well under a millisecond; half of this would refuse
// callers whenever a store hiccups, twice it is a wait that people notice.
const askTime = 50 * time.Millisecond

// Feed adds n units that the ledger lends, and lets in whoever fits.
func (m *Machine) Feed(now time.Time, n int) {
	m.ledger.lent += n
	m.fed(now)
	m.note(now, "feed", strconv.Itoa(n))
}

// fed ends an event that changed which slots may be used.
func (m *Machine) fed(now time.Time) {
	m.reckon()
	m.dispatch(now)
	m.giveBack()
	m.settle(now)
}

// reckon works out the slots that may be used now.
func (m *Machine) reckon() {
	switch l := &m.ledger; {
	case l.over:
		m.slots = 0
	case l.away:
		m.slots = l.alone
	default:
		m.slots = l.lent
	}
}

func (m *Machine) returns() bool { return m.ledger.returning && !m.ledger.away }

// giveBack puts aside the units on which nothing runs, if they are missed
// elsewhere. Before those in line are let in, it makes the ledger say who is next,
// here or there; after, it leaves nothing idle.
func (m *Machine) giveBack() {
	if !m.returns() {
		return
	}
	if idle := m.idle(); idle > 0 {
		m.ledger.lent -= idle
		m.ledger.back += idle
		m.reckon()
	}
}

// idle returns the lent units on which nothing runs. Units that run without a slot
// come first.
func (m *Machine) idle() int { return max(0, m.ledger.lent-m.inFlight) }

// Take takes back up to n lent units on which nothing runs, and returns how many.
func (m *Machine) Take(now time.Time, n int) int {
	n = min(n, m.idle())
	m.ledger.lent -= n
	m.fed(now)
	m.noteAnswer(now, "take", strconv.Itoa(n), "took", n)
	return n
}

// Return says whether lent units are missed elsewhere. While they are, those that
// come free go back to the ledger; when they no longer are, what was given back and
// not fetched is used again.
func (m *Machine) Return(now time.Time, on bool) {
	m.ledger.returning = on
	if !on {
		m.ledger.lent += m.ledger.back
		m.ledger.back = 0
	}
	m.fed(now)
	m.note(now, "return", onOff(on))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Fetch returns the units that were given back since the last Fetch.
func (m *Machine) Fetch(now time.Time) int {
	n := m.ledger.back
	if n > 0 {
		m.ledger.back = 0
		m.noteAnswer(now, "fetch", "", "fetched", n)
	}
	return n
}

// Back returns the units that were given back and not fetched yet.
func (m *Machine) Back() int { return m.ledger.back }

// Lent returns the units that the ledger lends.
func (m *Machine) Lent() int { return m.ledger.lent }

// Slots returns the units that may be used now, whatever the limit.
func (m *Machine) Slots() int { return m.slots }

// Peak returns the most units that have run since the last Peak. While the gate
// around the machine counts, that is the units that were in use at any time: about
// that, and at times a few more than ran together.
func (m *Machine) Peak() int {
	n := m.peak
	m.peak = m.inFlight
	return n
}

// Joined returns the number of the call that joined the line last.
func (m *Machine) Joined() uint64 { return m.ledger.joined }

// First returns the head of the line, nil if nobody waits.
func (m *Machine) First() *Waiter { return m.line.head }

func (m *Machine) number(w *Waiter) {
	m.ledger.joined++
	w.number = m.ledger.joined
}

// Renumber gives everybody in line a new number: the ledger has forgotten them.
func (m *Machine) Renumber(now time.Time) {
	for w := m.line.head; w != nil; w = w.Next() {
		m.number(w)
	}
	m.note(now, "renumber", "")
}

// asks reports whether an arrival that finds no slot asks the ledger for one, rather
// than to wait in line.
func (m *Machine) asks(a Arrival) bool {
	return m.cfg.Ledger && (a.NoWait || m.cfg.MaxWait == 0 && a.Until.IsZero())
}

// mayAsk reports whether the ledger could have a slot for a call of this cost: not
// if the whole limit runs here, nor if calls stand in the ledger's line, which go
// first.
func (m *Machine) mayAsk(cost int) bool {
	waits := m.line.head != nil && m.line.head.number <= m.ledger.answered
	return !m.ledger.away && !waits && m.inFlight+cost <= m.limit
}

// Answered says that the ledger has heard of every call up to number last: those of
// them that only asked are refused.
func (m *Machine) Answered(now time.Time, last uint64) {
	m.ledger.answered = last
	m.refuseAsking(now, last)
	if m.journal != nil {
		m.note(now, "answered", strconv.FormatUint(last, 10))
	}
}

func (m *Machine) refuseAsking(now time.Time, last uint64) {
	for w := m.line.head; w != nil && m.ledger.asking > 0 && w.number <= last; {
		behind := w.Next()
		if w.ask {
			m.decide(now, w, Busy)
		}
		w = behind
	}
	m.dispatch(now)
	m.settle(now)
}

// Expire says that the time is over for which slots were lent: nobody starts until
// [Machine.Renew]. What runs goes on.
func (m *Machine) Expire(now time.Time) {
	m.ledger.over = true
	m.fed(now)
	m.note(now, "expire", "")
}

// Renew says that slots may be used again, or still.
func (m *Machine) Renew(now time.Time) {
	if m.ledger.over {
		m.ledger.over = false
		m.fed(now)
		m.note(now, "renew", "")
	}
}

// Lapse withdraws every slot. Work that runs goes on without one; what is lent next
// covers it first.
func (m *Machine) Lapse(now time.Time) {
	m.ledger.lent, m.ledger.back = 0, 0
	m.fed(now)
	m.note(now, "lapse", "")
}

// Alone says that the ledger is away, and that n units may run here meanwhile; with
// refuse everybody is refused, those in line at once.
func (m *Machine) Alone(now time.Time, n int, refuse bool) {
	l := &m.ledger
	l.away, l.alone, l.refuse, l.over = true, n, refuse, false
	if refuse {
		l.alone = 0
		for m.line.head != nil {
			m.decide(now, m.line.head, Store)
		}
	}
	m.fed(now)
	m.refuseAsking(now, l.joined) // nobody will answer
	how := "slots=" + strconv.Itoa(n)
	if refuse {
		how = "refuse"
	}
	m.note(now, "alone", how)
}

// Together says that slots come from the ledger again.
func (m *Machine) Together(now time.Time) {
	m.ledger.away, m.ledger.refuse = false, false
	m.fed(now)
	m.note(now, "together", "")
}

// Retract takes a grant back that may not run, as if it had not been made: its call
// is then decided afresh.
func (m *Machine) Retract(now time.Time, c Claim) {
	m.counts.Decisions[Granted]--
	m.handBack(now, c)
	m.noteClaim(now, "retract", c)
}
