package cluster

import (
	"time"

	"example.com/forebay/internal/feed"
)

// loan is what one instance knows of its loan at one gate, and everything that it
// decides: what to tell the ledger and when, what to do with the answer, when the slots
// end, how to go on without. It reads no clock, waits for nothing and locks nothing; its
// owner does.
type loan struct {
	gate  feed.Gate
	terms Terms
	me    Request // what every request says: who, and on which terms

	// As the ledger counts, in epoch. What is returned above told is ours as long as the
	// request that says so was not made: afterwards the ledger may have lent it to others.
	epoch      uint64
	granted    uint64
	returned   uint64
	told       uint64
	toldBefore uint64 // and before the last request
	acked      uint64 // granted, as the ledger last heard of us
	heard      uint64 // the highest number of a call in line that the ledger has heard of
	said       uint64 // and that it was told of
	slots      holding

	lent  int // units that the gate has; fewer than are held while no lease is valid
	until time.Time
	view  feed.View // as last seen

	out       *Request  // under way; nil: none
	sent      time.Time // the last one
	slow      bool      // the one under way is
	exchanges int       // that went well
	store     breaker
	poked     bool // there is something to say
	nudged    bool // the gate says that there is something to look at

	// As the ledger last said.
	last      Reply
	lastAt    time.Time
	limit     int  // as the gate was told, or told us
	unsure    bool // the gate may have another
	override  Override
	ends      time.Time // of the override; zero: it stays
	contended bool      // somebody waits elsewhere: units go back
	recalled  bool      // it was said while an exchange was under way, whose answer may be older
	learns    bool      // the ledger lends nothing yet
	learnt    time.Time // about when it will
	share     int
	withheld  time.Duration // for how long the ledger keeps it from the others
	dear      bool          // calls in line may cost more than one unit
	raise     bool          // the next request claims units that the ledger of this epoch does not know

	returns     bool // as the gate was told
	usage       usage
	alone       bool // it goes on without the ledger
	how         feed.Alone
	shareToCome bool      // it lets nobody in, and is to use its share later
	rejoin      time.Time // until when it stays alone, although the ledger is heard
	deaf        bool      // nothing that ledgers publish is heard: ask more often
	doubt       int       // the more, the less likely it is that pushes are heard
	renewal     time.Time // of the subscription: not before
	polled      bool      // the last request had nothing to say
	ended       bool      // the lease is over, and the gate was told to see
	peak        int       // the most units that ran since the last tidying
	tidyAt      time.Time // zero: nothing may lie idle
	mendAt      time.Time // when to look for forgotten calls; zero: none is
	renumbered  time.Time
	lost        uint64 // units that we held and the ledger knew nothing of
	failures    uint64 // exchanges that failed

	leaving bool // nobody is let in any more, and what ends goes back
	gone    bool // the ledger has heard it
}

const (
	// exchangeBudget is how long an exchange may take: a store that needs longer is away.
	exchangeBudget = 100 * time.Millisecond
	// keepAfter is the age of an exchange under way from which on units are kept for the
	// calls here, up to a fair share: nobody else gets them soon.
	keepAfter = 20 * time.Millisecond
	// deafBeat is how often waiting calls ask while pushes are not heard, and
	// deafPerInstance is added for each instance that may have to.
	deafBeat        = 10 * time.Millisecond
	deafPerInstance = time.Millisecond
	// leaveBeat is how often a gate that leaves is looked at: it does not say by itself
	// that work has ended.
	leaveBeat = 10 * time.Millisecond
	// pacePerInstance is the least time between two exchanges of an instance while
	// somebody waits elsewhere, for each instance: together they send the ledger 20,000
	// a second at most, whatever their number.
	pacePerInstance = 50 * time.Microsecond
	// togetherPart of the time that calls hold their units is waited for more to end. At 80
	// callers of five instances on 20 units a quarter saves a fifth of the exchanges
	// that a sixth takes, and leaves a fiftieth more of the units idle; a third saves a
	// quarter, and costs a tenth.
	togetherPart = 4
	// longestPace is enough to save every third exchange of busy instances; the units that
	// wait for it meanwhile are missed by somebody.
	longestPace = 2 * time.Millisecond
	// alonePace is the same for a gate that goes on alone: it has nothing to ask.
	alonePace = 10 * time.Millisecond
	// maxRuns bounds a request. What does not fit goes with the next, which is sent at once.
	maxRuns = 64
	// mendEvery keeps calls that the ledger grants and the gate cannot let in (its own
	// limit is lower) from being told again and again.
	mendEvery = 20 * time.Millisecond
)

func newLoan(g feed.Gate, me Request, terms Terms) *loan {
	l := &loan{gate: g, me: me, terms: terms, limit: me.Limit, poked: true, deaf: true}
	l.override.Limit = -1
	if terms.Fenced {
		l.slots = holding{}
		g.Fenced()
	}
	return l
}

// held is what the ledger counts as ours.
func (l *loan) held() int { return int(l.granted - l.returned) }

// valid reports whether the lease is: by the monotonic clock, and by the wall clock,
// which goes on while the machine is suspended.
func (l *loan) valid(now time.Time) bool {
	return !past(now, l.until)
}

// past reports whether a time has come, by either clock.
func past(now, at time.Time) bool {
	return !now.Before(at) || !now.Round(0).Before(at.Round(0))
}

// step does what is due, and returns the request that is to be sent now, or when to call
// it again.
func (l *loan) step(now time.Time) (*Request, time.Time) {
	l.endLease(now)
	l.policy(now)
	l.endOverride(now)
	l.tidy(now)
	l.mend(now)
	l.goOnLeaving()
	at := l.due()
	if !at.After(now) {
		if r := l.request(now); r != nil {
			return r, at
		}
		at = l.due()
	}
	for _, t := range [...]time.Time{l.tidyAt, l.mendAt, l.endsAt(), l.policyAt(now)} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	if l.leaving {
		at = earlier(at, now.Add(leaveBeat))
	}
	return nil, at
}

// due returns when the next exchange is.
func (l *loan) due() time.Time {
	if l.store.failures > 0 {
		return l.store.next // whatever anybody wants
	}
	at := l.regularly()
	if l.poked || l.nudged {
		at = earlier(at, l.sent.Add(l.pace()))
	}
	return at
}

// regularly returns when the next exchange is if nobody wants one.
func (l *loan) regularly() time.Time {
	at := l.sent.Add(l.beat())
	soonest := l.sent.Add(l.pace())
	if l.learns && (l.alone || l.view.Waiting > 0) {
		at = earlier(at, later(l.learnt, soonest))
	}
	switch {
	case !l.alone || l.rejoin.IsZero():
	case l.held() < l.needs(l.view): // what it uses is to be known before the others lend it
		at = earlier(at, soonest)
	default:
		at = earlier(at, later(l.rejoin, soonest))
	}
	return at
}

// beat is how often the ledger hears of us even if there is nothing to say. While it
// learns, its clock goes on with what it hears.
func (l *loan) beat() time.Duration {
	switch {
	case (l.deaf || l.doubt >= doubtful) && l.view.Waiting > 0:
		return min(deafBeat+time.Duration(l.last.Instances)*deafPerInstance, l.me.Lease/4)
	case l.held() > 0, l.view.Waiting > 0, l.view.InFlight > 0, l.terms.Withhold > 0, l.learns:
		return l.me.Lease / 4
	}
	return 5 * l.me.Lease
}

// pace is the least time between two exchanges. While others wait, what ends within a
// part of the time that calls here take goes back together.
func (l *loan) pace() time.Duration {
	switch {
	case l.leaving: // what cannot be given back yet is no reason to ask without end
		return leaveBeat
	case l.alone:
		return alonePace
	case !l.contended:
		return 0
	}
	together := min(l.usage.hold()/togetherPart, longestPace)
	return min(max(together, time.Duration(l.last.Instances)*pacePerInstance), l.me.Lease/8)
}

// keeps reports whether units stay here as calls end, whoever waits elsewhere: nobody
// else can have them now.
func (l *loan) keeps() bool {
	return l.learns || l.slow || l.alone || l.store.failures > 0
}

// setReturns tells the gate whether units go back as calls end.
func (l *loan) setReturns() {
	on := !l.keeps() && (l.contended || l.leaving || l.scarce() || l.terms.IdleHold < 0)
	if on != l.returns {
		l.returns = on
		l.gate.Return(on)
	}
}

// scarce reports whether there is less to lend than instances to ask for it: what lies
// idle here would refuse a call there that does not wait.
func (l *loan) scarce() bool {
	return l.exchanges > 0 && l.last.Limit-l.last.Held < l.last.Instances-1
}

// look sees what the gate has to say, and takes what it gives back.
func (l *loan) look() feed.View {
	v := l.gate.Look(l.heard, maxRuns)
	l.returned += uint64(v.Back)
	l.slots.back(v.BackOf)
	if len(v.Arrived) > 0 || v.Back > 0 {
		l.poked = true // the gate does not say so again
	}
	l.lent = v.Slots
	l.peak = max(l.peak, v.Peak, v.InFlight)
	l.view = v
	return v
}

// relend gives the gate what is held and it does not have. It uses nothing while the
// lease is over. A gate that goes on alone has what it needs.
func (l *loan) relend() {
	if n := l.held() - l.lent; n > 0 && !l.alone {
		l.lent += n
		l.gate.Lend(n, l.slots.lend())
	}
}

// take takes back up to n units that lie idle.
func (l *loan) take(n int) {
	if n <= 0 {
		return
	}
	taken, slots := l.gate.Take(n)
	l.lent -= taken
	l.returned += uint64(taken)
	l.slots.back(slots)
	if taken > 0 {
		l.poked = true
	}
}

// keep stops giving back, and lends the gate again what was given back and not yet told,
// as long as no more than most are held.
func (l *loan) keep(most int) {
	l.look()
	l.unreturn(most - l.held())
	l.setReturns()
	l.relend()
}

// unreturn makes up to n units ours again that were given back and not yet told.
func (l *loan) unreturn(n int) {
	n = max(0, min(n, int(l.returned-l.told)))
	l.returned -= uint64(n)
	l.slots.move(slotBack, slotHere, n)
}

// tidy gives back what nobody has used for a while.
func (l *loan) tidy(now time.Time) {
	if l.lent == 0 || l.returns || l.keeps() {
		l.tidyAt, l.peak = time.Time{}, 0
		return
	}
	if l.tidyAt.IsZero() {
		l.tidyAt = now.Add(l.terms.IdleHold)
		return
	}
	if now.Before(l.tidyAt) {
		return
	}
	v := l.look()
	l.take(v.Slots - max(l.peak, v.InFlight))
	l.peak = v.InFlight
	l.tidyAt = now.Add(l.terms.IdleHold)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
