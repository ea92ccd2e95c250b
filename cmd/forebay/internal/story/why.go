package story

import (
	"fmt"
	"math"
	"time"

	"example.com/forebay"
)

// full reports whether a call of its cost did not fit, at the moment of the decision.
func (p *page) full() bool { return p.inFlight+p.cost > p.limit }

// lineBound is how many may wait; 0: nobody. Where no number is given there is none that
// would have been in the way.
func (p *page) lineBound() int32 {
	switch {
	case p.rules == nil || p.rules.maxWait == 0:
		return 0
	case p.rules.maxWaiting > 0:
		return int32(p.rules.maxWaiting)
	}
	return math.MaxInt32
}

// wouldBe is the place in line that a call would have had that was refused on arrival.
func (p *page) wouldBe() int {
	if p.decision != forebay.RejectedBusy || p.limit == 0 {
		return 0
	}
	return int(p.waiting) + 1
}

// why says in words why a call was decided as it was.
func (p *page) why() string {
	switch p.decision {
	case forebay.Accepted:
		return p.whyAccepted()
	case forebay.Exempted:
		return "its route is exempt: it passes no gate"
	case forebay.RejectedBusy:
		return p.whyBusy()
	case forebay.RejectedTimeout:
		return fmt.Sprintf("it waited %v, which is its whole patience, and no slot came free for it; %s still in line when it left", round(p.waited), were(p.waiting))
	case forebay.RejectedDeadline:
		return fmt.Sprintf("its own deadline passed after %v in line", round(p.waited))
	case forebay.RejectedCaller:
		return p.whyCaller()
	case forebay.RejectedTooLarge:
		return fmt.Sprintf("it takes %d units, and the gate never has more than %d: waiting cannot cure that", p.cost, p.most())
	case forebay.RejectedDraining:
		return "the gate is draining: it admits nobody"
	case forebay.RejectedStore:
		return "the gate's slots come from a cluster, and its store is away or did not answer in time"
	case forebay.RejectedShed:
		return fmt.Sprintf("after %v in line it gave up its place for a call of a higher lane: it was the newest of the lowest", round(p.waited))
	case forebay.Canceled:
		return fmt.Sprintf("the caller left after %v in line, before it could run; nothing was answered", round(p.waited))
	}
	return "it is not known"
}

func (p *page) whyAccepted() string {
	if p.waited > 0 {
		return fmt.Sprintf("it ran after %v in line, as one of %d of %d in flight", round(p.waited), p.inFlight, p.limit)
	}
	return fmt.Sprintf("it ran at once, as one of %d of %d in flight", p.inFlight, p.limit)
}

func (p *page) whyBusy() string {
	slots := fmt.Sprintf("all %d slots were taken", p.limit)
	if p.inFlight < p.limit && p.full() {
		slots = fmt.Sprintf("it takes %d units, and of %d only %d were free", p.cost, p.limit, p.limit-p.inFlight)
	}
	bound := p.lineBound()
	switch {
	case p.limit == 0:
		return "the gate is closed: its limit is 0"
	case !p.full():
		return fmt.Sprintf("others were in line before it, or its slot was not yet lent: %d of %d were in flight, %s in line", p.inFlight, p.limit, were(p.waiting))
	case bound == 0:
		return slots + ", and the gate lets nobody wait"
	case p.waiting >= bound:
		return fmt.Sprintf("%s and the line was full: %d of %d waited", slots, p.waiting, bound)
	}
	return fmt.Sprintf("%s and %s in line before it: at the pace at which slots came free it had a chance below 5 %% to get one within %v, or the line had stood for so long that it is kept short", slots, were(p.waiting), p.rules.maxWait)
}

func (p *page) whyCaller() string {
	if p.rules == nil || p.rules.maxCaller == 0 {
		return "its caller had as much of the gate as one may have"
	}
	return fmt.Sprintf("its caller had as much of the gate as one may have (per_caller.max_in_flight: %d), and got nothing more within its patience; the gate itself had %d of %d in flight", p.rules.maxCaller, p.inFlight, p.limit)
}

func (p *page) most() int32 {
	if p.rules == nil {
		return p.limit
	}
	return max(p.limit, int32(p.rules.maxCost))
}

// whyRetry says how the Retry-After came about.
func (p *page) whyRetry() string {
	switch {
	case !p.decision.Refused():
		return ""
	case p.decision == forebay.RejectedTooLarge:
		return "none is sent: trying again does not help"
	case p.status == 0:
		return "the answer is not known yet"
	case p.retry == 0:
		return "none was sent"
	case p.rules == nil:
		return "as the gate's rules were"
	case p.rules.retry.Fixed > 0:
		return "it is set to just that"
	}
	least, most := p.bounds()
	told := fmt.Sprintf("how long the line would take at the pace at which slots came free while the gate was full, and a random part, so that those who are refused together do not come back together; %d s at least, %d s at most", least, most)
	if p.rate > 0 {
		told += fmt.Sprintf(". %s in line, and %s calls a second ended lately", were(p.waiting), figure(float64(p.rate)))
	}
	return told
}

func (p *page) bounds() (least, most int) {
	seconds := func(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
	least, most = max(1, seconds(p.rules.retry.Min)), seconds(p.rules.retry.Max)
	if most == 0 {
		most = max(least, 30)
	}
	return least, most
}

func were(n int32) string {
	if n == 1 {
		return "1 call was"
	}
	return fmt.Sprintf("%d calls were", n)
}

// figure shows a number as one says it.
func figure(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond / 10)
}
