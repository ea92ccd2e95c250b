package cluster

import (
	"time"

	"example.com/forebay/internal/feed"
)

// endLease has the gate notice that its slots have ended, so that whoever works on one
// is told.
func (l *loan) endLease(now time.Time) {
	if l.lent == 0 || l.valid(now) {
		l.ended = false
		return
	}
	if l.ended {
		return
	}
	l.ended = true
	if l.leaving { // the gate is alone, and time means nothing to it
		l.gate.Lapse()
		l.slots.withdrawn()
	}
	l.look()
}

// endsAt returns when the slots end; zero: they have, or there are none.
func (l *loan) endsAt() time.Time {
	if l.lent == 0 || l.ended {
		return time.Time{}
	}
	return l.until
}

// policy goes on without the ledger when it is time to. It uses no share before it has
// made sure that the store is still away: the others may have heard from it meanwhile.
func (l *loan) policy(now time.Time) {
	at := l.policyAt(now)
	if at.IsZero() || now.Before(at) {
		return
	}
	if (!l.alone || l.how.Refuse) && l.sharesLater() && l.sent.Before(at) {
		l.store.next = now
		return
	}
	if l.alone && !l.how.Refuse && l.shareIsOver(now) {
		l.gate.Lapse() // what runs on it has ended as well
	}
	l.shareToCome = false
	l.goAlone(now)
}

// sharesLater reports whether others may use all of the limit for a lease from when the
// store went away.
func (l *loan) sharesLater() bool { return l.terms.WhenAway == Share && l.exchanges > 0 }

// shareFrom returns when a share begins at the earliest. Until then others may use all of
// the limit: of them we do not know when they last heard from the store, but that it was
// before we did not.
func (l *loan) shareFrom() time.Time {
	at := l.store.since.Add(l.me.Lease + l.me.Lease/clockMargin)
	if l.terms.Withhold > 0 {
		at = later(at, l.lastAt.Add(shareAfter(l.me.Lease)))
	}
	return at
}

// goAlone goes on without the ledger as the terms say.
func (l *loan) goAlone(now time.Time) {
	how := feed.Alone{Refuse: true}
	switch {
	case l.terms.WhenAway == Open:
		how = feed.Alone{Slots: l.limit}
	case l.shareToCome:
	case l.terms.WhenAway == Share && !l.shareIsOver(now):
		if n := l.ownShare(); n > 0 {
			how = feed.Alone{Slots: n}
		}
	}
	if !l.alone || how != l.how {
		l.setAlone(how)
	}
}

func (l *loan) setAlone(how feed.Alone) {
	if !l.alone && l.lent > 0 {
		// Nobody's any more; what is lent later goes to what runs first.
		l.gate.Lapse()
		l.slots.withdrawn()
	}
	l.alone, l.how = true, how
	l.setReturns()
	l.look()
	l.unreturn(maxUnits)
	l.gate.Alone(how)
	l.boundShare()
}

// policyAt returns when the policy is to be looked at; zero: not as long as things are
// as they are.
func (l *loan) policyAt(now time.Time) time.Time {
	switch {
	case l.leaving:
		return time.Time{}
	case l.alone && l.shareToCome:
		return l.shareFrom()
	case l.alone && l.how.Refuse:
		return time.Time{}
	case l.alone:
		return l.shareEnds()
	case !l.store.open():
		return time.Time{}
	}
	at := l.store.since
	if l.lent > 0 && l.valid(now) {
		at = later(at, l.until)
	}
	if l.sharesLater() {
		at = later(at, l.shareFrom())
	}
	return at
}

// clockMargin is the part of a time by which clocks of two machines may differ after it.
const clockMargin = 20

// ownShare is what may run here while the ledger is away. Who has never heard of it does
// not know how many others there are.
func (l *loan) ownShare() int {
	if l.exchanges == 0 {
		return min(l.terms.MinShare, l.limit)
	}
	if l.terms.Withhold > 0 {
		return min(l.share, l.limit) // what the ledger has heard of, and not more
	}
	return min(max(l.share, l.terms.MinShare), l.limit)
}

// rejoins reports whether a gate that goes on alone stops doing so, now that the ledger
// is heard. One that uses its share waits until the others have heard of it too, and has
// the ledger lend it that share meanwhile: else the first to come would be lent what the
// others use.
func (l *loan) rejoins(now time.Time, back bool) bool {
	switch {
	case l.leaving:
		return false
	case l.how.Refuse:
		return true
	case back, l.learns:
		l.rejoin = now.Add(l.me.Lease/4 + 2*exchangeBudget) // the longest pause between two probes
	}
	return !l.learns && (l.terms.WhenAway == Open || !now.Before(l.rejoin))
}

// missed reports whether others may use their shares by now, as the ledger is heard
// again, although it is not our time to do so.
func (l *loan) missed(now time.Time) bool {
	if !l.sharesLater() || l.alone || !l.store.open() || l.valid(now) {
		return false
	}
	sooner := l.me.Lease/4 + 2*exchangeBudget // others may have noticed before us
	return now.After(l.store.since.Add(l.me.Lease - sooner))
}

// rejoinAsOthers goes on as those do that use their shares, with what is surely ours: no
// more than our share, or the rest may be what others use, and no more than the ledger
// counts as ours, or it may lend that to those that were never without.
func (l *loan) rejoinAsOthers() { l.setAlone(feed.Alone{Slots: min(l.held(), l.ownShare())}) }

// mode says how the gate goes on, in a word.
func (l *loan) mode() string {
	switch {
	case l.alone && l.how.Refuse:
		return "closed"
	case l.alone && l.terms.WhenAway == Open:
		return "open"
	case l.alone:
		return "share"
	case l.exchanges == 0:
		return "joining"
	case l.learns:
		return "learning"
	}
	return "normal"
}
