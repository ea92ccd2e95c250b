package cluster

import (
	"context"
	"slices"
	"time"

	"example.com/forebay/internal/feed"
)

// statsBudget is how long Stats may ask the store.
const statsBudget = 50 * time.Millisecond

// pictured is a ledger as the store last showed it.
type pictured struct {
	state State
	at    time.Time
}

// Stats returns what is known of the gate over the whole cluster.
func (s *supplier) Stats() feed.Stats {
	s.mu.Lock()
	ask := !s.loan.store.open() && s.loan.exchanges > 0 && !s.loan.leaving
	s.mu.Unlock()
	if ask {
		s.refresh()
	}
	now := clock()
	s.mu.Lock()
	defer s.unlock()
	s.loan.look()
	return s.loan.stats(now, s.seen)
}

// refresh asks the store how the ledger stands.
func (s *supplier) refresh() {
	ctx, cancel := context.WithTimeout(s.cluster.ctx, statsBudget)
	defer cancel()
	state, err := s.cluster.config.Store.Stats(ctx, s.key)
	if err != nil || state.Epoch == 0 {
		return
	}
	s.mu.Lock()
	s.seen = pictured{state, clock()}
	s.mu.Unlock()
}

// stats puts together what the ledger last said, what the store showed of the others,
// and what is so here and now.
func (l *loan) stats(now time.Time, seen pictured) feed.Stats {
	st := feed.Stats{
		Mode: l.mode(), Epoch: l.epoch, Limit: max(0, l.limit), Overridden: l.override.Limit >= 0,
		Held: l.last.Held, InUse: l.last.InUse, Waiting: l.last.Waiting,
		Reclaimed: l.last.Reclaimed, Lost: l.last.LostTotal, Lapses: l.view.Lapses,
		Error: l.store.text, Exchanges: uint64(l.exchanges) + l.failures, Failures: l.failures,
	}
	if l.exchanges > 0 {
		st.Age = now.Sub(l.lastAt)
	}
	if l.learns {
		st.Learning = max(0, l.learnt.Sub(now))
	}
	if seen.state.Epoch == l.epoch && l.epoch != 0 {
		l.others(&st, now, seen)
		st.InUse += l.view.InFlight
		st.Waiting += l.view.Waiting
	}
	st.Instances = slices.Insert(st.Instances, 0, l.self(now))
	st.Over = max(0, st.Held-st.Limit)
	return st
}

// others adds what the store showed of every instance but this one.
func (l *loan) others(st *feed.Stats, now time.Time, seen pictured) {
	st.Age = now.Sub(seen.at)
	st.Held, st.InUse, st.Waiting = seen.state.Held, 0, 0
	st.Reclaimed, st.Lost = seen.state.Reclaimed, seen.state.LostTotal
	limits := []int{l.me.Limit}
	for _, m := range seen.state.Members {
		limits = append(limits, m.Limit)
		if m.ID == l.me.Instance {
			continue
		}
		st.InUse += m.InUse
		st.Waiting += m.Waiting
		st.Instances = append(st.Instances, feed.Instance{
			ID: m.ID, Host: m.Host, Held: m.Held, InUse: m.InUse, Waiting: m.Waiting, Limit: m.Limit,
			Lease: max(0, m.Lease-st.Age), Seen: m.Seen + st.Age, Oldest: m.Oldest,
		})
	}
	slices.Sort(limits)
	if limits = slices.Compact(limits); len(limits) > 1 {
		st.Configured = limits
	}
}

// self is this instance as it is now.
func (l *loan) self(now time.Time) feed.Instance {
	me := feed.Instance{
		ID: l.me.Instance, Host: l.me.Host, Self: true, Limit: l.me.Limit,
		Held: l.held(), InUse: l.view.InFlight, Waiting: l.view.Waiting, Oldest: l.view.Oldest,
	}
	if l.exchanges > 0 {
		me.Seen = now.Sub(l.until) + l.me.Lease // not from when it last tried to speak
		me.Lease = max(0, l.until.Sub(now))
	}
	return me
}
