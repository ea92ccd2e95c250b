package cluster

import (
	"fmt"
	"math"
)

const (
	// maxUnacked is how many units an instance may be lent after it last spoke: one that
	// has died gets no more.
	maxUnacked = 4
	// maxWalk is how many tickets one step looks at.
	maxWalk = 32
)

// lend lends what is free to whoever is first in line. Whole calls only: if the first
// one costs more than is free, those behind it wait with it. Passed over is who would
// be lent too much before it speaks, and who cannot be served under this limit.
func (s *step) lend() {
	if s.learning() {
		return
	}
	q := &s.line
	w := walk{step: s, start: q.cursor, passed: map[*member]bool{}, granted: map[*member]bool{}}
	place, kept := q.cursor, int64(0)
	for looked := 0; place <= q.tail && s.free() > 0 && looked < maxWalk; place++ {
		t, ok := q.tickets[place]
		m := s.members[t.instance]
		if !ok || m == nil || m.stand(t) == 0 {
			q.remove(place, m)
			continue
		}
		looked++
		done, more := w.visit(m, t, place)
		if done {
			q.remove(place, m)
		} else if kept == 0 {
			kept = place
		}
		if !more {
			break
		}
	}
	if kept == 0 {
		kept = place
	}
	if q.cursor == q.head {
		q.head = kept
	}
	q.cursor = place
	w.tell()
}

// walk is one way along the line.
type walk struct {
	*step
	start   int64
	passed  map[*member]bool
	granted map[*member]bool
	names   []string // of others that were granted something
}

// visit grants calls of one ticket. done: all of them; more: who is behind may have
// what is left.
func (w *walk) visit(m *member, t ticket, place int64) (done, more bool) {
	calls := w.mayHave(m, t.cost)
	if calls == 0 || w.passed[m] || m.passed > 0 && m.passed < w.start {
		w.pass(m, place)
		return false, true
	}
	stand := m.stand(t)
	n := min(stand, calls, w.room(m)/t.cost)
	if n > 0 {
		w.grant(m, n*t.cost)
		m.next = nth(m.spans, m.next, n) + 1
		m.queued -= n
		w.line.queued -= n
		if !w.speaks(m) && !w.granted[m] {
			w.granted[m] = true
			w.names = append(w.names, t.instance)
		}
	}
	if n == stand {
		if m.passed == place {
			m.passed = 0
		}
		return true, true
	}
	if n == calls {
		w.pass(m, place)
		return false, true
	}
	return false, false
}

// pass passes a member over until it speaks, or the walk begins at the front again: what
// stands behind its first call that cannot be granted waits with it.
func (w *walk) pass(m *member, place int64) {
	if !w.passed[m] && !(m.passed > 0 && m.passed < w.start) {
		m.passed = place
	}
	w.passed[m] = true
}

// mayHave returns how many calls of a ticket its instance may be granted at all.
func (s *step) mayHave(m *member, cost int) int {
	if cost > s.limit-s.withheld {
		return 0
	}
	if s.speaks(m) {
		return math.MaxInt
	}
	since := int(m.granted - m.told)
	if since == 0 {
		return max(1, maxUnacked/cost)
	}
	return max(0, (maxUnacked-since)/cost)
}

// speaks says whether a member reads the reply of this step.
func (s *step) speaks(m *member) bool { return m == s.m && s.newer }

// tell says to those that were lent something that they were.
func (w *walk) tell() {
	for _, name := range w.names {
		m := w.members[name]
		text := fmt.Sprintf("g %d %d %s", w.epoch, m.granted, slotsText(m.slotsAbove(m.acked)))
		w.publish(ChannelOf(w.key, name), text)
	}
}

// grant lends units to a member: first of what is withheld for it.
func (s *step) grant(m *member, units int) {
	kept := s.reserved(m)
	for range units {
		m.granted++
		if m.fenced {
			m.slots = append(m.slots, s.lowestSlot(m.granted))
		}
	}
	s.held += units
	s.top = max(s.top, m.granted)
	if less := kept - s.reserved(m); less > 0 {
		s.withheld -= less
		s.eased = true
	}
}

// cover lends the speaker what it needs for units that run there and are not lent, before
// anybody else: they run already, on what is withheld for it.
func (s *step) cover() {
	if n := min(s.r.Spare, s.room(s.m)); n > 0 && !s.learning() {
		s.grant(s.m, n)
	}
}

// hush keeps in mind who was told that nobody else waits, and tells them once if
// somebody does, or if more is out than may be.
func (s *step) hush(contended bool) {
	name := s.r.Instance
	if (s.m.queued > 0 || s.free() < 0) && s.calm != "" && s.calm != name {
		s.publish(s.key, "c")
		s.calm = ""
	}
	switch {
	case contended && s.calm == name:
		s.calm = ""
	case contended:
	case s.calm == "" || s.calm == name:
		s.calm = name
	default:
		s.calm = "*"
	}
}
