package admin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"example.com/forebay"
)

// reload reads the configuration again. Who asked may leave: it goes on.
func (a *admin) reload(w http.ResponseWriter, r *http.Request, _ string) {
	if !noBody(w, r) {
		return
	}
	if err := a.program.Reload(context.WithoutCancel(r.Context())); err != nil {
		answer(w, r, http.StatusUnprocessableEntity, failure{
			Error:    "the configuration was not reloaded; the one before is in force",
			Problems: lines(err),
		})
		return
	}
	answer(w, r, http.StatusOK, struct {
		Status string `json:"status"`
		Info
	}{"reloaded", a.program.Info()})
}

// lines returns the mistakes in an error, one a line of it.
func lines(err error) []string {
	all := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// drained says what a drain still waits for.
type drained struct {
	Status   string `json:"status"`
	InFlight int    `json:"in_flight"`
	Waiting  int    `json:"waiting"`
}

func (a *admin) drain(w http.ResponseWriter, r *http.Request, _ string) {
	if noBody(w, r) {
		a.program.Drain()
		a.answerDrain(w, r)
	}
}

func (a *admin) resume(w http.ResponseWriter, r *http.Request, _ string) {
	if noBody(w, r) {
		a.program.Resume()
		a.answerDrain(w, r)
	}
}

func (a *admin) answerDrain(w http.ResponseWriter, r *http.Request) {
	d := drained{Status: statusOK}
	if a.program.Draining() {
		d.Status = statusDraining
	}
	for _, g := range a.program.Gates() {
		st := g.Stats()
		d.InFlight += st.InUse
		d.Waiting += st.Waiting
	}
	answer(w, r, http.StatusOK, d)
}

func (a *admin) setLimit(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(*forebay.Gate) {
		fields, ok := readObject(w, r, "max_in_flight", "for", "why", "by")
		if !ok {
			return
		}
		wanted, problems := parseWanted(fields)
		if len(problems) > 0 {
			answer(w, r, http.StatusBadRequest, failure{Error: "the limit was not changed", Problems: problems})
			return
		}
		reason := from(r, wanted.reason)
		if err := a.program.SetOverride(gate, wanted.maxInFlight, wanted.lasts, reason); err != nil {
			answer(w, r, http.StatusUnprocessableEntity, failure{Error: "the limit was not changed", Problems: lines(err)})
			return
		}
		if o := a.override(gate); o != nil {
			answer(w, r, http.StatusOK, o)
			return
		}
		// It has ended meanwhile, or somebody has cleared it.
		answer(w, r, http.StatusOK, Override{Gate: gate, MaxInFlight: wanted.maxInFlight, Why: reason.Why, By: reason.By})
	})
}

func (a *admin) clearLimit(w http.ResponseWriter, r *http.Request, gate string) {
	a.withGate(w, r, gate, func(g *forebay.Gate) {
		reason, ok := readReason(w, r)
		if !ok {
			return
		}
		if a.override(gate) == nil {
			answer(w, r, http.StatusNotFound, failure{Error: fmt.Sprintf("the gate %q has the limit of the configuration; there is nothing to take back", gate)})
			return
		}
		if err := a.program.ClearOverride(gate, reason); err != nil {
			answer(w, r, http.StatusUnprocessableEntity, failure{Error: "the limit was not changed", Problems: lines(err)})
			return
		}
		answer(w, r, http.StatusOK, a.gateLimits(g))
	})
}

// readReason reads why somebody takes something back, and who, which they need not say;
// or it answers what is wrong.
func readReason(w http.ResponseWriter, r *http.Request) (of Reason, ok bool) {
	if r.ContentLength == 0 {
		return from(r, of), true
	}
	fields, ok := readObject(w, r, "why", "by")
	if !ok {
		return of, false
	}
	of, problems := parseReason(fields, nil)
	if len(problems) > 0 {
		answer(w, r, http.StatusBadRequest, failure{Error: "the limit was not changed", Problems: problems})
		return of, false
	}
	return from(r, of), true
}

// from adds where it comes from, if nobody says who it was.
func from(r *http.Request, of Reason) Reason {
	if of.By == "" {
		of.By, _, _ = net.SplitHostPort(r.RemoteAddr) // a peer without an address has none
	}
	return of
}
