package server

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
)

// state is one configuration in force. It never changes: a reload makes another,
// around the gates that stay.
type state struct {
	cfg     *config.Config
	gates   []*forebay.Gate // in the order of the configuration
	groups  *forebay.Groups
	proxy   *proxy.Handler
	handler http.Handler
}

// build returns the state of a configuration. Gates that old has by the same name
// stay; what is to change about them is changed by [Server.apply], not here, so that
// a mistake found later leaves them alone.
func (s *Server) build(cfg *config.Config, old *state) (*state, error) {
	st := &state{cfg: cfg}
	for _, c := range cfg.Gates {
		g := old.gate(c.Name)
		if g == nil {
			g = s.retiredGate(c.Name)
		}
		if g == nil {
			var err error
			if g, err = s.newGate(c); err != nil {
				return nil, err
			}
		}
		st.gates = append(st.gates, g)
	}
	var err error
	st.groups, err = cfg.Groups(st.gate, s.log.Observer(), s.metrics.Gates)
	if err != nil {
		return nil, err
	}
	st.proxy = old.sameProxy(cfg)
	if st.proxy == nil {
		pc := proxyConfig(cfg)
		pc.Done = s.ended
		st.proxy = proxy.New(pc)
	}
	st.handler = s.handler(st)
	return st, nil
}

// newGate makes a gate. If it is to be closed, or everybody is refused just now, it is
// so before anybody can come to it.
func (s *Server) newGate(c config.Gate) (*forebay.Gate, error) {
	g, err := forebay.New(s.gateConfig(c))
	if err != nil {
		return nil, err
	}
	if s.Draining() {
		startDrain(g)
	}
	return g, g.SetLimit(limit(&c))
}

// gateConfig is what the library is given: the program always tracks, so that it can
// say who holds what.
func (s *Server) gateConfig(c config.Gate) forebay.Config {
	fc := c.Config
	fc.Track = true
	fc.Observers = []forebay.Observer{s.log.Observer(), s.metrics.Gates}
	return fc
}

func (st *state) gate(name string) *forebay.Gate {
	if st == nil {
		return nil
	}
	for _, g := range st.gates {
		if g.Name() == name {
			return g
		}
	}
	return nil
}

// sameProxy returns the proxy if cfg asks for the same one, with its connections.
func (st *state) sameProxy(cfg *config.Config) *proxy.Handler {
	if st == nil || !reflect.DeepEqual(proxyConfig(st.cfg), proxyConfig(cfg)) {
		return nil
	}
	return st.proxy
}

func proxyConfig(cfg *config.Config) proxy.Config {
	idle := 0
	for _, g := range cfg.Gates {
		idle += g.MaxInFlight
	}
	return proxy.Config{
		Upstream: cfg.Upstream, ResponseTimeout: cfg.Timeouts.UpstreamResponse,
		TrustedProxies: cfg.TrustedProxies, IdlePerHost: idle,
		RequestIDHeader: cfg.RequestID.Header,
		TrustRequestID:  cfg.RequestID.Trust == config.TrustEverybody,
		NewRequestIDs:   cfg.RequestID.Trust == config.TrustNobody,
	}
}

// handler is a request's way, outermost first.
func (s *Server) handler(st *state) http.Handler {
	answers := st.answers(s)
	inner := st.groups.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(answers) > 0 {
			if h := answers[st.groups.Lookup(r).Route]; h != nil {
				h.ServeHTTP(w, r)
				return
			}
		}
		st.proxy.ServeHTTP(w, r)
	}))
	route := func(r *http.Request) string { return st.groups.Lookup(r).Route }
	return st.proxy.Identify(s.metrics.Requests.Wrap(inner, route))
}

// answers are the routes that the program answers itself: with its health, as /health
// on the admin port does.
func (st *state) answers(s *Server) map[string]http.Handler {
	answers := map[string]http.Handler{}
	for _, r := range st.cfg.Routes {
		if r.Answer != "" {
			answers[r.Match] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.health.ServeHTTP(w, r) })
		}
	}
	return answers
}

// show puts a state in force and tells the metrics which gates it has.
func (s *Server) show(old, now *state) error {
	s.state.Store(now)
	if old != nil {
		gone := slices.DeleteFunc(slices.Clone(old.gates), now.has)
		s.metrics.Gates.Unwatch(gone...)
		s.retire(gone, now)
	}
	return s.metrics.Gates.Watch(now.gates...)
}

func (st *state) has(g *forebay.Gate) bool { return st.gate(g.Name()) == g }

// retire keeps gates that are gone while they have calls, for a drain, and for a
// reload that brings them back: calls that still run then count. Those just gone are
// kept in any case, since a request may have found them and be about to ask.
func (s *Server) retire(gone []*forebay.Gate, now *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = slices.DeleteFunc(s.retired, func(g *forebay.Gate) bool {
		st := g.Stats()
		return now.has(g) || st.Calls+st.Waiting == 0
	})
	s.retired = append(s.retired, gone...)
}

func (s *Server) retiredGate(name string) *forebay.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.retired {
		if g.Name() == name {
			return g
		}
	}
	return nil
}

// changed reports whether a gate's configuration is another one.
func changed(old, now *config.Gate) bool {
	if old == nil || old.Closed != now.Closed {
		return true
	}
	return !reflect.DeepEqual(old.Config, now.Config)
}

// limit is what a gate's configuration puts in force.
func limit(c *config.Gate) int {
	if c.Closed {
		return 0
	}
	return c.MaxInFlight
}

// checkFixed names what a reload cannot change: what net/http is given at the start.
func checkFixed(old, now *config.Config) error {
	var problems config.Problems
	fixed := func(key, was, is string) {
		if was != is {
			at := now.At(key)
			problems = append(problems, config.Problem{
				File: now.Path, Line: at.Line, Col: at.Col,
				What:   fmt.Sprintf("%s is %s, and a reload cannot change it from %s", key, is, was),
				Remedy: "restart the program to change it",
			})
		}
	}
	fixed("listen", old.Listen.Address, now.Listen.Address)
	fixed("admin", old.Admin.Address, now.Admin.Address)
	fixed("timeouts.read_header", old.Timeouts.ReadHeader.String(), now.Timeouts.ReadHeader.String())
	fixed("timeouts.idle", old.Timeouts.Idle.String(), now.Timeouts.Idle.String())
	if len(problems) > 0 {
		return problems
	}
	return nil
}
