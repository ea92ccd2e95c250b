package server

import (
	"fmt"
	"net/http"
	"reflect"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
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
		st.proxy = proxy.New(proxyConfig(cfg))
	}
	st.handler = s.handler(st)
	return st, nil
}

// newGate makes a gate. It is closed before anybody can come to it, if it is to be.
func (s *Server) newGate(c config.Gate) (*forebay.Gate, error) {
	g, err := forebay.New(s.gateConfig(c))
	if err != nil {
		return nil, err
	}
	if c.Closed {
		return g, g.SetLimit(0)
	}
	return g, nil
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
		RequestIDHeader: cfg.RequestID.Header, TrustRequestID: cfg.RequestID.Trust == config.TrustEverybody,
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

// answers are the routes that the program answers itself.
func (st *state) answers(s *Server) map[string]http.Handler {
	answers := map[string]http.Handler{}
	for _, r := range st.cfg.Routes {
		if r.Answer != "" {
			answers[r.Match] = s.health(st)
		}
	}
	return answers
}

// health answers on the data port as /health does on the admin port.
func (s *Server) health(*state) http.Handler { return admin.NewHealth(s) }

// show puts a state in force and tells the metrics which gates it has.
func (s *Server) show(old, now *state) error {
	s.state.Store(now)
	if old != nil {
		for _, g := range old.gates {
			if now.gate(g.Name()) != g {
				s.metrics.Gates.Unwatch(g)
			}
		}
	}
	return s.metrics.Gates.Watch(now.gates...)
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

// checkFixed names what a reload cannot change.
func checkFixed(old, now *config.Config) error {
	var problems config.Problems
	fixed := func(key, was, is string) {
		if was != is {
			at := now.At(key)
			problems = append(problems, config.Problem{
				File: now.Path, Line: at.Line, Col: at.Col,
				What:   fmt.Sprintf("%s is %s, and a reload cannot change it from %s", key, is, was),
				Remedy: "restart the program to listen elsewhere",
			})
		}
	}
	fixed("listen", old.Listen.Address, now.Listen.Address)
	fixed("admin", old.Admin.Address, now.Admin.Address)
	if len(problems) > 0 {
		return problems
	}
	return nil
}
