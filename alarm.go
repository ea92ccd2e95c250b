package forebay

import "time"

// alarm is a timer that is set only while there is something to wait for: the
// line's rings when the first patience in it ends, the watchdog's when the oldest
// lease is overdue. Whoever empties the line, or gives back the last lease, takes
// it off, so that no timer outlives the testing/synctest bubble it was made in.
//
// Each setting is a value of its own: one that rings too late finds that it is the
// alarm no more. An alarm is guarded by the gate's lock.
//
// A lease that is taken in a bubble and leaked out of it may leave the watchdog's
// timer behind. It is let go rather than stopped, which only its bubble may do; the
// clocks of a bubble and of the world outside lie decades apart.
type alarm struct {
	// ring is called under the lock. It returns when to ring next, zero for not at
	// all, and what to do once the lock is given up, nil for nothing.
	ring func(g *Gate, now time.Time) (next time.Time, after func())
	set  *setting
}

type setting struct {
	at    time.Time
	timer *time.Timer
}

// setLocked makes the alarm ring at the given time, unless it rings before anyway.
func (a *alarm) setLocked(g *Gate, now, at time.Time) {
	if a.set != nil && !at.Before(a.set.at) && a.inThisWorld(now) {
		return
	}
	a.offLocked(now)
	mine := &setting{at: at}
	a.set = mine
	mine.timer = time.AfterFunc(at.Sub(now), func() { a.rang(g, mine) })
}

// offLocked takes the alarm off.
func (a *alarm) offLocked(now time.Time) {
	if a.set == nil {
		return
	}
	if a.inThisWorld(now) {
		a.set.timer.Stop()
	}
	a.set = nil
}

// inThisWorld reports whether the setting was made by the clock that says now.
func (a *alarm) inThisWorld(now time.Time) bool { return a.set.at.Sub(now).Abs() < anotherWorld }

// anotherWorld is more than any patience and any sane MaxHold.
const anotherWorld = 5 * 365 * 24 * time.Hour

func (a *alarm) rang(g *Gate, mine *setting) {
	if after := a.ringLocked(g, mine); after != nil {
		after()
	}
}

func (a *alarm) ringLocked(g *Gate, mine *setting) (after func()) {
	now := clock()
	g.lockAt(now)
	defer g.unlock()
	if a.set != mine {
		return nil
	}
	a.set = nil
	next, after := a.ring(g, now)
	if !next.IsZero() {
		a.setLocked(g, now, next)
	}
	return after
}

// expireDue is the line's alarm.
func expireDue(g *Gate, now time.Time) (next time.Time, after func()) {
	next, _ = g.machine.ExpireDue(now)
	return next, nil
}
