package forebay

import (
	"sync/atomic"
	"time"
)

// watchdog reports leases that are held for longer than [Config.MaxHold]. It
// gives nothing away: the work still runs, and its slot with it.
//
// It keeps one timer while leases are out, and none when a round finds nobody.
// until is when the armed round ends, so that a round that never came (its timer
// belonged to a testing/synctest bubble that is over) is noticed by the next
// lease and replaced.
type watchdog struct {
	until atomic.Int64 // unix nanoseconds; 0: not armed
}

// arm makes sure that a round is on its way when a lease was given at now.
func (d *watchdog) arm(g *Gate, now time.Time, maxHold time.Duration) {
	until := d.until.Load()
	next := now.Add(maxHold).UnixNano()
	if late := now.UnixNano() - until; until != 0 && late < int64(maxHold) && until <= next {
		return
	}
	if d.until.CompareAndSwap(until, next) {
		time.AfterFunc(maxHold, func() { d.round(g, next) })
	}
}

// round reports who is overdue, once each, and arms the next round for whoever
// becomes so first.
func (d *watchdog) round(g *Gate, until int64) {
	s := g.settings.Load()
	now := time.Now()
	var overdue []holder
	var oldest time.Time
	g.slots.each(func(h *holder) {
		switch {
		case h.since.IsZero() || h.overdue:
		case now.Sub(h.since) >= s.MaxHold:
			h.overdue = true
			overdue = append(overdue, *h)
		case oldest.IsZero() || h.since.Before(oldest):
			oldest = h.since
		}
	})
	next := int64(0)
	if !oldest.IsZero() && s.MaxHold > 0 {
		next = oldest.Add(s.MaxHold).UnixNano()
	}
	if d.until.CompareAndSwap(until, next) && next != 0 {
		time.AfterFunc(oldest.Add(s.MaxHold).Sub(now), func() { d.round(g, next) })
	}
	if s.MaxHold > 0 {
		g.reportOverdue(s, overdue, now)
	}
}

func (g *Gate) reportOverdue(s *settings, overdue []holder, now time.Time) {
	if len(overdue) == 0 {
		return
	}
	g.overdue.Add(uint64(len(overdue)))
	g.lock()
	at := g.machine.Gauge()
	g.unlock()
	for _, h := range overdue {
		g.emit(s, Event{
			Kind: EventOverdue, Route: h.call.Route, RequestID: h.call.RequestID, RemoteIP: h.call.RemoteIP,
			Cost: h.cost, Waited: h.waited, Held: now.Sub(h.since),
			InFlight: at.InFlight, Waiting: at.Waiting, Limit: at.Limit,
		})
	}
}
