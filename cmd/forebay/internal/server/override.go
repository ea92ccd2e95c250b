package server

import (
	"cmp"
	"slices"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/telemetry"
)

// override is a limit that somebody has set by hand.
type override struct {
	gate  string
	units int
	was   int  // what is in force without it
	auto  bool // which then finds itself
	since time.Time
	until time.Time // zero: until cleared or reloaded
	of    admin.Reason
	timer *time.Timer // nil without an end

	shared *forebay.Gate // whose cluster it is for; nil: it is for this program alone
}

// SetOverride puts a limit in force in place of the configured one, 0 to close the
// gate: for d, or if d is 0 until it is cleared or the configuration is reloaded. A limit
// that finds itself stays there meanwhile, learns nothing, and then goes on from where it
// was. That of a gate in a cluster is in force for all programs, and ends for all.
func (s *Server) SetOverride(gate string, n int, d time.Duration, of admin.Reason) error {
	s.reloading.Lock() // a reload changes limits too
	defer s.reloading.Unlock()
	g, err := s.gate(gate)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	c := s.Config().Gate(gate)
	o := &override{gate: gate, units: n, was: ownLimit(g, c), auto: c.Auto != nil, since: now, of: of}
	if isShared(g) {
		o.shared = g
		err = g.SetClusterLimit(n, d)
	} else {
		err = setByHand(g, n)
	}
	if err != nil {
		return err
	}
	if old := s.overrides[gate]; old != nil {
		s.dropLocked(old)
	}
	if d > 0 {
		o.until = now.Add(d)
		o.timer = time.AfterFunc(d, func() { s.endOverride(o, expired) })
	}
	s.overrides[gate] = o
	s.logger().Warn("limit overridden", "gate", gate, "limit", n, "was", o.was, "for", d.String(), "why", of.Why, "by", of.By)
	return nil
}

// ClearOverride puts the configured limit in force again; in a cluster also if another
// program has set the override.
func (s *Server) ClearOverride(gate string, of admin.Reason) error {
	g, err := s.gate(gate)
	if err != nil {
		return err
	}
	s.mu.Lock()
	o := s.overrides[gate]
	s.mu.Unlock()
	if isShared(g) {
		err = g.SetClusterLimit(-1, 0)
	}
	if o != nil {
		s.endOverride(o, of)
	}
	return err
}

// expired is why an override ends that was to last until now.
var expired = admin.Reason{Why: "its time is over", By: "forebay"}

// endOverride ends an override unless another has taken its place. That of a cluster
// ends there by itself, and what has taken its place there is not known here.
func (s *Server) endOverride(o *override, of admin.Reason) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overrides[o.gate] != o {
		return
	}
	s.dropLocked(o)
	var err error
	if o.shared == nil {
		var g *forebay.Gate
		if g, err = s.gate(o.gate); err == nil {
			err = setFree(g, o.was)
		}
	}
	s.logger().Warn("limit as configured again", "gate", o.gate, "limit", o.was, "was_set_to", o.units, "why", of.Why, "by", of.By, "error", err)
}

func (s *Server) dropLocked(o *override) {
	if o.timer != nil {
		o.timer.Stop()
	}
	delete(s.overrides, o.gate)
}

// Overrides returns those in force, by gate: those that were set here, and what is
// known of those that another program of the cluster has set.
func (s *Server) Overrides() []admin.Override {
	st := s.state.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []admin.Override
	for _, o := range s.overrides {
		if o.shared == nil || st.overriddenTo(o.gate, o.units) {
			all = append(all, admin.Override{
				Gate: o.gate, MaxInFlight: o.units, Was: o.was, Auto: o.auto, Since: o.since, Until: o.until, Why: o.of.Why, By: o.of.By,
			})
		}
	}
	for _, o := range st.overridden() {
		if !slices.ContainsFunc(all, func(own admin.Override) bool { return own.Gate == o.Gate }) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b admin.Override) int { return cmp.Compare(a.Gate, b.Gate) })
	return all
}

// shownOverrides are those in force, as the metrics show them.
func (s *Server) shownOverrides() []telemetry.Override {
	all := s.Overrides()
	shown := make([]telemetry.Override, len(all))
	for i, o := range all {
		shown[i] = telemetry.Override{Gate: o.Gate, Limit: o.MaxInFlight, Since: o.Since, Until: o.Until}
	}
	return shown
}

// overriddenTo reports whether a gate's cluster has that limit in force by hand.
func (st *state) overriddenTo(gate string, n int) bool {
	o, ok := st.override(gate)
	return ok && o.Limit == n
}

func (st *state) override(gate string) (cluster.Override, bool) {
	if st.shared == nil {
		return cluster.Override{}, false
	}
	return st.shared.cluster.Override(gate)
}

// overridden returns the limits that somebody in the cluster has set by hand.
func (st *state) overridden() (all []admin.Override) {
	for i := range st.cfg.Gates {
		c := &st.cfg.Gates[i]
		o, ok := st.override(c.Name)
		if !ok {
			continue
		}
		own := admin.Override{Gate: c.Name, MaxInFlight: o.Limit, Was: limit(c), Why: "set at another program of the cluster"}
		if o.For > 0 {
			own.Until = time.Now().Add(o.For)
		}
		all = append(all, own)
	}
	return all
}

// dropOverrides ends the waiting for the end of overrides.
func (s *Server) dropOverrides() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.overrides {
		s.dropLocked(o)
	}
}
