package simulate

import (
	"errors"
	"fmt"

	"example.com/forebay/internal/admit"
)

// validate says everything that is wrong with a scenario.
func (sc *Scenario) validate() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("simulate: "+format, args...))
		}
	}
	wrong(sc.For <= 0, "For is %v; it must be more than 0", sc.For)
	wrong(sc.WarmUp < 0 || sc.WarmUp >= sc.For, "WarmUp is %v; it must be from 0 to less than For", sc.WarmUp)
	names := map[string]string{}
	once := func(kind, name string) {
		wrong(name == "", "a %s has no name", kind)
		wrong(names[kind+name] != "", "%s %q is there twice", kind, name)
		names[kind+name] = name
	}
	known := func(kind, name, where string) {
		wrong(names[kind+name] == "", "%s names the %s %q, which is not there", where, kind, name)
	}
	for _, r := range sc.Resources {
		once("resource", r.Name)
		r.validate(wrong)
	}
	for _, g := range sc.Gates {
		once("gate", g.Name)
		wrong(g.Foreign != nil && (len(sc.Gates) > 1 || sc.Instances > 1), "gate %q is foreign, and not alone", g.Name)
		wrong(g.Config.Limit < 1 && g.Foreign == nil, "gate %q has Limit %d; it must be at least 1", g.Name, g.Config.Limit)
		wrong(g.Config.Ledger, "gate %q has slots from a ledger, which is not simulated", g.Name)
	}
	for _, r := range sc.Routes {
		once("route", r.Name)
		for _, name := range r.Gates {
			known("gate", name, fmt.Sprintf("route %q", r.Name))
		}
		for _, v := range r.Work {
			known("resource", v.At, fmt.Sprintf("route %q", r.Name))
			wrong(v.Takes == nil, "route %q does not say how long its work takes at %q", r.Name, v.At)
		}
	}
	for _, c := range sc.Clients {
		once("client", c.Name)
		known("route", c.Route, fmt.Sprintf("client %q", c.Name))
		c.validate(wrong)
	}
	wrong(len(sc.Clients) == 0, "there is no client")
	return errors.Join(errs...)
}

func (r *Resource) validate(wrong func(bad bool, format string, args ...any)) {
	wrong(r.Servers < 0 || r.Cores < 0 || r.Sigma < 0 || r.Kappa < 0 || r.Cliff.Power < 0, "resource %q has a number below 0", r.Name)
	wrong(r.Pauses.Every > 0 && (r.Pauses.For <= 0 || r.Pauses.For >= r.Pauses.Every), "resource %q pauses for %v; it must be more than 0 and less than Every", r.Name, r.Pauses.For)
	last := Rate{}
	for _, t := range r.Throughput {
		wrong(t.Calls <= last.Calls || t.Does <= 0, "resource %q has a table of throughput that does not rise in calls, or does nothing", r.Name)
		last = t
	}
	var at Change
	for _, c := range r.Changes {
		wrong(c.At < at.At, "resource %q has changes that are not in order", r.Name)
		at = c
	}
}

func (c *Client) validate(wrong func(bad bool, format string, args ...any)) {
	a := c.Arrivals
	wrong(a.Rate < 0 || a.Batch < 0 || a.Bursts.High < 0 || a.Bursts.Low < 0, "client %q has a number below 0", c.Name)
	wrong(a.Rate == 0 && len(a.Times) == 0, "client %q never calls; give it a rate or times", c.Name)
	wrong(c.Deadline < 0, "client %q has a deadline of %v; it must be at least 0", c.Name, c.Deadline)
	r := c.Retries
	wrong(r.Max < 0 || r.Backoff < 0 || r.Factor < 0 || r.Jitter < 0 || r.Jitter > 1, "client %q has retries with a number out of range", c.Name)
	for i, s := range a.Steps {
		wrong(s.Times < 0 || i > 0 && s.At < a.Steps[i-1].At, "client %q has steps that are not in order, or below 0", c.Name)
	}
	for i := 1; i < len(a.Times); i++ {
		wrong(a.Times[i] < a.Times[i-1], "client %q has times that are not in order", c.Name)
	}
}

// conservation compares what the machines counted with what calls went through: each call
// put to a gate has one decision or waits, and what was granted was given back or runs.
func (s *sim) conservation() (errs []error) {
	for i, in := range s.instances {
		for _, g := range in.order {
			n := g.machine.Counts()
			decided := n.Granted
			for v := admit.Busy; v < admit.Verdicts; v++ {
				decided += n.Decisions[v]
			}
			if g.offered != decided+uint64(g.machine.Waiting()) {
				errs = append(errs, fmt.Errorf("simulate: gate %q of instance %d: %d calls, %d decisions, %d waiting", g.Name, i, g.offered, decided, g.machine.Waiting()))
			}
			if n.Granted != n.Released+uint64(g.machine.Calls()) {
				errs = append(errs, fmt.Errorf("simulate: gate %q of instance %d: %d granted, %d given back, %d run", g.Name, i, n.Granted, n.Released, g.machine.Calls()))
			}
		}
	}
	return errs
}
