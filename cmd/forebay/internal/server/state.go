package server

import (
	"cmp"
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
	shared  *shared          // nil: every limit is this program's own
	again   *forebay.Retries // nil: no header says that a request comes again
	gates   []*forebay.Gate  // in the order of the configuration
	groups  *forebay.Groups
	routes  map[string][]string // to the gates that each names
	proxy   *proxy.Handler
	handler http.Handler
}

// build returns the state of a configuration. Gates that old has by the same name
// stay; what is to change about them is changed by [Server.apply], not here, so that
// a mistake found later leaves them alone. What it has begun it ends on error.
func (s *Server) build(cfg *config.Config, old *state) (*state, error) {
	sh, err := s.sharedFor(cfg, old)
	if err != nil {
		return nil, err
	}
	st := &state{cfg: cfg, shared: sh, routes: routesOf(cfg)}
	if st.again, err = old.sameAgain(cfg); err == nil {
		err = s.fill(st, old)
	}
	if err != nil {
		s.discard(st, old)
		return nil, err
	}
	return st, nil
}

// fill gives a state its gates, and what is behind them.
func (s *Server) fill(st, old *state) error {
	var fresh []config.Gate
	for _, c := range st.cfg.Gates {
		g := old.sameGate(c)
		if g == nil && c.Terms == nil {
			g = s.retiredGate(c.Name)
		}
		if g == nil {
			var err error
			if g, err = s.newGate(st, c); err != nil {
				return err
			}
			fresh = append(fresh, c)
		}
		st.gates = append(st.gates, g)
	}
	if err := s.linkStreams(st, fresh); err != nil {
		return err
	}
	st.proxy = old.sameProxy(st.cfg)
	if st.proxy == nil {
		pc := proxyConfig(st.cfg)
		pc.Done, pc.Spool, pc.Remains, pc.Blocked = s.ended, s.spool, s.remains, s.seen.Blocked
		pc.BadDeadlines = &s.badDeadlines
		st.proxy = proxy.New(pc)
	}
	return nil
}

// route leads requests to the gates, once those have the lanes that the routes name. What
// could be wrong with the routes was found when they were read.
func (s *Server) route(st *state) (err error) {
	st.groups, err = st.cfg.Groups(st.gate, s.observers()...)
	if err == nil {
		st.handler = s.handler(st)
	}
	return err
}

// discard gives up a state that does not come into force: what it has joined it leaves.
func (s *Server) discard(st, old *state) {
	var fresh []*forebay.Gate
	for _, g := range st.gates {
		if old == nil || !old.has(g) {
			fresh = append(fresh, g)
		}
	}
	s.departed(st.shared, fresh, old == nil || old.shared != st.shared)
}

// linkStreams tells new gates where their streams move to, now that all gates are made.
func (s *Server) linkStreams(st *state, fresh []config.Gate) error {
	for _, c := range fresh {
		if c.StreamsGate == "" {
			continue
		}
		g := st.gate(c.Name)
		fc, err := s.gateConfig(st, g, c)
		if err == nil {
			err = g.ReconfigureAt(fc, limit(&c))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newGate makes a gate. If it is to be closed, or everybody is refused just now, it is
// so before anybody can come to it.
func (s *Server) newGate(st *state, c config.Gate) (*forebay.Gate, error) {
	fc, err := s.gateConfig(st, nil, c)
	if err != nil {
		return nil, err
	}
	if c.Terms != nil {
		fc.Cluster = st.shared.cluster.With(*c.Terms)
	}
	g, err := forebay.New(fc)
	if err != nil {
		return nil, err
	}
	if s.Draining() {
		startDrain(g)
	}
	if c.Closed {
		err = g.ReconfigureAt(fc, 0)
	}
	return g, err
}

// gateConfig is what the library is given: the program always tracks, so that it can
// say who holds what. The gate that streams move to is that of the state, if it is made
// already. Of g, nil while it is being made, the limiter goes on.
func (s *Server) gateConfig(st *state, g *forebay.Gate, c config.Gate) (forebay.Config, error) {
	fc := c.Config
	var err error
	if fc.Limiter, err = s.limiterFor(g, c); err != nil {
		return fc, err
	}
	fc.Streams.Gate = st.gate(c.StreamsGate)
	fc.Track, fc.Intake, fc.Retries = true, s.intake, st.again
	fc.Observers = s.observers()
	return fc, nil
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

// sameGate returns the gate of that name, if its limit is or is not of a cluster as c
// wants it: a gate cannot join one or leave it while it runs, but another may take its
// place.
func (st *state) sameGate(c config.Gate) *forebay.Gate {
	g := st.gate(c.Name)
	if g == nil || isShared(g) != (c.Terms != nil) {
		return nil
	}
	return g
}

// sameAgain returns what knows which requests come again: with what it remembers, if cfg
// asks for the same.
func (st *state) sameAgain(cfg *config.Config) (*forebay.Retries, error) {
	switch {
	case cfg.Retries == (config.Retries{}):
		return nil, nil
	case st != nil && st.cfg.Retries == cfg.Retries:
		return st.again, nil
	}
	return forebay.NewRetries(forebay.RetriesConfig(cfg.Retries))
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
		idle += g.Most()
	}
	return proxy.Config{
		Upstream: cfg.Upstream, Transport: cfg.Transport, ResponseTimeout: cfg.Timeouts.UpstreamResponse, WriteTimeout: cfg.Timeouts.Write,
		StillRunning:   cfg.Timeouts.StillRunning,
		TrustedProxies: cfg.TrustedProxies, CallerHeader: cfg.Caller.Header, CallerHeaders: cfg.CallerHeaders(), IdlePerHost: idle,
		RequestIDHeader: cfg.RequestID.Header, DeadlineHeader: cfg.Deadline.Header,
		TrustRequestID: cfg.RequestID.Trust == config.TrustEverybody,
		NewRequestIDs:  cfg.RequestID.Trust == config.TrustNobody,
	}
}

// handler is a request's way, outermost first.
func (s *Server) handler(st *state) http.Handler {
	answers := st.answers(s)
	inner := st.groups.HandlerFunc(func(w http.ResponseWriter, r *http.Request, lease forebay.Lease) {
		if len(answers) > 0 {
			if h := answers[st.groups.Route(r)]; h != nil {
				h.ServeHTTP(w, r)
				return
			}
		}
		st.proxy.Serve(w, r, lease)
	})
	return st.proxy.Identify(s.metrics.Requests.Wrap(inner, func(r *http.Request) string {
		route := st.groups.Route(r)
		s.seeRetry(st, r, route)
		return route
	}))
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
	s.watchGates(now)
	if old != nil {
		gone := slices.DeleteFunc(slices.Clone(old.gates), now.has)
		s.metrics.Gates.Unwatch(gone...)
		s.retire(gone, now)
		s.departed(old.shared, gone, now.shared != old.shared)
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
		if g.Name() == name && !isShared(g) {
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
	return !reflect.DeepEqual(old.Config, now.Config) || !reflect.DeepEqual(old.Auto, now.Auto)
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
	const remedy = "restart the program to change it"
	var problems config.Problems
	fixed := func(key, was, is string) {
		if was != is {
			problems = append(problems, cannotChange(now, key, fmt.Sprintf("is %s, and a reload cannot change it from %s", is, was), remedy))
		}
	}
	fixed("listen", old.Listen.Address, now.Listen.Address)
	fixed("tls", inTheClear(old), inTheClear(now))
	fixed("server", old.Server, now.Server)
	fixed("admin", old.Admin.Address, now.Admin.Address)
	fixed("timeouts.read_header", old.Timeouts.ReadHeader.String(), now.Timeouts.ReadHeader.String())
	fixed("timeouts.idle", old.Timeouts.Idle.String(), now.Timeouts.Idle.String())
	fixed("intake", old.Intake.String(), now.Intake.String())
	if old.Cluster != nil && now.Cluster != nil {
		problems = append(problems, checkCluster(old.Cluster, now)...)
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

func inTheClear(c *config.Config) string {
	if c.TLS == nil {
		return "not there"
	}
	return "there"
}

func cannotChange(now *config.Config, key, what, remedy string) config.Problem {
	at := now.At(key)
	return config.Problem{File: now.Path, Line: at.Line, Col: at.Col, What: key + " " + what, Remedy: remedy}
}

// checkCluster names what a reload cannot change about a cluster. Who has gone to
// another store, or has another name there, shares nothing with those who have not yet.
func checkCluster(old *config.Cluster, now *config.Config) (problems config.Problems) {
	const one, all = "restart the program to change it", "stop all programs that share it before the first one starts with it"
	c, redis := now.Cluster, "cluster.redis"
	if c.RedisFile != "" {
		redis = "cluster.redis_file"
	}
	fixed := func(key, was, is, remedy string) {
		if was != is {
			problems = append(problems, cannotChange(now, key, fmt.Sprintf("is %s, and a reload cannot change it from %s", is, was), remedy))
		}
	}
	fixed(redis, old.Redis.String(), c.Redis.String(), all)
	fixed("cluster.name", old.Name, c.Name, all)
	fixed("cluster.lease", old.Lease.String(), c.Lease.String(), one)
	fixed("cluster.host", cmp.Or(old.Host, "that of the machine"), cmp.Or(c.Host, "that of the machine"), one)
	const another = "has another password, and a reload cannot change that"
	if c.Redis != old.Redis && c.Redis.String() == old.Redis.String() {
		problems = append(problems, cannotChange(now, redis, another, one))
	}
	fixed("cluster.sentinel_username", cmp.Or(old.Sentinel.Username, "the default user"), cmp.Or(c.Sentinel.Username, "the default user"), one)
	if c.Sentinel.Password != old.Sentinel.Password {
		problems = append(problems, cannotChange(now, "cluster.sentinel_password_file", another, one))
	}
	if !c.TLS.Same(old.TLS) {
		problems = append(problems, cannotChange(now, "cluster.tls", "names other files, or other authorities are in ca_file, and a reload cannot change that", one))
	}
	return problems
}
