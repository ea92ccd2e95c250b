package admit

import "time"

// Waiter is one call in line. Its verdict is [Queued] until the machine decides
// it; from then on it stands, unless a grant is disowned ([Machine.Disown]).
type Waiter struct {
	// Owner is the shell's: what to wake when the verdict is given. The machine
	// never looks at it.
	Owner any

	arrived time.Time
	until   time.Time
	waited  time.Duration // when it is decided
	own     time.Duration // the caller's own deadline, after arrival; 0: none
	gauge   Gauge
	number  uint64 // what a ledger knows the call by
	cost    int32
	id      int32 // in a journal or script
	verdict Verdict
	expiry  Verdict // what it is told when its time is up: Timeout or Deadline
	caller  *Caller
	lane    *Lane
	link    bool
	over    bool // more than its caller may have, when it came
	ask     bool // it waits for the ledger's answer only

	links [2]links // in the machine's line and in its lane's; after the verdict, the first chains the decided ones
}

type links struct{ prev, next *Waiter }

// Verdict returns what was decided, [Queued] while nothing was.
func (w *Waiter) Verdict() Verdict { return w.verdict }

// Until returns the moment at which the waiter's patience ends.
func (w *Waiter) Until() time.Time { return w.until }

// Waited returns how long the waiter stood in line until it was decided; zero
// while it is not, and never negative.
func (w *Waiter) Waited() time.Duration { return w.waited }

// Cost returns the units that the waiter's call takes.
func (w *Waiter) Cost() int { return int(w.cost) }

// Claim returns what the waiter's call takes.
func (w *Waiter) Claim() Claim { return Claim{Cost: w.Cost(), Caller: w.caller, Lane: w.lane} }

func (w *Waiter) bid() bid { return bid{w.lane, w.Cost(), w.number} }

func (w *Waiter) deadline() time.Time {
	if w.own == 0 {
		return time.Time{}
	}
	return w.arrived.Add(w.own)
}

// Gauge returns what the machine showed just after w was decided.
func (w *Waiter) Gauge() Gauge { return w.gauge }

// Number returns what the ledger knows the waiter's call by. It grows along the line.
func (w *Waiter) Number() uint64 { return w.number }

// Ask reports whether the waiter waits for the ledger's answer only.
func (w *Waiter) Ask() bool { return w.ask }

// Next returns the waiter that stands behind w in line; once w is decided, the one
// decided after it by the same event, see [Machine.Decided].
func (w *Waiter) Next() *Waiter { return w.links[byArrival].next }

// line is the first-in-first-out list of those who wait: all of them, or those of one
// lane.
type line struct {
	head, tail *Waiter
	len        int
	by         int // which of a waiter's links
}

const (
	byArrival = iota
	byLane
)

func (l *line) push(w *Waiter) {
	w.links[l.by] = links{prev: l.tail}
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.links[l.by].next = w
	}
	l.tail = w
	l.len++
}

func (l *line) remove(w *Waiter) {
	at := w.links[l.by]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	w.links[l.by] = links{}
	l.len--
}

func (l *line) headCost() int {
	if l.head == nil {
		return 1
	}
	return l.head.Cost()
}
