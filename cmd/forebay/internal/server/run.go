package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"example.com/forebay/cmd/forebay/internal/proxy"
)

// Run listens, serves until ctx ends or a signal says so, drains, and reports how it
// went: 0 in good order, 1 if drain_timeout ran out with calls still running. An
// error means that it could not begin.
func (s *Server) Run(ctx context.Context) (code int, err error) {
	cfg := s.Config()
	data, control, err := listeners(cfg.Listen.Address, cfg.Admin.Address)
	if err != nil {
		return 2, errors.Join(err, s.log.Close())
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	requests, cut := context.WithCancel(context.Background())
	defer cut()
	servers := s.serve(requests, data, control)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	s.announce(data, control)
	<-ctx.Done()
	stop() // a second signal ends the program at once
	code = s.leave(servers, cut)
	watching.Wait()
	return code, s.log.Close()
}

// servers are those that answer.
type servers struct {
	data, control *http.Server
	done          sync.WaitGroup
}

func (s *Server) serve(requests context.Context, data, control net.Listener) *servers {
	t := s.Config().Timeouts
	limits := proxy.Timeouts{ReadHeader: t.ReadHeader, Idle: t.Idle}
	run := &servers{
		data:    proxy.Server(s, limits),
		control: proxy.Server(s.AdminHandler(isLoopback(control)), limits),
	}
	run.data.BaseContext = func(net.Listener) context.Context { return requests }
	for _, x := range []struct {
		srv *http.Server
		l   net.Listener
	}{{run.data, data}, {run.control, control}} {
		run.done.Go(func() {
			if err := x.srv.Serve(x.l); !errors.Is(err, http.ErrServerClosed) {
				s.logger().Error("a listener has failed", "address", x.l.Addr().String(), "error", err.Error())
			}
		})
	}
	return run
}

// announce tells whoever waits that requests are answered.
func (s *Server) announce(data, control net.Listener) {
	cfg := s.Config()
	s.logger().Info("serving", "listen", data.Addr().String(), "admin", control.Addr().String(),
		"upstream", cfg.Upstream.String(), "config", cfg.Path, "hash", cfg.Hash, "version", s.opts.Version)
	if s.opts.Started != nil {
		s.opts.Started(data.Addr().String(), control.Addr().String())
	}
	s.notify(daemon.SdNotifyReady)
}

// notify tells the service manager, if there is one.
func (s *Server) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.logger().Warn("the service manager was not told", "state", state, "error", err.Error())
	}
}

// leave stops admitting, lets the rest finish, and ends what has not by
// drain_timeout. New requests are answered as draining meanwhile.
func (s *Server) leave(run *servers, cut context.CancelFunc) int {
	patience := s.Config().DrainTimeout
	s.logger().Info("draining before exit", "timeout", patience.String())
	s.notify(daemon.SdNotifyStopping)
	s.reloading.Lock() // no reload brings back gates that admit
	s.leaving.Store(true)
	s.reloading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var draining sync.WaitGroup
	for _, g := range s.Gates() {
		draining.Go(func() { _ = g.Drain(ctx) }) // what is left is counted below
	}
	draining.Wait()
	err := run.data.Shutdown(ctx)
	left := s.inFlight()
	if err != nil || left > 0 {
		s.logger().Error("drain_timeout is over; ending what still runs", "in_flight", left, "timeout", patience.String())
		cut()
		_ = run.data.Close()
	}
	s.settle()
	_ = run.control.Close() // it has nothing to finish
	run.done.Wait()
	s.state.Load().proxy.Close()
	if err != nil || left > 0 {
		return 1
	}
	s.logger().Info("drained; bye")
	return 0
}

func (s *Server) inFlight() (calls int) {
	for _, g := range s.Gates() {
		calls += g.Stats().Calls
	}
	return calls
}

// settlePatience is what handlers get to notice that they were ended.
const settlePatience = time.Second

// settle waits for the handlers that were ended to give their slots back, so that the
// last lines of the log are true.
func (s *Server) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
	defer cancel()
	for _, g := range s.Gates() {
		_ = g.Drain(ctx)
	}
}
