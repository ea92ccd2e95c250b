package cluster

import "example.com/forebay/internal/feed"

// leave begins to give everything back: nobody is let in from now on, and what runs
// gives its units back as it ends.
func (l *loan) leave() {
	if l.leaving {
		return
	}
	l.leaving, l.poked = true, true
	l.alone, l.how = true, feed.Alone{Refuse: true}
	l.setReturns()
	l.gate.Alone(l.how)
}

// goOnLeaving has the ledger told of work that has ended since.
func (l *loan) goOnLeaving() {
	if !l.leaving || l.gone {
		return
	}
	if v := l.look(); v.Slots > v.InFlight || v.InFlight == 0 {
		l.poked = true
	}
}

// inVain reports whether nothing is left to wait for but a store that is away: what it
// counts as ours it lends again by itself.
func (l *loan) inVain() bool { return l.leaving && l.view.InFlight == 0 && l.store.open() }
