package admin

import (
	"net/http"
	"slices"
	"sync"

	"example.com/forebay"
)

// Health tells whether the gates in force refuse, as [forebay.Health] does, or have to
// do without their cluster's store, over reloads that bring and take gates. Make one
// with [NewHealth]; it is an http.Handler, for a route of the data port for instance,
// and safe for concurrent use.
//
// It tells strangers the status only: {"status":"degraded"}.
type Health struct {
	program Program

	mu    sync.Mutex // guards gates
	gates map[*forebay.Gate]*forebay.Health
}

const (
	statusOK       = "ok"
	statusDegraded = "degraded"
	statusDraining = "draining"
)

// NewHealth returns the health of the program's gates, from now on.
func NewHealth(p Program) *Health {
	h := &Health{program: p}
	h.inForce(p.Gates())
	return h
}

// inForce returns the health of each gate. A gate that stays keeps its own, so that
// a reload does not call degraded gates well.
func (h *Health) inForce(gates []*forebay.Gate) []*forebay.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := make(map[*forebay.Gate]*forebay.Health, len(gates))
	all := make([]*forebay.Health, len(gates))
	for i, g := range gates {
		all[i] = h.gates[g]
		if all[i] == nil {
			all[i] = forebay.NewHealth(g)
		}
		next[g] = all[i]
	}
	h.gates = next
	return all
}

// Report looks at every gate.
func (h *Health) Report() forebay.Report {
	rep := forebay.Report{Status: statusOK, Gates: []forebay.GateHealth{}}
	for _, one := range h.inForce(h.program.Gates()) {
		got := one.Report().Gates[0]
		if why := h.program.Away(got.Name); why != "" {
			got.Why = why
			if got.Status == statusOK {
				got.Status = statusDegraded
			}
		}
		rep.Gates = append(rep.Gates, got)
		if got.Status == statusDraining || rep.Status == statusOK {
			rep.Status = got.Status
		}
	}
	if h.program.Draining() {
		rep.Status = statusDraining
	}
	return rep
}

// statusOnly is what strangers learn.
type statusOnly struct {
	Status string `json:"status"`
}

// ServeHTTP answers with the status: 200, 503 only while draining.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	rep := h.Report()
	answer(w, r, healthStatus(rep.Status), statusOnly{rep.Status})
}

// healthStatus: a full program that answers is no reason to restart it or to send
// its load to the next one, which would then be full.
func healthStatus(status string) int {
	if status == statusDraining {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (a *admin) serveHealth(w http.ResponseWriter, r *http.Request, _ string) {
	if !a.door.knows(r) {
		a.health.ServeHTTP(w, r)
		return
	}
	rep := a.health.Report()
	answer(w, r, healthStatus(rep.Status), a.fullReport(rep))
}

// fullReport is a report for whoever may see everything.
type fullReport struct {
	Status string       `json:"status"`
	Gates  []gateHealth `json:"gates"`
}

// gateHealth is that of one gate, with the early warning.
type gateHealth struct {
	forebay.GateHealth
	WaitsLong bool `json:"waits_long"` // calls wait for a good part of max_wait; nothing is refused for it
}

func (a *admin) fullReport(rep forebay.Report) fullReport {
	full, long := fullReport{Status: rep.Status, Gates: []gateHealth{}}, a.program.Seen().WaitLong()
	for _, g := range rep.Gates {
		full.Gates = append(full.Gates, gateHealth{g, slices.Contains(long, g.Name)})
	}
	return full
}

// serveReady does not look at the load: readiness that follows it takes one full
// instance out, and so fills the next.
func (a *admin) serveReady(w http.ResponseWriter, r *http.Request, _ string) {
	if a.program.Draining() {
		answer(w, r, http.StatusServiceUnavailable, statusOnly{statusDraining})
		return
	}
	answer(w, r, http.StatusOK, statusOnly{"ready"})
}
