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
	number  uint64 // of a machine with a ledger: what the ledger knows the call by
	cost    int32
	id      int32 // in a journal or script
	verdict Verdict
	expiry  Verdict // what it is told when its time is up: Timeout or Deadline
	caller  *Caller
	link    bool
	over    bool // more than its caller may have, when it came
	ask     bool // it waits for the ledger's answer only

	prev, next *Waiter // in line; after the verdict, next chains the decided ones
}

// Verdict returns what was decided, [Queued] while nothing was.
func (w *Waiter) Verdict() Verdict { return w.verdict }

// Until returns the moment at which the waiter's patience ends.
func (w *Waiter) Until() time.Time { return w.until }

// Waited returns how long the waiter stood in line until it was decided; zero
// while it is not, and never negative.
func (w *Waiter) Waited() time.Duration { return w.waited }

// Cost returns the units that the waiter's call takes.
func (w *Waiter) Cost() int { return int(w.cost) }

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
func (w *Waiter) Next() *Waiter { return w.next }

// line is the first-in-first-out list of those who wait.
type line struct {
	head, tail *Waiter
	len        int
}

func (l *line) push(w *Waiter) {
	w.prev, w.next = l.tail, nil
	if l.tail == nil {
		l.head = w
	} else {
		l.tail.next = w
	}
	l.tail = w
	l.len++
}

func (l *line) remove(w *Waiter) {
	if w.prev == nil {
		l.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	l.len--
}
