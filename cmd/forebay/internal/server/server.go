package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/telemetry"
	"example.com/forebay/cmd/forebay/internal/verdict"
)

// Options is what a server needs.
type Options struct {
	// Load reads the configuration, at the start and for every reload.
	Load func() (*config.Config, error)
	// Version is shown to operators.
	Version string
	// OpenStore opens the store of the cluster that a configuration describes. Nil:
	// the Redis that it names.
	OpenStore func(config.Cluster) (Store, error)
	// Started is called once both listeners answer, with their addresses. Nil: nobody
	// wants to know.
	Started func(listen, admin string)
}

// Server is the running program. Make one with [New]; it is safe for concurrent use.
type Server struct {
	opts    Options
	log     *telemetry.Log
	intake  *forebay.Intake // of all gates
	spool   *proxy.Spool    // of all proxies
	remains *proxy.Remains  // of all proxies

	badDeadlines atomic.Uint64 // that callers have sent

	metrics *telemetry.Metrics
	book    *story.Book
	seen    *verdict.Recorder
	retries *retries
	started time.Time
	state   atomic.Pointer[state]
	leaving atomic.Bool // on the way out

	conns   *conns // to the data port
	admins  *conns // to the admin port
	running crowd  // requests on the data port
	health  *admin.Health

	exit       context.Context // ends when everything has been drained
	exits      context.CancelFunc
	departures sync.WaitGroup // of gates from their cluster

	reloading sync.Mutex // guards what changes gates: reloads, overrides, drains; one at a time

	mu        sync.Mutex // guards what follows
	draining  bool       // by POST /drain
	overrides map[string]*override
	retired   []*forebay.Gate // gone by a reload, some with calls that still run
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
	intake, err := forebay.NewIntake(cfg.Intake.Library(forebay.NewBytes(cfg.Intake.MaxBytes)))
	if err != nil {
		//mutate:equivalent the program ends
		return nil, errors.Join(err, log.Close())
	}
	s := &Server{
		opts: o, log: log, intake: intake, metrics: telemetry.NewMetrics(log), book: story.NewBook(), seen: verdict.NewRecorder(), retries: newRetries(), started: time.Now(),
		running: newCrowd(), overrides: map[string]*override{},
	}
	s.conns, s.admins = newConns(s), newAdminConns(s)
	s.spool, s.remains = s.newSpool(), proxy.NewRemains()
	s.metrics.Requests.Answered = s.answered
	s.metrics.ShowSpool(s.Spool)
	s.metrics.ShowConnections(s.conns.Counts)
	s.metrics.ShowIntake(s.Intake)
	s.metrics.ShowDeadlines(s.badDeadlines.Load)
	s.metrics.ShowOverrides(s.shownOverrides)
	s.metrics.ShowVerdicts(s.seen)
	s.metrics.ShowAutos(s.shownAutos)
	s.exit, s.exits = context.WithCancel(context.Background())
	bounds, err := spoolBounds(cfg)
	var st *state
	if err == nil {
		s.spool.Set(bounds)
		st, err = s.build(cfg, nil)
	}
	if err == nil {
		err = s.route(st)
	}
	if err == nil {
		err = s.show(nil, st)
	}
	if err != nil {
		//mutate:equivalent the program ends
		s.close()
		//mutate:equivalent the program ends
		return nil, errors.Join(err, log.Close())
	}
	s.health = admin.NewHealth(s)
	return s, nil
}

// close ends what still runs for nobody, leaves the cluster, and waits for whoever is
// about to.
func (s *Server) close() {
	s.remains.End()
	s.exits()
	if st := s.state.Load(); st != nil {
		s.end(st.shared, s.exit)
	}
	s.departures.Wait()
}

func logOptions(l config.Log) telemetry.Options {
	return telemetry.Options{To: l.To, Decisions: l.Decisions, RemoteIP: l.RemoteIP, MaxSize: l.MaxSize, Keep: l.Keep}
}

// Config returns the configuration in force.
func (s *Server) Config() *config.Config { return s.state.Load().cfg }

// ServeHTTP answers on the data port.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.enter()
	defer s.finished()
	s.state.Load().handler.ServeHTTP(w, r)
}

// finished ends a request. A panic is a bug here: its stack is logged, and the
// connection is ended as net/http does it, who keeps silent.
func (s *Server) finished() {
	p := recover()
	s.running.leave()
	if p == nil {
		return
	}
	if p != http.ErrAbortHandler {
		s.log.Paced().Error("a handler panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler)
}

// keyed is the handler of the admin port for one token.
type keyed struct {
	http.Handler
	token string
}

// AdminHandler answers on the admin port, to whoever has the token that the
// configuration in force names.
func (s *Server) AdminHandler(loopback bool) http.Handler {
	scrape := s.metrics.Handler()
	make := func(token string) *keyed {
		return &keyed{token: token, Handler: admin.Handler(s, scrape, admin.Options{
			Token: token, Loopback: loopback, Anonymise: s.log.Anonymise,
		})}
	}
	var inForce atomic.Pointer[keyed]
	inForce.Store(make(s.Config().Admin.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := inForce.Load()
		if token := s.Config().Admin.Token; k.token != token {
			k = make(token)
			inForce.Store(k)
		}
		k.ServeHTTP(w, r)
	})
}

func (s *Server) logger() *slog.Logger { return s.log.Logger() }

// Gates returns the gates in force, in the order of the configuration.
func (s *Server) Gates() []*forebay.Gate { return s.state.Load().gates }

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

// Intake returns what is held and thrown away of requests that do not run.
func (s *Server) Intake() forebay.IntakeStats { return s.intake.Stats() }

// gate returns the gate of that name in force.
func (s *Server) gate(name string) (*forebay.Gate, error) {
	for _, g := range s.Gates() {
		if g.Name() == name {
			return g, nil
		}
	}
	return nil, fmt.Errorf("there is no gate %q", name)
}
