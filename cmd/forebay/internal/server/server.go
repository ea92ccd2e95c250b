package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/telemetry"
)

// Options is what a server needs.
type Options struct {
	// Load reads the configuration, at the start and for every reload.
	Load func() (*config.Config, error)
	// Version is shown to operators.
	Version string
	// Started is called once both listeners answer, with their addresses. Nil: nobody
	// wants to know.
	Started func(listen, admin string)
}

// Server is the running program. Make one with [New]; it is safe for concurrent use.
type Server struct {
	opts    Options
	log     *telemetry.Log
	metrics *telemetry.Metrics
	started time.Time
	state   atomic.Pointer[state]
	leaving atomic.Bool // on the way out

	reloading sync.Mutex // guards the order of reloads: one at a time

	mu        sync.Mutex // guards what follows
	draining  bool       // by POST /drain
	overrides map[string]*override
	reload    reloadResult
}

// New returns a server of the configuration that Load reads, not listening yet. Its
// error is Load's, or what the configuration asks for and cannot be had.
func New(o Options) (*Server, error) {
	cfg, err := o.Load()
	if err != nil {
		return nil, err
	}
	log, err := telemetry.Open(logOptions(cfg.Log))
	if err != nil {
		return nil, err
	}
	s := &Server{opts: o, log: log, metrics: telemetry.NewMetrics(log), started: time.Now(), overrides: map[string]*override{}}
	st, err := s.build(cfg, nil)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return s, s.show(nil, st)
}

func logOptions(l config.Log) telemetry.Options {
	return telemetry.Options{To: l.To, Decisions: l.Decisions, RemoteIP: l.RemoteIP, MaxSize: l.MaxSize, Keep: l.Keep}
}

// Config returns the configuration in force.
func (s *Server) Config() *config.Config { return s.state.Load().cfg }

// ServeHTTP answers on the data port.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.state.Load().handler.ServeHTTP(w, r)
}

// AdminHandler answers on the admin port.
func (s *Server) AdminHandler(loopback bool) http.Handler {
	return admin.Handler(s, s.metrics.Handler(), admin.Options{
		Token: s.Config().Admin.Token, Loopback: loopback, Anonymise: s.log.Anonymise,
	})
}

func (s *Server) logger() *slog.Logger { return s.log.Logger() }

// Gates returns the gates in force, in the order of the configuration.
func (s *Server) Gates() []*forebay.Gate { return s.state.Load().gates }

// Drain stops admitting, without exit. It does not wait.
func (s *Server) Drain() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.drainGates()
	s.logger().Info("draining", "by", "operator")
}

// drainGates tells every gate to drain and waits for none.
func (s *Server) drainGates() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, g := range s.Gates() {
		_ = g.Drain(ended) // it says that calls are in flight, which is no news
	}
}

// Resume ends a drain by [Server.Drain].
func (s *Server) Resume() {
	s.mu.Lock()
	s.draining = false
	s.mu.Unlock()
	if s.leaving.Load() {
		return
	}
	for _, g := range s.Gates() {
		g.Resume()
	}
	s.logger().Info("admitting again", "by", "operator")
}

// Draining reports whether nobody is admitted, on the way out included.
func (s *Server) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining || s.leaving.Load()
}

// Info says what runs.
func (s *Server) Info() admin.Info {
	cfg := s.Config()
	s.mu.Lock()
	defer s.mu.Unlock()
	return admin.Info{
		Version: s.opts.Version, Started: s.started, ConfigPath: cfg.Path, ConfigHash: cfg.Hash,
		LastReload: s.reload.at, LastReloadOK: s.reload.err == nil, Problems: s.reload.problems(),
	}
}

// gate returns the gate of that name in force.
func (s *Server) gate(name string) (*forebay.Gate, error) {
	for _, g := range s.Gates() {
		if g.Name() == name {
			return g, nil
		}
	}
	return nil, fmt.Errorf("there is no gate %q", name)
}
