package cluster

import (
	"time"

	"example.com/forebay/internal/feed"
)

// This is the instance's side of withholding; for the ledger's, and why the sum holds,
// see withhold.go.

// shareAfter returns how long after the last answer that was heard a share begins that is
// withheld from the others: by then the ledger surely misses us, and what it lent to
// others in the place of our share has had some time to come back.
func shareAfter(lease time.Duration) time.Duration {
	return fromMillis(givenUpAfter(inMillis(lease))) + lease/clockMargin
}

// tellShare says what the ledger has to know of our share: how much it is, and whether we
// may be using it.
func (l *loan) tellShare(r *Request, v feed.View) {
	if r.Withhold == 0 {
		return
	}
	switch {
	case !l.alone:
		r.Share = l.ownShare()
	case !l.how.Refuse:
		r.Share = max(l.how.Slots, l.ownShare())
	}
	switch {
	case l.alone && !l.how.Refuse, v.InFlight > l.lent: // what runs beside what is lent counts
		r.Share = max(r.Share, v.InFlight)
	case l.alone, l.exchanges == 0 && r.Share == 0:
		r.Contact = -1
	default:
		r.Contact = l.last.Clock
	}
}

// corrects reports whether the next request says of us what the ledger should know at
// once: that we are there after all, or that our share is less than it was.
func (l *loan) corrects(r *Request, rep *Reply, wasAlone bool, share int) bool {
	old := r.Contact > 0 && rep.Clock-r.Contact >= inMillis(l.me.Lease)/2
	return r.Withhold > 0 && (wasAlone || old || rep.Share < share)
}

// counted hears of another number of instances. A share that is withheld is more only
// once the ledger has said so to us.
func (l *loan) counted(instances int) {
	share := l.limit / max(1, instances)
	if l.terms.Withhold > 0 {
		share = min(l.share, max(share, l.terms.MinShare))
	}
	l.share = share
}

// shareEnds returns when the ledger may lend our share to others; zero: it does so as
// soon as nothing is heard of us, and we use it all the same.
func (l *loan) shareEnds() time.Time {
	if l.terms.WhenAway != Share || l.terms.Withhold == 0 || l.exchanges == 0 {
		return time.Time{}
	}
	return l.until.Add(min(l.terms.Withhold, l.withheld))
}

func (l *loan) shareIsOver(now time.Time) bool {
	over := l.shareEnds()
	return !over.IsZero() && past(now, over)
}

// boundShare has the gate end our share by itself, should we be late.
func (l *loan) boundShare() {
	if over := l.shareEnds(); l.alone && !l.how.Refuse && !over.IsZero() {
		l.gate.Renew(over)
	}
}
