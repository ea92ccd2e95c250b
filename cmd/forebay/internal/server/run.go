package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
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
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // to the end: without a taker it would end a program that drains
	defer signal.Stop(hup)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	//mutate:equivalent the program ends
	defer stop()
	easeCollector()
	requests, cut := context.WithCancel(context.Background())
	//mutate:equivalent the program ends
	defer cut()
	servers := s.serve(requests, data, control)
	file := newFileWatch(cfg.Path, cfg.Hash)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx, hup, file) })
	watching.Go(func() { s.see(ctx) })
	s.announce(data, control)
	<-ctx.Done()
	//mutate:equivalent TestSecondSIGTERM shows it, of the program itself
	stop() // a second signal ends the program at once
	code = s.leave(servers, cut)
	watching.Wait()
	return code, s.log.Close()
}

// collectAt is by how much the heap grows before it is collected, in per cent. Requests
// leave much behind and little lives on: Go's 100 collects dozens of times a second under
// load, which costs a tenth of the processor time; 400 costs some 12 MiB.
const collectAt = 400

// easeCollector sets it, unless the operator has said something else.
func easeCollector() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(collectAt)
	}
}

// servers are those that answer.
type servers struct {
	data, control *http.Server
	lean          *proxy.LeanServer // of data
	done          sync.WaitGroup
}

func (s *Server) serve(requests context.Context, data, control net.Listener) *servers {
	t := s.Config().Timeouts
	limits := proxy.Timeouts{ReadHeader: t.ReadHeader, Idle: t.Idle}
	run := &servers{
		data:    proxy.Server(s, limits),
		control: proxy.Server(s.AdminHandler(isLoopback(control)), limits),
	}
	asksLittle(run.control, t.ReadHeader)
	run.control.ConnState = s.admins.note
	waiting := new(fresh)
	run.data.ConnState = func(c net.Conn, state http.ConnState) {
		waiting.note(c, state)
		s.conns.note(c, state)
	}
	if s.Config().TLS != nil {
		run.data.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: newCertificate(s).get}
	}
	run.data.RegisterOnShutdown(waiting.close)
	run.data.BaseContext = func(net.Listener) context.Context { return requests }
	run.lean = proxy.NewLeanServer(run.data)
	var clients net.Listener = proxied{s.conns.listener(data), s}
	if run.data.TLSConfig == nil && s.Config().Server == "lean" {
		clients = run.lean.Listener(clients)
	}
	for _, x := range []struct {
		srv *http.Server
		l   net.Listener
	}{{run.data, clients}, {run.control, s.admins.listener(control)}} {
		run.done.Go(func() {
			if err := serveOn(x.srv, x.l); !errors.Is(err, http.ErrServerClosed) {
				s.logger().Error("a listener has failed", "address", x.l.Addr().String(), "error", err.Error())
			}
		})
	}
	return run
}

// asksLittle bounds what one connection to the admin port can take: requests there
// are small, so all of one is there as soon as its header should be, and they come one
// by one, not as the streams of HTTP/2.
func asksLittle(admin *http.Server, readHeader time.Duration) {
	admin.ReadTimeout = readHeader
	admin.Protocols = new(http.Protocols)
	admin.Protocols.SetHTTP1(true)
}

// serveOn serves until the server is closed.
func serveOn(srv *http.Server, l net.Listener) error {
	if srv.TLSConfig != nil {
		return srv.ServeTLS(l, "", "")
	}
	return srv.Serve(l)
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
