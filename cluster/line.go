package cluster

// line is the calls of all instances that wait, in the order in which the ledger heard
// of them. Numbers of calls are the instance's own; its calls leave the line in order.
type line struct {
	tickets map[int64]ticket
	head    int64 // no ticket stands before it
	cursor  int64 // the tickets before it can be granted only once their instances speak
	tail    int64 // of the last ticket, the next gets tail + 1
	queued  int   // calls in line that stand
}

// ticket is calls of one instance that cost the same: those that stand, from where its
// last ticket ended up to last.
type ticket struct {
	instance string
	last     uint64
	cost     int
}

func newLine() line { return line{tickets: map[int64]ticket{}, head: 1, cursor: 1} }

func (l *Ledger) queued() int { return l.line.queued }

// fromTheFront makes the next look at the line begin at its head: something changed for
// those that were passed over.
func (q *line) fromTheFront() { q.cursor = q.head }

// remove takes a ticket out. m is its instance, nil if that is forgotten.
func (q *line) remove(place int64, m *member) {
	delete(q.tickets, place)
	if m != nil && m.last == place {
		m.last = 0
	}
}

// standing hears which calls of the speaker still wait.
func (s *step) standing() {
	m, r := s.m, s.r
	s.inUse += r.InUse - m.inUse
	s.waiting += r.Waiting - m.waiting
	m.inUse, m.waiting, m.oldest = r.InUse, r.Waiting, inMillis(r.Oldest)
	if n := len(r.Standing); n > 0 && r.Standing[n-1].Last > m.heard {
		// Calls that it believes to be known and are not: all of them join anew, as the
		// reply makes it see.
		m.heard = r.Standing[n-1].Last
		m.next = m.heard + 1
	}
	m.spans = standing(r)
	before := m.queued
	m.queued = between(m.spans, m.next, m.heard)
	s.line.queued += m.queued - before
}

// standing returns the calls that wait and are not there for an answer only.
func standing(r *Request) (spans []Span) {
	end := uint64(0)
	add := func(first, last uint64) {
		first = max(first, end+1)
		if first > last {
			return
		}
		if n := len(spans); n > 0 && first == end+1 {
			spans[n-1].Last = last
		} else {
			spans = append(spans, Span{First: first, Last: last})
		}
		end = last
	}
	for _, s := range r.Standing {
		add(s.First, s.Last)
	}
	for _, run := range r.Arrived {
		if !run.Ask {
			add(run.First, run.First+uint64(run.Calls)-1)
		}
	}
	return spans
}

// between counts the calls of the spans that lie from first to last.
func between(spans []Span, first, last uint64) (n int) {
	for _, s := range spans {
		if a, b := max(s.First, first), min(s.Last, last); a <= b {
			n += int(b - a + 1)
		}
	}
	return n
}

// stand returns how many calls of a ticket wait.
func (m *member) stand(t ticket) int { return between(m.spans, m.next, min(t.last, m.heard)) }

// nth returns the nth call of the spans from first on.
func nth(spans []Span, first uint64, n int) uint64 {
	for _, s := range spans {
		a := max(s.First, first)
		if a > s.Last {
			continue
		}
		if n <= int(s.Last-a+1) {
			return a + uint64(n) - 1
		}
		n -= int(s.Last - a + 1)
	}
	return first
}

// arrived hears of calls that joined the instance's line: they are let in at once if
// nobody waits, or get a ticket. Those that only ask are let in at once or not at all.
func (s *step) arrived() {
	m := s.m
	for _, run := range s.r.Arrived {
		first, last := max(run.First, m.heard+1), run.First+uint64(run.Calls)-1
		if last <= m.heard {
			continue
		}
		calls, cost := int(last-first+1), max(1, run.Cost)
		if s.atOnce() {
			now := min(calls, max(0, s.room(m))/cost)
			s.grant(m, now*cost)
			calls -= now
			first += uint64(now)
		}
		if calls > 0 && !run.Ask {
			s.enqueue(m, first, last, calls, cost)
		}
		m.heard = last
		if m.queued == 0 {
			m.next = last + 1
		}
	}
}

// atOnce says whether calls of the speaker that come now would be next: nobody waits,
// or only calls that were passed over.
func (s *step) atOnce() bool {
	return !s.learning() && s.m.queued == 0 && (s.queued() == 0 || s.line.cursor > s.line.tail)
}

// enqueue puts calls at the end of the line.
func (s *step) enqueue(m *member, first, last uint64, calls, cost int) {
	q := &s.line
	if m.queued == 0 {
		m.next = first
	}
	if m.last != q.tail || m.lastCost != cost || m.last < q.head {
		q.tail++
	}
	q.tickets[q.tail] = ticket{instance: s.r.Instance, last: last, cost: cost}
	m.last, m.lastCost = q.tail, cost
	m.queued += calls
	q.queued += calls
}

// maxHoles is how many more places than calls a line may have before it is tidied up.
const maxHoles = 256

// tidy moves what is left of the line together, if calls that left and places that are
// empty make up most of it.
func (s *step) tidy() {
	q := &s.line
	if q.tail-q.head+1 <= 2*int64(q.queued)+maxHoles {
		return
	}
	end := q.tail
	for place := q.head; place <= end; place++ {
		t, ok := q.tickets[place]
		delete(q.tickets, place)
		m := s.members[t.instance]
		if ok && m != nil && m.stand(t) > 0 {
			q.tail++
			q.tickets[q.tail] = t
			m.passed = 0
		}
	}
	q.head = end + 1
	q.fromTheFront()
}
