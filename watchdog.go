package forebay

import (
	"time"

	"example.com/forebay/internal/admit"
)

// The watchdog reports leases that are held for longer than [Config.MaxHold]. It
// gives nothing away: the work still runs, and its slot with it.

// watchOver makes sure that a lease given at since is looked at when it is overdue.
func (g *Gate) watchOver(since time.Time, maxHold time.Duration) {
	now := clock()
	g.lock()
	g.watch.setLocked(g, now, since.Add(maxHold))
	g.unlock()
}

// watchAfreshLocked makes the watchdog look at once by what MaxHold is now, or not
// at all.
func (g *Gate) watchAfreshLocked(now time.Time, s *settings) {
	g.watch.offLocked(now)
	if s.MaxHold > 0 {
		g.watch.setLocked(g, now, now)
	}
}

// reportOverdue is the watchdog's alarm: it notes who is overdue, once each, and
// says when the next lease will be. The reports go out without the lock.
func reportOverdue(g *Gate, now time.Time) (next time.Time, after func()) {
	s := g.settings.Load()
	if s.MaxHold == 0 {
		return next, nil
	}
	var overdue []holder
	skipped := g.slots.each(func(h *holder) {
		due := h.since.Add(s.MaxHold)
		switch {
		case h.since.IsZero() || h.overdue:
		case !due.After(now):
			h.overdue = true
			overdue = append(overdue, *h)
		case next.IsZero() || due.Before(next):
			next = due
		}
	})
	if soon := now.Add(lookAgain); skipped > 0 && (next.IsZero() || soon.Before(next)) {
		next = soon
	}
	g.overdue.Add(uint64(len(overdue)))
	at := g.machine.Gauge()
	return next, func() { g.emitOverdue(s, overdue, now, at) }
}

// lookAgain is when leases are looked at that somebody was just taking or giving back.
const lookAgain = time.Millisecond

func (g *Gate) emitOverdue(s *settings, overdue []holder, now time.Time, at admit.Gauge) {
	for _, h := range overdue {
		g.emit(s, Event{
			Kind: EventOverdue, Route: h.call.Route, RequestID: h.call.RequestID, RemoteIP: h.call.RemoteIP,
			Cost: h.claim.Cost, Lane: s.laneOf(&h.call), Waited: h.waited, Held: now.Sub(h.since),
			InFlight: int(at.InFlight), Waiting: int(at.Waiting), Limit: int(at.Limit),
		})
	}
}
