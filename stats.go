package forebay

import (
	"cmp"
	"slices"
	"time"

	"example.com/forebay/internal/admit"
)

// Stats is one consistent picture of a gate (get_stats elsewhere). Capacity, InUse and
// Available are units; the rest counts calls. At every instant
//
//	requests = Decisions() + Waiting
//	Granted  = Released + Calls
//
// where a chain is a request of the gate at which it is counted. A call granted in
// the very instant in which its caller leaves moves from Accepted to Canceled.
// Exempt requests pass no gate and are not in it.
type Stats struct {
	Name       string `json:"name"`
	Capacity   int    `json:"capacity"`    // limit in force; 0: closed
	Available  int    `json:"available"`   // units free, never below 0
	InUse      int    `json:"in_use"`      // units that run
	Calls      int    `json:"calls"`       // leases out
	Waiting    int    `json:"waiting"`     // calls in line
	MaxWaiting int    `json:"max_waiting"` // bound of the line; 0: nobody may wait
	Draining   bool   `json:"draining"`

	// StillRunning is how many leases are out whose callers were told that time is up:
	// the work goes on, for nobody, and keeps its slot until it has really ended. See
	// [Config.MaxRun] and [Lease.TimedOut].
	StillRunning int `json:"still_running"`

	// Callers is how many callers with calls here are told apart; CallersBeyond counts the
	// calls that shared one bound since there were too many. See [Config.PerCaller].
	Callers       int    `json:"callers"`
	CallersBeyond uint64 `json:"callers_beyond"`

	Tracks bool `json:"tracks"` // it knows who holds what, and since when

	Accepted         uint64 `json:"accepted"`
	RejectedBusy     uint64 `json:"rejected_busy"`
	RejectedTimeout  uint64 `json:"rejected_timeout"`
	RejectedDeadline uint64 `json:"rejected_deadline"`
	RejectedCaller   uint64 `json:"rejected_caller"`
	RejectedTooLarge uint64 `json:"rejected_too_large"`
	RejectedDraining uint64 `json:"rejected_draining"`
	RejectedStore    uint64 `json:"rejected_store"`
	RejectedShed     uint64 `json:"rejected_shed"`
	Canceled         uint64 `json:"canceled"`

	Granted        uint64 `json:"granted"`         // leases given: more than Accepted where chains pass that another gate counts
	Released       uint64 `json:"released"`        // leases given back
	StaleReleases  uint64 `json:"stale_releases"`  // of leases that were back already: harmless, also when meant (an early release before a deferred one)
	Overdue        uint64 `json:"overdue"`         // leases reported by MaxHold
	ObserverPanics uint64 `json:"observer_panics"` // contained
	LimiterPanics  uint64 `json:"limiter_panics"`  // contained
	ScriptErrors   uint64 `json:"script_errors"`   // failed or dropped writes to Config.Script

	// Lanes are those of [Config.Lanes], by rank, and last, without a name, that of calls
	// without one. Nil for a gate that has none.
	Lanes []LaneStats `json:"lanes,omitempty"`

	// OldestHolder is who has held a lease longest. Nil unless the gate tracks
	// and leases are out.
	OldestHolder *Holder `json:"oldest_holder,omitempty"`

	// Local and Cluster are set by [Gates.Stats] for a gate with a cluster: this
	// process's own part, and what is known of all of them.
	Local   *Local        `json:"local,omitempty"`
	Cluster *ClusterStats `json:"cluster,omitempty"`
}

// Decisions returns how many calls were decided.
func (s Stats) Decisions() uint64 { return s.Accepted + s.Rejected() + s.Canceled }

// Rejected returns how many calls were refused, for whatever reason. A caller
// that left was not refused.
func (s Stats) Rejected() uint64 {
	return s.RejectedBusy + s.RejectedTimeout + s.RejectedDeadline + s.RejectedCaller + s.RejectedTooLarge + s.RejectedDraining +
		s.RejectedStore + s.RejectedShed
}

// Holder is one call that holds a lease. Of its times only Since is in its JSON,
// which outlives the moment it was made in.
type Holder struct {
	Route     string        `json:"route,omitempty"`
	RequestID string        `json:"request_id,omitempty"`
	RemoteIP  string        `json:"remote_ip,omitempty"`
	Lane      string        `json:"lane,omitempty"`
	Cost      int           `json:"cost"`  // units
	Since     time.Time     `json:"since"` // by the wall clock
	Held      time.Duration `json:"-"`
	Waited    time.Duration `json:"-"`                 // in line, before
	Overdue   bool          `json:"overdue,omitempty"` // reported by MaxHold
}

// Stats returns one consistent picture of the gate.
func (g *Gate) Stats() Stats {
	s := g.settings.Load()
	g.lock()
	st := g.statsLocked(s)
	g.unlock()
	if s.track {
		st.OldestHolder = g.oldestHolder()
	}
	return st
}

func (g *Gate) statsLocked(s *settings) Stats {
	m := g.machine
	counts := m.Counts()
	count := func(v admit.Verdict) uint64 { return counts.Decisions[v] + g.refused[v].Load() }
	st := Stats{
		Name: g.name, Capacity: m.Limit(), InUse: m.InFlight(), Calls: m.Calls(), Waiting: m.Waiting(),
		Available: max(0, m.Limit()-m.InFlight()), Draining: m.Draining(), Tracks: s.track,
		StillRunning:     int(g.late.Load()),
		Accepted:         count(admit.Granted),
		RejectedBusy:     count(admit.Busy),
		RejectedTimeout:  count(admit.Timeout),
		RejectedDeadline: count(admit.Deadline),
		RejectedCaller:   count(admit.Capped),
		RejectedTooLarge: count(admit.TooLarge),
		RejectedDraining: count(admit.Draining),
		RejectedStore:    count(admit.Store),
		RejectedShed:     count(admit.Shed),
		Canceled:         count(admit.Canceled),
		Granted:          counts.Granted, Released: counts.Released,
		StaleReleases: g.stale.Load(), Overdue: g.overdue.Load(),
		ObserverPanics: g.observerPanics.Load(), LimiterPanics: g.limiterPanics.Load(), ScriptErrors: g.scriptErrors.Load(),
	}
	st.Callers, st.CallersBeyond = m.Callers()
	st.Lanes = laneStats(m)
	if s.MaxWait > 0 {
		st.MaxWaiting = m.MaxWaiting()
	}
	return st
}

// Holders returns who holds leases now, the oldest first. A gate that does not
// track returns none.
func (g *Gate) Holders() []Holder {
	now := clock()
	var all []Holder
	g.slots.each(func(h *holder) {
		if !h.since.IsZero() {
			all = append(all, h.public(now))
		}
	})
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Compare(b.Held, a.Held) })
	return all
}

func (g *Gate) oldestHolder() *Holder {
	now := clock()
	var oldest *Holder
	g.slots.each(func(h *holder) {
		if !h.since.IsZero() && (oldest == nil || now.Sub(h.since) > oldest.Held) {
			p := h.public(now)
			oldest = &p
		}
	})
	return oldest
}

func (h *holder) public(now time.Time) Holder {
	held := max(0, now.Sub(h.since))
	return Holder{
		Route: h.call.Route, RequestID: h.call.RequestID, RemoteIP: h.call.RemoteIP, Cost: h.claim.Cost, Lane: h.call.Lane,
		Since: time.Now().Add(-held), Held: held, Waited: h.waited, Overdue: h.overdue,
	}
}
