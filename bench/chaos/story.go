//go:build linux

package main

import (
	"cmp"
	"slices"
	"time"
)

// life is one worker as the harness knows it: what it wrote, and what was done to it.
type life struct {
	worker  int
	records []record
	// ended is when the process was gone: killed, or ended by itself. What it held
	// then is held no longer. Of a worker that still ran it is the end of the run.
	ended instant
	// killed says that it did not end by itself, so that open requests are no fault.
	killed bool
	frozen []span // stopped by a signal, and continued
}

// span is from one instant to another.
type span struct{ from, to instant }

func (s span) holds(i instant) bool { return s.from <= i && i < s.to }

// hold is one slot held, from the first moment of the work to its last.
type hold struct {
	worker, caller int
	lease          uint64
	cost           int
	span
	how     outcome // 0: it was held when the process was gone
	touches []record
}

// request is one call, from its first moment to its decision.
type request struct {
	worker, caller int
	lease          uint64
	span
	patience time.Duration
	how      outcome // 0: there was none; done: it got its slot
	killed   bool    // there could be none: the process was killed
}

// lag is a timer that rang late, over the whole time by which it did.
type lag struct {
	worker int
	span
}

// story is what happened in a run.
type story struct {
	holds    []hold
	requests []request
	lags     []lag
	repeated int // requests that were decided twice
}

// tell puts together what the tapes say.
func tell(lives []life) *story {
	s := &story{}
	for _, l := range lives {
		s.add(l)
	}
	slices.SortFunc(s.holds, func(a, b hold) int { return cmp.Compare(a.from, b.from) })
	return s
}

func (s *story) add(l life) {
	open := map[uint64]*request{}
	held := map[uint64]*hold{}
	decide := func(r record, how outcome) {
		q := open[r.lease]
		switch {
		case q == nil || q.how != 0:
			s.repeated++
		default:
			q.to, q.how = r.at, how
		}
	}
	for _, r := range l.records {
		switch r.kind {
		case started:
			open[r.lease] = &request{
				worker: l.worker, caller: r.caller, lease: r.lease, killed: l.killed,
				span: span{r.at, l.ended}, patience: time.Duration(r.value),
			}
		case refused:
			decide(r, r.how)
		case entered:
			decide(r, done)
			held[r.lease] = &hold{worker: l.worker, caller: r.caller, lease: r.lease, cost: r.cost, span: span{r.at, l.ended}}
		case left:
			if h := held[r.lease]; h != nil && h.how == 0 {
				h.to, h.how = r.at, r.how
			}
		case touched, rejected:
			if h := held[r.lease]; h != nil {
				h.touches = append(h.touches, r)
			}
		case late:
			s.lags = append(s.lags, lag{l.worker, span{r.at - instant(r.value), r.at}})
		}
	}
	for _, q := range open {
		s.requests = append(s.requests, *q)
	}
	for _, h := range held {
		s.holds = append(s.holds, *h)
	}
}

// forgotten returns the requests of workers that lived to their end which nobody ever
// decided.
func (s *story) forgotten() (all []request) {
	for _, q := range s.requests {
		if q.how == 0 && !q.killed {
			all = append(all, q)
		}
	}
	return all
}

// allowance is how much longer than its patience a request may wait; what the process
// itself was late by at that moment comes on top.
const allowance = 50 * time.Millisecond

// tardy is a request that was decided later than it should have been.
type tardy struct {
	request
	by time.Duration
}

// overdue returns the requests that were decided later than they should have been: than
// patience, allowance, and what timers of the same process rang late by meanwhile.
func (s *story) overdue() (all []tardy) {
	for _, q := range s.requests {
		over := q.to.since(q.from) - q.patience - allowance
		if over <= 0 || q.how == 0 && q.killed {
			continue
		}
		due := span{q.from.add(q.patience), q.to}
		for _, l := range s.lags {
			if l.worker == q.worker {
				over -= max(0, min(l.to, due.to).since(max(l.from, due.from)))
			}
		}
		if over > 0 {
			all = append(all, tardy{q, over})
		}
	}
	return all
}

// worst returns the one that was decided latest.
func worst(all []tardy) (w tardy) {
	for _, t := range all {
		if t.by > w.by {
			w = t
		}
	}
	return w
}

// outcomes counts how requests ended.
func (s *story) outcomes() map[outcome]int {
	n := map[outcome]int{}
	for _, q := range s.requests {
		n[q.how]++
	}
	return n
}

// ends counts how holds ended.
func (s *story) ends() map[outcome]int {
	n := map[outcome]int{}
	for _, h := range s.holds {
		n[h.how]++
	}
	return n
}

// use returns which part of so many units was held within the span, on average.
func (s *story) use(within span, limit int) float64 {
	var held time.Duration
	for _, h := range s.holds {
		held += max(0, min(h.to, within.to).since(max(h.from, within.from))) * time.Duration(h.cost)
	}
	return held.Seconds() / within.to.since(within.from).Seconds() / float64(limit)
}

// recovered returns how long after an instant as many units as before were in use again,
// or nearly, for half a second; false if that was not seen until the end.
func (s *story) recovered(after, end instant, limit int, before float64) (time.Duration, bool) {
	const window, step = instant(500 * time.Millisecond), instant(50 * time.Millisecond)
	for from := after; from+window <= end; from += step {
		if s.use(span{from, from + window}, limit) >= 0.8*before {
			return from.since(after), true
		}
	}
	return 0, false
}

// rate returns how many holds a second ended well within the span.
func (s *story) rate(within span) float64 {
	n := 0
	for _, h := range s.holds {
		if h.how == done && within.holds(h.to) {
			n++
		}
	}
	return float64(n) / within.to.since(within.from).Seconds()
}
