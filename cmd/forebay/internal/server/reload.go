package server

import (
	"context"
	"errors"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

// reloadResult is how the last reload went.
type reloadResult struct {
	at  time.Time
	err error
}

func (r reloadResult) problems() []string {
	var problems config.Problems
	if errors.As(r.err, &problems) {
		told := make([]string, len(problems))
		for i, p := range problems {
			told[i] = p.String()
		}
		return told
	}
	if r.err != nil {
		return []string{r.err.Error()}
	}
	return nil
}

// Reload reads the configuration again and puts it in force: all of it or, with an
// error, nothing. Gates of which nothing has changed keep everything; the others keep
// their leases, their line and their counters.
func (s *Server) Reload(context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	return s.reloadLocked()
}

// reloadLocked reloads while s.reloading is held, and tells how it went.
func (s *Server) reloadLocked() error {
	err := s.reloadOnce()
	now := time.Now()
	s.mu.Lock()
	s.reload = reloadResult{at: now, err: err}
	s.mu.Unlock()
	s.metrics.Reloaded(err == nil, now)
	if err != nil {
		s.logger().Error("reload failed; the configuration before stays in force", "problems", reloadResult{err: err}.problems())
		return err
	}
	s.logger().Info("reloaded", "config", s.Config().Path, "hash", s.Config().Hash)
	return nil
}

func (s *Server) reloadOnce() error {
	old := s.state.Load()
	cfg, err := s.opts.Load()
	if err != nil {
		return err
	}
	if err := checkFixed(old.cfg, cfg); err != nil {
		return err
	}
	bounds, err := spoolBounds(cfg)
	if err != nil {
		return err
	}
	now, err := s.build(cfg, old)
	if err != nil {
		return err
	}
	if err := s.log.Reconfigure(logOptions(cfg.Log)); err != nil {
		s.discard(now, old)
		return err
	}
	err = s.apply(old, now)
	if err == nil {
		err = s.route(now)
	}
	if err != nil {
		s.discard(now, old)
		return err
	}
	s.spool.Set(bounds)
	if err := s.show(old, now); err != nil {
		return err
	}
	if old.proxy != now.proxy {
		//mutate:equivalent what it keeps ends by itself after upstream_idle
		old.proxy.Close()
	}
	return nil
}

// apply changes the gates that stay or come back. What could be wrong with a
// configuration was checked when it was read, so nothing of this fails half way.
func (s *Server) apply(old, now *state) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range now.cfg.Gates {
		c := &now.cfg.Gates[i]
		if o := s.overrides[c.Name]; o != nil && (o.until.IsZero() || !now.has(old.gate(c.Name))) {
			s.takeBackLocked(o, c)
		}
		apply := s.applyLocked
		if c.Terms != nil {
			apply = s.applySharedLocked
		}
		if err := apply(old, now, c); err != nil {
			return err
		}
	}
	for name, o := range s.overrides {
		if now.gate(name) == nil {
			s.dropLocked(o)
		}
	}
	return nil
}

// takeBackLocked ends an override that does not outlive a reload.
func (s *Server) takeBackLocked(o *override, c *config.Gate) {
	s.dropLocked(o)
	if o.shared != nil {
		_ = o.shared.SetClusterLimit(-1, 0) // it is of a cluster, and below 0 is right
	}
	s.logger().Warn("limit as configured again", "gate", c.Name, "limit", limit(c), "was_set_to", o.units, "why", o.of.Why, "set_by", o.of.By, "by", "reload")
}

// applyLocked changes a gate whose limit is this program's own.
func (s *Server) applyLocked(old, now *state, c *config.Gate) error {
	g, byHand := now.gate(c.Name), s.overrides[c.Name]
	if changed(old.cfg.Gate(c.Name), c) || s.streamsMoved(now, c) || old.again != now.again {
		if err := s.reconfigure(now, g, c, byHand); err != nil {
			return err
		}
	}
	want := ownLimit(g, c)
	if byHand != nil {
		byHand.was, byHand.auto = want, c.Auto != nil
		if g.Stats().Capacity != byHand.units {
			return setByHand(g, byHand.units)
		}
		return nil
	}
	if a := autoOf(g); a != nil && a.fix(0) == 0 && g.Stats().Capacity > 0 {
		return nil // it goes on
	}
	if g.Stats().Capacity != want {
		return g.SetLimit(want)
	}
	return nil
}

// reconfigure puts another configuration in force on a gate, in one step with its limit.
func (s *Server) reconfigure(now *state, g *forebay.Gate, c *config.Gate, byHand *override) error {
	fc, err := s.gateConfig(now, g, *c)
	if err != nil {
		return err
	}
	want, fixed := limit(c), 0
	if byHand != nil {
		want, fixed = byHand.units, byHand.units
	}
	if a, ok := fc.Limiter.(*auto); ok {
		a.fix(fixed)
	}
	return g.ReconfigureAt(fc, want)
}

// applySharedLocked changes a gate whose limit is that of a cluster. What is in force
// there, an override included, is not for this program alone to say.
func (s *Server) applySharedLocked(old, now *state, c *config.Gate) error {
	g, was := now.gate(c.Name), old.cfg.Gate(c.Name)
	if o := s.overrides[c.Name]; o != nil {
		o.was = limit(c)
	}
	if !old.has(g) {
		return nil // it was made as it is wanted
	}
	if *was.Terms != *c.Terms {
		if err := now.shared.cluster.SetTerms(c.Name, *c.Terms); err != nil {
			return err
		}
	}
	if changed(was, c) || s.streamsMoved(now, c) || old.again != now.again {
		return s.reconfigure(now, g, c, nil)
	}
	return nil
}

// streamsMoved reports whether the gate that streams move to is another one of the same
// name: one that has joined a cluster, or left it.
func (s *Server) streamsMoved(now *state, c *config.Gate) bool {
	return now.gate(c.Name).Config().Streams.Gate != now.gate(c.StreamsGate)
}
