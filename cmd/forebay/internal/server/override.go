package server

import (
	"cmp"
	"slices"
	"time"

	"example.com/forebay/cmd/forebay/internal/admin"
)

// override is a limit that somebody has set by hand.
type override struct {
	gate  string
	units int
	was   int // what the configuration says
	since time.Time
	until time.Time // zero: until cleared or reloaded
	why   string
	timer *time.Timer // nil without an end
}

// SetOverride puts a limit in force in place of the configured one, 0 to close the
// gate: for d, or if d is 0 until it is cleared or the configuration is reloaded.
func (s *Server) SetOverride(gate string, n int, d time.Duration, why string) error {
	s.reloading.Lock() // a reload changes limits too
	defer s.reloading.Unlock()
	g, err := s.gate(gate)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := g.SetLimit(n); err != nil {
		return err
	}
	now := time.Now()
	o := &override{gate: gate, units: n, was: limit(s.Config().Gate(gate)), since: now, why: why}
	if old := s.overrides[gate]; old != nil {
		s.dropLocked(old)
	}
	if d > 0 {
		o.until = now.Add(d)
		o.timer = time.AfterFunc(d, func() { s.endOverride(o) })
	}
	s.overrides[gate] = o
	s.logger().Warn("limit overridden", "gate", gate, "limit", n, "was", o.was, "for", d.String(), "why", why)
	return nil
}

// ClearOverride puts the configured limit in force again.
func (s *Server) ClearOverride(gate string) error {
	if _, err := s.gate(gate); err != nil {
		return err
	}
	s.mu.Lock()
	o := s.overrides[gate]
	s.mu.Unlock()
	if o != nil {
		s.endOverride(o)
	}
	return nil
}

// endOverride ends an override unless another has taken its place.
func (s *Server) endOverride(o *override) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overrides[o.gate] != o {
		return
	}
	s.dropLocked(o)
	g, err := s.gate(o.gate)
	if err == nil {
		err = g.SetLimit(o.was)
	}
	s.logger().Warn("limit as configured again", "gate", o.gate, "limit", o.was, "error", err)
}

func (s *Server) dropLocked(o *override) {
	if o.timer != nil {
		o.timer.Stop()
	}
	delete(s.overrides, o.gate)
}

// Overrides returns those in force, by gate.
func (s *Server) Overrides() []admin.Override {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []admin.Override
	for _, o := range s.overrides {
		all = append(all, admin.Override{
			Gate: o.gate, MaxInFlight: o.units, Was: o.was, Since: o.since, Until: o.until, Why: o.why,
		})
	}
	slices.SortFunc(all, func(a, b admin.Override) int { return cmp.Compare(a.Gate, b.Gate) })
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
