package admit

import (
	"maps"
	"strconv"
	"strings"
)

// DefaultMaxCallers is how many callers a gate tells apart if nobody says: a memory of a
// few megabytes. With half of it a busy public API shares bounds more often, twice as
// many cost twice the memory.
const DefaultMaxCallers = 16384

// Caller is one who has calls in a machine, or several who have to share a bound since
// the machine knows too many already. Of who has no call there is nothing to know; some
// are kept all the same, so that one who comes again and again costs no memory each time.
type Caller struct {
	key   string
	id    uint64 // in a journal or script; 0: those who share
	units int    // in flight
	line  int    // units in line
	calls int    // running and in line
	idle  bool   // it has none, and is kept
}

// fewIdle is how many callers without a call are kept at least; as many as have calls may
// be. With half of it a gate with few calls at once makes its regulars anew more often,
// twice it is memory for nothing.
const fewIdle = 64

// callers are those who have calls in a machine, by what they are told apart by. There
// are never more of them than calls, nor than the bound: it is the calls of whoever
// comes beyond that which share.
type callers struct {
	known  map[string]*Caller
	shared Caller
	idle   int
	serial uint64
	beyond uint64 // calls that came when there was no place
}

// Caller returns who is told apart by key, for the next arrival: who is not known yet
// is from now on, or has to share.
func (m *Machine) Caller(key string) *Caller {
	t := &m.callers
	c := t.known[key]
	switch {
	case c != nil && !c.idle:
		return c
	case len(t.known)-t.idle >= m.cfg.MaxCallers:
		t.beyond++
		return &t.shared
	case c != nil:
		c.idle = false
		t.idle--
		return c
	}
	if t.idle > max(fewIdle, len(t.known)-t.idle) {
		maps.DeleteFunc(t.known, func(_ string, c *Caller) bool { return c.idle })
		t.idle = 0
	}
	t.serial++
	c = &Caller{key: strings.Clone(key), id: t.serial} // the text may be part of a request
	if t.known == nil {
		t.known = map[string]*Caller{}
	}
	t.known[c.key] = c
	return c
}

// Callers returns how many callers have calls here, and how many calls have come that
// had to share since there were too many.
func (m *Machine) Callers() (known int, beyond uint64) {
	return len(m.callers.known) - m.callers.idle, m.callers.beyond
}

// forget forgets who has no call here, sooner or later.
func (m *Machine) forget(c *Caller) {
	if c != nil && c.calls == 0 && c != &m.callers.shared && !c.idle {
		c.idle = true
		m.callers.idle++
	}
}

// Those below count; nil is a caller that nobody knows, who has no bound.

func (c *Caller) comes(calls int) {
	if c != nil {
		c.calls += calls
	}
}

func (c *Caller) starts(cost int) {
	if c != nil {
		c.units += cost
		c.calls++
	}
}

func (c *Caller) joins(cost int) {
	if c != nil {
		c.line += cost
		c.calls++
	}
}

func (c *Caller) leavesLine(cost int) {
	if c != nil {
		c.line -= cost
		c.calls--
	}
}

func (c *Caller) ends(cost int) {
	if c != nil {
		c.units -= cost
		c.calls--
	}
}

// has returns the units of a caller, running and in line.
func (c *Caller) has() int { return c.units + c.line }

// over reports whether a call is more than its caller may have, with those of its calls
// that stand in line before it.
func (m *Machine) over(c *Caller, cost int) bool {
	return m.cfg.PerCaller > 0 && c != nil && c.has()+cost > m.cfg.PerCaller
}

// capped reports whether a call in line has to wait for its own caller, whatever room
// there is.
func (m *Machine) capped(w *Waiter) bool {
	return m.cfg.PerCaller > 0 && w.caller != nil && w.caller.units+w.Cost() > m.cfg.PerCaller
}

// mayStandOver reports whether a call that is over its caller's bound may wait for an
// end of that caller's own calls. Such calls take half of the line at most, so that the
// others find a place in it. Where slots come from a ledger it may not: the ledger is
// told of everybody in line, and would lend slots on which nothing can run.
func (m *Machine) mayStandOver() bool {
	return !m.cfg.Ledger && 2*m.overs < m.MaxWaiting()
}

// text is how a script calls a caller.
func (c *Caller) text() string {
	if c.id == 0 {
		return "shared"
	}
	return strconv.FormatUint(c.id, 10)
}
