package cluster

import "time"

// setLimit is told that the limit was set by hand, for everybody. It is newer than any
// that we have heard of; of two that are set at the same time the lower one wins.
func (l *loan) setLimit(now time.Time, n int, lasts time.Duration) {
	l.override = Override{Version: l.override.Version + 1, Limit: n}
	l.ends = time.Time{}
	if n < 0 {
		l.override.Limit, l.unsure = -1, true
	} else {
		l.limit = n
		if lasts > 0 {
			l.ends = now.Add(lasts)
		}
	}
	l.poked = true
}

// configured is told that the gate is configured afresh.
func (l *loan) configured(limit int) {
	l.me.Limit = limit
	l.unsure, l.poked = true, true
}

// obey puts the cluster's limit in force here, unless one was set here by hand that the
// ledger has not heard of.
func (l *loan) obey(now time.Time, rep *Reply) {
	if l.override.Version > rep.Override.Version {
		l.poked = true
		return
	}
	l.override, l.ends = rep.Override, time.Time{}
	if rep.Override.For > 0 {
		l.ends = now.Add(rep.Override.For)
	}
	if rep.Limit != l.limit || l.unsure {
		l.limit, l.unsure = rep.Limit, false
		l.gate.SetLimit(l.limit)
	}
}

// endOverride takes a limit back whose time is over. What is in force instead the ledger
// says, unless it is away.
func (l *loan) endOverride(now time.Time) {
	if l.ends.IsZero() || now.Before(l.ends) {
		return
	}
	l.ends = time.Time{}
	l.override.Limit = -1
	l.poked = true
	if l.store.failures > 0 {
		l.limit = l.me.Limit
		l.gate.SetLimit(l.limit)
	}
}

// overrideAt returns the override with what is left of it.
func (l *loan) overrideAt(now time.Time) Override {
	o := l.override
	o.For = 0
	if !l.ends.IsZero() {
		o.For = max(time.Millisecond, l.ends.Sub(now))
	}
	return o
}
