package admin

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// maxHolders is how many holders of a gate are shown, the oldest. It is above any
// limit that a page can show, and keeps an answer small where a gate has a million.
const maxHolders = 1000

// holder is who holds a slot, as it is shown.
type holder struct {
	Route     string    `json:"route"`
	RequestID string    `json:"request_id"`
	RemoteIP  string    `json:"remote_ip"`
	Lane      string    `json:"lane"` // empty: none
	Cost      int       `json:"cost"`
	Since     time.Time `json:"since"`
	HeldMS    int64     `json:"held_ms"`
	WaitedMS  int64     `json:"waited_ms"`
	Overdue   bool      `json:"overdue"`
}

func (a *admin) holder(h forebay.Holder) holder {
	return holder{
		Route: h.Route, RequestID: h.RequestID, RemoteIP: a.anonymise(h.RemoteIP), Lane: h.Lane, Cost: h.Cost, Since: h.Since.UTC(),
		HeldMS: h.Held.Milliseconds(), WaitedMS: h.Waited.Milliseconds(), Overdue: h.Overdue,
	}
}

// gateStats is [forebay.Stats] with the holder as it is shown; of a gate in a cluster
// that over all its programs.
type gateStats struct {
	forebay.Stats
	OldestHolder *holder `json:"oldest_holder,omitempty"`
	Auto         *Auto   `json:"auto,omitempty"` // nil: its limit stays as it is
}

func (a *admin) gateStats(g *forebay.Gate) gateStats {
	st := gateStats{Stats: g.OverCluster(), Auto: a.program.Auto(g)}
	if oldest := st.Stats.OldestHolder; oldest != nil {
		shown := a.holder(*oldest)
		st.OldestHolder = &shown
	}
	return st
}

// everyGateStats asks all gates at once: those in a cluster may ask its store, which
// takes a moment.
func (a *admin) everyGateStats() []gateStats {
	gates := a.program.Gates()
	all := make([]gateStats, len(gates))
	var asked sync.WaitGroup
	for i, g := range gates {
		asked.Go(func() { all[i] = a.gateStats(g) })
	}
	asked.Wait()
	return all
}

// programStats is everything at a glance.
type programStats struct {
	Program   Info                `json:"program"`
	Draining  bool                `json:"draining"`
	Gates     []gateStats         `json:"gates"`
	Intake    forebay.IntakeStats `json:"intake"`
	Spool     proxy.SpoolStats    `json:"spool"`
	Overrides []Override          `json:"overrides"`
	Verdicts  []verdict.Verdict   `json:"verdicts"` // what is wrong, most of the time nothing
}

func (a *admin) serveStats(w http.ResponseWriter, r *http.Request, _ string) {
	answer(w, r, http.StatusOK, a.programStats())
}

func (a *admin) programStats() programStats {
	all := programStats{
		Program: a.program.Info(), Draining: a.program.Draining(),
		Gates: []gateStats{}, Intake: a.program.Intake(), Spool: a.program.Spool(), Overrides: append([]Override{}, a.program.Overrides()...),
		Verdicts: a.program.Seen().Verdicts(),
	}
	all.Gates = append(all.Gates, a.everyGateStats()...)
	return all
}

func (a *admin) serveGateStats(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(g *forebay.Gate) { answer(w, r, http.StatusOK, a.gateStats(g)) })
}

// gateHolders are the holders of one gate, the oldest first.
type gateHolders struct {
	Name    string   `json:"name"`
	Tracks  bool     `json:"tracks"` // false: the gate does not know
	Holders []holder `json:"holders"`
	LeftOut int      `json:"left_out"` // younger ones, not shown
}

func (a *admin) gateHolders(g *forebay.Gate) gateHolders {
	all := g.Holders()
	shown := gateHolders{Name: g.Name(), Tracks: g.Stats().Tracks, Holders: []holder{}}
	for _, h := range all[:min(len(all), maxHolders)] {
		shown.Holders = append(shown.Holders, a.holder(h))
	}
	shown.LeftOut = len(all) - len(shown.Holders)
	return shown
}

func (a *admin) serveHolders(w http.ResponseWriter, r *http.Request, _ string) {
	all := struct {
		Gates []gateHolders `json:"gates"`
	}{[]gateHolders{}}
	for _, g := range a.program.Gates() {
		all.Gates = append(all.Gates, a.gateHolders(g))
	}
	answer(w, r, http.StatusOK, all)
}

func (a *admin) serveGateHolders(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(g *forebay.Gate) { answer(w, r, http.StatusOK, a.gateHolders(g)) })
}

// gateLimits are what a gate is configured to and what is in force.
type gateLimits struct {
	Name        string    `json:"name"`
	MaxInFlight int       `json:"max_in_flight"`  // configured; of one that finds itself where it begins
	Auto        bool      `json:"auto,omitempty"` // it finds itself
	Limit       int       `json:"limit"`          // in force; 0: closed
	MaxWaitMS   int64     `json:"max_wait_ms"`
	MaxWaiting  int       `json:"max_waiting"`
	Draining    bool      `json:"draining"`
	Shared      bool      `json:"shared"` // with other programs, by a cluster
	Override    *Override `json:"override,omitempty"`
}

func (a *admin) gateLimits(g *forebay.Gate) gateLimits {
	c, st := g.Config(), g.Stats()
	return gateLimits{
		Name: g.Name(), MaxInFlight: c.MaxInFlight, Auto: a.program.Auto(g) != nil, Limit: st.Capacity, MaxWaitMS: c.MaxWait.Milliseconds(),
		MaxWaiting: st.MaxWaiting, Draining: st.Draining, Shared: c.Cluster != nil, Override: a.override(g.Name()),
	}
}

func (a *admin) serveGates(w http.ResponseWriter, r *http.Request, _ string) {
	all := struct {
		Gates []gateLimits `json:"gates"`
	}{[]gateLimits{}}
	for _, g := range a.program.Gates() {
		all.Gates = append(all.Gates, a.gateLimits(g))
	}
	answer(w, r, http.StatusOK, all)
}

func (a *admin) serveLimit(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(g *forebay.Gate) { answer(w, r, http.StatusOK, a.gateLimits(g)) })
}

// override returns the override of a gate, nil if there is none.
func (a *admin) override(gate string) *Override {
	all := a.program.Overrides()
	if i := slices.IndexFunc(all, func(o Override) bool { return o.Gate == gate }); i >= 0 {
		return &all[i]
	}
	return nil
}

// serveHistory shows what a gate did in the last hour.
func (a *admin) serveHistory(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(g *forebay.Gate) {
		answer(w, r, http.StatusOK, struct {
			Name    string           `json:"name"`
			Samples []verdict.Sample `json:"samples"` // the oldest first
		}{g.Name(), append([]verdict.Sample{}, a.program.Seen().History(g.Name())...)})
	})
}
