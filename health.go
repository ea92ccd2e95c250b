package forebay

import (
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Health tells whether gates refuse: degraded as soon as one refused within the
// last 10 s, and ok again after 30 s without a refusal. A gate whose cluster's store is
// away is degraded for as long as that lasts. Make one with [NewHealth]; it is an
// http.Handler, safe for concurrent use, and never gated.
//
//	200 {"status":"ok","gates":[{"name":"reports","status":"ok"}]}
//
// The answer is 200 also while degraded: a full server that answers is no reason
// to restart it or to send its load to the next one. It is 503 only while a gate
// drains.
type Health struct {
	gates []*Gate

	mu    sync.Mutex // guards what follows
	views []view
}

const (
	// degradedWithin is how fresh a refusal must be to show. Half of it falls
	// between two probes of 10 s; twice it alarms about what is over.
	degradedWithin = 10 * time.Second
	// clearAfter is the quiet that ends it. At half of it a gate that refuses
	// every 20 s flaps; twice it keeps an alarm up a minute after the cause.
	clearAfter = 30 * time.Second
)

// notice remembers when a gate last refused, as far as somebody read a clock.
type notice struct{ nanos atomic.Int64 }

func (n *notice) refusedAt(t time.Time) { n.nanos.Store(int64(t.Sub(epoch))) }

// view is what a health handler last saw of one gate.
type view struct {
	rejected uint64
	last     time.Time // the latest refusal known
	degraded bool
}

// NewHealth returns the health of the given gates.
func NewHealth(gates ...*Gate) *Health {
	h := &Health{gates: gates, views: make([]view, len(gates))}
	for i, g := range gates {
		if g == nil {
			panic("forebay: NewHealth of a nil gate")
		}
		h.views[i].rejected = refusedBy(g.Stats())
		h.views[i].last = g.noticed.last()
	}
	return h
}

// refusedBy counts the refusals that say something of the gate: that a caller has too
// much himself says nothing.
func refusedBy(st Stats) uint64 { return st.Rejected() - st.RejectedCaller }

func (n *notice) last() time.Time {
	if ns := n.nanos.Load(); ns != 0 {
		return epoch.Add(time.Duration(ns))
	}
	return time.Time{}
}

// GateHealth is the health of one gate.
type GateHealth struct {
	Name   string `json:"name"`
	Status string `json:"status"`        // "ok", "degraded" or "draining"
	Why    string `json:"why,omitempty"` // of a gate that goes on without its cluster
}

// Report is what [Health] answers.
type Report struct {
	Status string       `json:"status"` // the worst of the gates': "ok", "degraded" or "draining"
	Gates  []GateHealth `json:"gates"`
}

const (
	healthOK       = "ok"
	healthDegraded = "degraded"
	healthDraining = "draining"
)

// Report looks at every gate. A refusal of which nobody noted the time (a bare
// [Gate.Acquire] that was refused at once reads no clock) counts as one of the
// moment in which Report first sees it.
func (h *Health) Report() Report {
	now := clock()
	h.mu.Lock()
	defer h.mu.Unlock()
	rep := Report{Status: healthOK, Gates: make([]GateHealth, len(h.gates))}
	for i, g := range h.gates {
		st := g.Stats()
		status := healthOK
		if h.views[i].look(refusedBy(st), g.noticed.last(), now) {
			status = healthDegraded
		}
		why := ""
		if g.alone() {
			status, why = healthDegraded, "the cluster's store is away"
		}
		if st.Draining {
			status = healthDraining
		}
		rep.Gates[i] = GateHealth{Name: g.name, Status: status, Why: why}
		if status == healthDraining || rep.Status == healthOK {
			rep.Status = status
		}
	}
	return rep
}

// look brings a view up to date and reports whether the gate is degraded.
func (v *view) look(rejected uint64, noticed, now time.Time) bool {
	if v.last.After(now) { // of another clock: nothing is known of then
		v.last, v.degraded = time.Time{}, false
	}
	if noticed.After(now) || rejected != v.rejected && !noticed.After(v.last) {
		noticed = now
		if rejected == v.rejected {
			noticed = time.Time{}
		}
	}
	v.rejected = rejected
	if noticed.After(v.last) {
		v.last = noticed
	}
	switch quiet := now.Sub(v.last); {
	case v.last.IsZero():
	case quiet <= degradedWithin:
		v.degraded = true
	case quiet > clearAfter:
		v.degraded = false
	}
	return v.degraded
}

// ServeHTTP answers with the report.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rep := h.Report()
	body, _ := json.Marshal(rep) // strings only: it cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if rep.Status == healthDraining {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n'))
	}
}
