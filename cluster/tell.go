package cluster

import (
	"slices"
	"time"

	"example.com/forebay/internal/feed"
)

// request returns what the ledger is to be told now; nil if the gate wanted it to be
// looked at, and has nothing to say.
func (l *loan) request(now time.Time) *Request {
	quiet := l.nudged && l.store.failures == 0 && now.Before(l.regularly()) && (l.held() == 0 || l.valid(now))
	l.nudged = false
	l.setReturns()
	v := l.look()
	if quiet && !l.poked {
		return nil
	}
	l.polled = !l.poked
	if l.forgets(v) && now.Sub(l.renumbered) >= mendEvery {
		l.renumber(now)
		v = l.look()
	}
	if l.alone {
		v.Arrived, v.Standing = nil, nil // they are served here, and told afterwards
	}
	l.giveBack(now, v)
	l.number()
	r := l.me
	r.Epoch, r.Granted, r.Returned = l.epoch, l.granted, l.returned
	r.Slots = l.slots.held()
	r.Claim = l.claim(now)
	r.Arrived, r.Standing = v.Arrived, v.Standing
	if n := len(r.Arrived); n > 0 {
		l.said = r.Arrived[n-1].First + uint64(r.Arrived[n-1].Calls) - 1
	}
	l.dear = dear(v.Arrived) || l.dear && v.Waiting > 0
	r.Waiting, r.InUse, r.Oldest = v.Waiting, v.InFlight, v.Oldest
	r.Spare = l.spare(now, v)
	l.tellShare(&r, v)
	r.Limit, r.Override = l.me.Limit, l.overrideAt(now)
	r.Leaving = l.leaving && l.lent == 0 && v.InFlight == 0
	l.toldBefore = l.told
	l.usage.note(int(l.returned-l.told), l.lent, now.Sub(l.sent))
	l.told, l.acked = l.returned, l.granted
	l.slots.told()
	l.out, l.sent = &r, now
	l.poked = len(v.Arrived) >= maxRuns // there is more
	return &r
}

// number gives the request a number of its own.
func (l *loan) number() { l.me.Number++ }

// giveBack takes back what lies idle, where it must not, before the ledger is told what
// is ours.
func (l *loan) giveBack(now time.Time, v feed.View) {
	switch {
	case l.leaving:
		l.take(v.Slots - v.InFlight)
		l.surrender(l.held() - l.lent)
	case l.returns:
		l.take(v.Slots - v.InFlight)
	case l.alone && !l.learns:
		l.unreturn(maxUnits)
		l.surrender(l.held() - l.needs(v))
	case l.keeps():
		l.unreturn(maxUnits)
		l.relend()
	case v.Waiting > 0 && l.valid(now):
		// They do not fit in: a dear call at the head needs more than lies idle here, and
		// gets all that it needs from the ledger at once, or never.
		l.take(v.Slots - v.InFlight)
	}
}

// surrender gives back n units that the gate does not have.
func (l *loan) surrender(n int) {
	if n > 0 {
		l.returned += uint64(n)
		l.slots.move(slotHere, slotBack, n)
	}
}

// claim returns the units that are surely ours, whatever became of the ledger: what is
// lent, and what was given back and told in no request before this one. Those that an
// exchange took back of which nothing was heard may be somebody else's. A share that is
// in use is ours as well: a ledger that learns must not lend it to others.
func (l *loan) claim(now time.Time) int {
	switch {
	case l.epoch == 0:
		return 0
	case l.alone && l.slots == nil && l.terms.WhenAway == Share:
		return l.how.Slots
	case !l.valid(now):
		return 0
	case l.slots != nil:
		return len(l.slots.held())
	}
	return max(int(l.granted-l.told), l.lent)
}

// spare returns the units wanted for calls that run without one: the ledger must know of
// them, or it lends them to somebody else.
func (l *loan) spare(now time.Time, v feed.View) int {
	if !l.alone {
		return max(0, v.InFlight-l.lent)
	}
	held := l.held()
	if now.After(l.until.Add(l.me.Lease / 2)) {
		held = 0 // the ledger has given us up by now
	}
	return max(0, l.needs(v)-held)
}

// needs is what a gate that goes on alone uses, and wants to be lent.
func (l *loan) needs(v feed.View) int {
	if l.terms.WhenAway == Share && !l.how.Refuse {
		return l.how.Slots
	}
	return v.InFlight
}

// forgets reports whether more of the calls that the ledger has heard of still stand in
// line than it says it knows: a loss, or units that went to calls which run without one.
func (l *loan) forgets(v feed.View) bool {
	if l.exchanges == 0 || l.alone || len(v.Arrived) >= maxRuns {
		return false
	}
	return v.Waiting-calls(v.Arrived) > l.last.Queued
}

// mend has forgotten calls told again.
func (l *loan) mend(now time.Time) {
	if l.mendAt.IsZero() || now.Before(l.mendAt) {
		return
	}
	l.mendAt = time.Time{}
	if l.forgets(l.look()) {
		l.renumber(now)
	}
}

func (l *loan) renumber(now time.Time) {
	l.gate.Renumber()
	l.renumbered = now
	l.poked = true
}

func calls(runs []Run) (n int) {
	for _, r := range runs {
		n += r.Calls
	}
	return n
}

func ordinary(runs []Run) (n int) {
	for _, r := range runs {
		if !r.Ask {
			n += r.Calls
		}
	}
	return n
}

func spanned(spans []Span) (n int) {
	for _, s := range spans {
		n += int(s.Last - s.First + 1)
	}
	return n
}

func dear(runs []Run) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { return r.Cost > 1 })
}
