package cluster

import (
	"errors"
	"time"
)

// replied hears the ledger's answer to r.
func (l *loan) replied(now time.Time, r *Request, rep Reply) {
	l.out, l.slow = nil, false
	back, missed := l.store.failures > 0, l.missed(now)
	wasAlone, share := l.alone, l.share
	l.store.well()
	l.exchanges++
	l.listen(r, &rep)
	whole := l.adopt(r, &rep)
	l.acked = l.granted
	l.acked = max(l.acked, rep.Granted)
	l.until = l.sent.Add(l.me.Lease)
	if l.exchanges > 1 && rep.Learning > 0 {
		rep.Share = min(rep.Share, l.share) // not everybody has spoken
	}
	l.last, l.lastAt, l.share, l.withheld = rep, now, rep.Share, r.Withhold
	l.heard = max(l.heard, min(rep.Heard, l.said)) // else calls to come would be told to nobody
	l.learns, l.learnt = rep.Learning > 0, now.Add(rep.Learning)
	l.contended, l.recalled = rep.Contended || l.recalled, false
	l.obey(now, &rep)
	l.gone = r.Leaving
	if missed {
		l.rejoinAsOthers()
	}
	if l.alone && !l.rejoins(now, back) {
		l.boundShare()
		return
	}
	l.gate.Renew(l.until)
	l.together()
	if whole {
		l.gate.Answered(l.heard)
	}
	l.suspect(now, r, &rep)
	l.poked = l.poked || l.corrects(r, &rep, wasAlone, share)
}

// together puts in force what the ledger lends, and ends the time without it.
func (l *loan) together() {
	wasAlone := l.alone
	l.alone, l.rejoin, l.shareToCome = false, time.Time{}, false
	l.setReturns()
	if l.keeps() {
		l.unreturn(l.lent)
	}
	l.relend()
	if wasAlone {
		l.gate.Together() // with what was lent just now, so that nobody is refused in between
	}
}

// adopt takes over what the ledger counts as ours. False if it is not all that the
// ledger lent: some may be somebody else's.
func (l *loan) adopt(r *Request, rep *Reply) bool {
	switch {
	case rep.Epoch != r.Epoch:
		return l.adoptEpoch(r, rep)
	case rep.Returned > r.Returned, rep.Lost > 0:
		l.lost += uint64(max(rep.Lost, l.held()))
		l.withdraw()
		l.granted, l.returned, l.told = rep.Granted, rep.Returned, rep.Returned
		l.slots.are(rep.Slots)
		return true
	}
	l.granted = max(l.granted, rep.Granted)
	l.slots.add(rep.Slots)
	if l.raise {
		l.raise = false
		l.shed()
	}
	return true
}

// adoptEpoch begins to count with another ledger. What it counts as ours is at most what
// r claimed; if it is more, an earlier request came through as well whose answer was
// lost, and which claimed units that may have gone to others. Those go back at once.
func (l *loan) adoptEpoch(r *Request, rep *Reply) bool {
	l.look() // what was given back meanwhile is still ours
	first := r.Epoch == 0
	ours := r.Claim + int(l.granted-r.Granted) // and what was pushed meanwhile
	told := int(rep.Granted - rep.Returned)
	l.epoch, l.granted = rep.Epoch, rep.Granted
	l.renumbered = time.Time{}
	if l.slots != nil {
		ours = l.slots.adopt(rep.Slots, first)
	}
	if first {
		ours = told
	}
	l.returned = l.granted - uint64(min(ours, told))
	l.told = l.returned
	if l.held() < l.lent {
		if rep.Learning > 0 && !l.raise {
			l.raise, l.poked = true, true
		} else {
			l.shed()
		}
	}
	if told > ours {
		l.poked = true
	}
	return told <= ours
}

// shed withdraws what the gate has and the ledger does not count as ours.
func (l *loan) shed() {
	if n := l.lent - l.held(); n > 0 {
		l.lost += uint64(n)
		l.withdraw()
		l.slots.shed()
	}
}

// withdraw takes every unit from the gate, at once.
func (l *loan) withdraw() {
	if l.lent > 0 {
		l.gate.Lapse()
		l.slots.withdrawn()
	}
	l.look()
	l.unreturn(maxUnits)
}

// suspect has a look at the line soon, if calls in it may be forgotten. If not, the next
// request does.
func (l *loan) suspect(now time.Time, r *Request, rep *Reply) {
	gone := ordinary(r.Arrived) + spanned(r.Standing) - rep.Queued
	lent := int(rep.Granted - r.Granted)
	if gone > 0 && (gone > lent || rep.Epoch != r.Epoch || r.Spare > 0 || l.dear) {
		l.mendAt = later(now, l.renumbered.Add(mendEvery))
	}
}

// failed hears that nothing is known of the exchange under way.
func (l *loan) failed(now time.Time, err error) {
	l.out, l.slow = nil, false
	l.recalled = false
	l.failures++
	l.store.failed(now, l.sent, errors.Is(err, ErrSetup), err.Error(), spreadOf(l.me.Instance), l.me.Lease/4)
	l.keep(maxUnits)
}

// late is told that the exchange under way may be slow.
func (l *loan) late(now time.Time) {
	if l.out != nil && !l.slow && now.Sub(l.sent) >= keepAfter {
		l.slow = true
		l.keep(l.ownShare())
	}
}

// hear is told what the ledger published.
func (l *loan) hear(n News) {
	switch n.Kind {
	case 'g':
		l.grantedBy(n)
	case 'c':
		l.recalled = l.out != nil
		l.contended = true
		l.setReturns() // what lies idle goes back with it
	case 'n':
		l.last.Instances = n.Count
		l.counted(n.Count)
	case 'l':
		l.poked = l.poked || n.Count != l.last.Limit
	case 'e':
		l.poked = l.poked || n.Epoch != l.epoch
	}
}

// hearing is told that pushes are heard from now on, or no longer. What was published
// before is for the next exchange to say.
func (l *loan) hearing(now time.Time, on bool) {
	l.deaf = !on
	if on {
		l.probe(now)
		l.poked = true
	}
}

// listen doubts that pushes are heard, where the ledger has lent more than this exchange
// made it lend: a subscription may look well and say nothing. A push that is heard ends
// the doubt, and so do exchanges that were made for it and brought nothing.
func (l *loan) listen(r *Request, rep *Reply) {
	if rep.Epoch != l.epoch || l.alone {
		return
	}
	due := int(r.Returned-l.toldBefore) + r.Spare
	for _, run := range r.Arrived {
		due += run.Calls * run.Cost
	}
	switch {
	case int(rep.Granted-l.granted) > due:
		l.doubt++
	case l.polled:
		l.doubt = max(0, l.doubt-1)
	}
}

// doubtful is the doubt from which on waiting calls ask as if nothing were heard.
const doubtful = 2

// deafened reports, not too often, whether the subscription is to be renewed: it says
// nothing although it should.
func (l *loan) deafened(now time.Time) bool {
	if l.deaf || l.doubt < 4*doubtful || now.Before(l.renewal) {
		return false
	}
	l.renewal = now.Add(renewEvery)
	return true
}

// renewEvery is the least time between two renewals of a subscription in doubt.
const renewEvery = 10 * time.Second

// cut is told that the store broke off. It may be away.
func (l *loan) cut() { l.poked = true }

// probe is told that the store was heard of.
func (l *loan) probe(now time.Time) { l.store.next = earlier(l.store.next, now) }

// grantedBy takes what was lent without being asked for just now.
func (l *loan) grantedBy(n News) {
	l.doubt = 0
	if n.Epoch != l.epoch || n.Granted <= l.granted {
		return
	}
	l.granted = n.Granted
	l.slots.add(n.Slots)
	l.relend()
	if n := l.granted - l.acked; n >= maxUnacked-1 || l.dear && l.view.Waiting > 0 {
		l.poked = true // or the ledger soon lends nothing more unasked
	}
}

// spreadOf makes a number of a name.
func spreadOf(name string) (n uint64) {
	for _, c := range []byte(name) {
		n = n*131 + uint64(c)
	}
	return n
}
