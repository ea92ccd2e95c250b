package forebay

import (
	"time"

	"example.com/forebay/internal/admit"
)

// Lease is the right to run one call. Give it back once the work has ended, with
// Release or ReleaseAs; only the first of them counts, on whichever copy and
// from whichever goroutine. A lease is a value: copies are the same lease, the
// zero lease does nothing, and no method of it ever panics. Giving back a lease
// that is given back already is counted in [Stats.StaleReleases].
type Lease struct {
	slot *slot
	word uint64 // the slot's generation and state
}

// Release gives the lease back: the call was served. See ReleaseAs.
func (l Lease) Release() { l.end(OutcomeDone) }

// ReleaseAs gives the lease back and says how the call ended, which only a
// [Limiter] asks.
func (l Lease) ReleaseAs(o Outcome) { l.end(o) }

// TimedOut says that whoever waits for the call was told that its time is up, while the
// work goes on, and returns the lease as the work has it: give that one back when the
// work has really ended. Until then the slot is taken, also when a handler of this
// package returns that had the lease, and counts in [Stats.StillRunning], of a chain at
// each gate. A second one, and one of a lease that is given back, does nothing. This is
// for who answers in place of work that goes on; [Config.MaxRun] does it for [Do].
func (l Lease) TimedOut() Lease {
	if l.slot == nil || !l.slot.seize(l.word) {
		return l
	}
	if stateOf(l.word) == slotHeld { // something is kept of it from now on
		if l.slot.holder == nil {
			l.slot.holder = &holder{}
		}
		*l.slot.holder = holder{claim: oneUnit, rest: l.slot.holder.rest[:0]}
		l.word = with(l.word, slotKept)
	}
	if h := l.slot.holder; !h.late {
		h.late = true
		l.slot.gate.late.Add(1)
		for i := range h.rest {
			h.rest[i] = h.rest[i].TimedOut()
		}
	}
	l.slot.put(l.word)
	return l
}

// handBack gives back what a handler had, when it has returned: unless it gave it back
// itself, which is no mistake, or the work goes on.
func (l Lease) handBack(o Outcome) {
	switch {
	case !l.Live():
	case stateOf(l.word) != slotHeld:
		l.endKept(o, true)
	case stateOf(l.slot.word.Load()) == slotHeld: // else it is the work's
		l.end(o)
	}
}

// Hold returns the rule that the request of the lease comes under, for whoever hands on
// another server's answer; see [HoldUpstreamDone]. Of a chain it is that of the first
// gate that has rules, for streams included.
func (l Lease) Hold() Hold {
	var decides *settings
	l.eachGate(func(g *Gate) {
		if s := g.settings.Load(); decides == nil && s.hasStay() {
			decides = s
		}
	})
	if decides == nil {
		return HoldHandler
	}
	return decides.Hold
}

// Live reports whether the lease is held: not the zero lease, and not given back.
func (l Lease) Live() bool { return l.slot != nil && l.slot.live(l.word) }

// Gate returns the gate that gave the lease; of a chain's lease, the first. Nil
// for the zero lease.
func (l Lease) Gate() *Gate {
	if l.slot == nil {
		return nil
	}
	return l.slot.gate
}

func (l Lease) end(o Outcome) {
	switch {
	case l.slot == nil:
	case stateOf(l.word) != slotHeld:
		l.endKept(o, false)
	case l.slot.gate.slots.open.Load() != 0:
		l.endFree()
	default:
		l.endClosed(l.word, &holder{claim: oneUnit}, o)
	}
}

// endFree gives a bare lease back while slots are lent: whoever comes next may
// have it. If the machine took its room back meanwhile, and has counted the
// lease as out, the slot is the machine's. A lease that ends this way, or by
// putFree, is seen by nobody but the counters.
func (l Lease) endFree() {
	g := l.slot.gate
	if !l.slot.free(l.word) {
		g.stale.Add(1)
		return
	}
	if g.slots.open.Load() == 0 {
		g.takeFreed(l.slot, with(l.word, slotFree))
	}
}

// takeFreed sees to a slot that was freed while the machine took its room back.
func (g *Gate) takeFreed(sl *slot, word uint64) {
	now := clock()
	g.lock()
	if g.slots.closeLocked(sl, word) {
		g.machine.Release(now, oneUnit, admit.End{})
	}
	g.unlock()
}

// endKept gives back a lease of which something is kept, unless that is left to work
// that goes on. What is kept is copied out before the slot is free for the next call.
func (l Lease) endKept(o Outcome, leaveLate bool) {
	g := l.slot.gate
	if !l.slot.seize(l.word) {
		g.stale.Add(1)
		return
	}
	h := *l.slot.holder
	switch {
	case h.late && leaveLate:
		l.slot.put(l.word)
		return
	case h.late:
		g.late.Add(-1)
	}
	var links [4]Lease
	rest := append(links[:0], h.rest...)
	defer l.endSeized(&h, o) // also if an observer of a later gate ends the goroutine
	for i := len(rest) - 1; i >= 0; i-- {
		rest[i].end(o)
	}
}

// endSeized gives back the slot of a lease that is seized already.
func (l Lease) endSeized(h *holder, o Outcome) {
	if h.claim == oneUnit && l.slot.gate.slots.open.Load() != 0 {
		l.putFree()
		return
	}
	l.endClosed(with(l.word, slotBusy), h, o)
}

// putFree is endFree for a slot that is seized already.
func (l Lease) putFree() {
	word := with(l.word, slotFree)
	l.slot.put(word)
	if g := l.slot.gate; g.slots.open.Load() == 0 {
		g.takeFreed(l.slot, word)
	}
}

// endClosed gives the lease back to the machine. Its slot has the given word,
// unless it was given back before.
func (l Lease) endClosed(word uint64, h *holder, o Outcome) {
	g := l.slot.gate
	now, held := clock(), time.Duration(0)
	if !h.since.IsZero() {
		held = max(0, now.Sub(h.since))
	}
	g.lockAt(now)
	mine := g.slots.closeLocked(l.slot, word)
	if mine {
		g.machine.Release(now, h.claim, admit.End{Held: held, Outcome: admit.Outcome(o)})
	}
	at := g.machine.Gauge()
	g.unlock()
	if !mine {
		g.stale.Add(1)
		return
	}
	if s := g.settings.Load(); len(s.Observers) > 0 {
		g.emit(s, Event{
			Kind: EventReleased, Outcome: o, Cost: h.claim.Cost, Lane: s.laneOf(&h.call), Waited: h.waited, Held: held,
			Route: h.call.Route, RequestID: h.call.RequestID, RemoteIP: h.call.RemoteIP,
			InFlight: int(at.InFlight), Waiting: int(at.Waiting), Limit: int(at.Limit),
		})
	}
}

// keep notes who holds the lease. Nobody else has seen it yet: its slot is busy.
func (l Lease) keep(s *settings, h holder) Lease {
	g := l.slot.gate
	if s.track && h.since.IsZero() {
		h.since = clock()
	}
	if l.slot.holder == nil {
		l.slot.holder = &holder{}
	}
	h.rest = l.slot.holder.rest[:0]
	*l.slot.holder = h
	l.word = with(l.word, slotKept)
	l.slot.put(l.word)
	if s.MaxHold > 0 {
		g.watchOver(h.since, s.MaxHold)
	}
	return l
}

// chain makes the lease stand for those of further gates as well. Nobody else has
// seen it yet.
func (l Lease) chain(rest []Lease) Lease {
	if len(rest) == 0 || !l.slot.seize(l.word) {
		return l
	}
	l.slot.holder.rest = append(l.slot.holder.rest[:0], rest...)
	l.slot.put(l.word)
	return l
}
