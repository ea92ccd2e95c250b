package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"example.com/forebay"
)

// Drain stops admitting, without exit. It does not wait for what runs.
func (s *Server) Drain() {
	s.reloading.Lock() // a reload makes gates
	defer s.reloading.Unlock()
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, g := range s.everyGate() {
		startDrain(g)
	}
	s.logger().Info("draining", "by", "operator")
}

// startDrain tells a gate to drain and does not wait.
func startDrain(g *forebay.Gate) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = g.Drain(ended) // it says that calls are in flight, which is no news
}

// Resume ends a drain by [Server.Drain]. On the way out it does nothing.
func (s *Server) Resume() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.leaving.Load() {
		return
	}
	s.mu.Lock()
	s.draining = false
	s.mu.Unlock()
	for _, g := range s.everyGate() {
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

// everyGate returns the gates in force and those that are gone but may have calls.
func (s *Server) everyGate() []*forebay.Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.Gates(), s.retired)
}

// leave stops admitting, lets the rest finish, and ends what has not by
// drain_timeout. New requests are answered as draining meanwhile.
func (s *Server) leave(run *servers, cut context.CancelFunc) (code int) {
	patience := s.Config().DrainTimeout
	s.logger().Info("draining before exit", "timeout", patience.String())
	s.notify(daemon.SdNotifyStopping)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	//mutate:equivalent the program ends
	defer cancel()
	s.drainForExit(ctx)
	err := run.lean.Shutdown(ctx)
	if err == nil { // connections that were taken over, of routes that pass no gate, net/http does not know
		err = s.running.none(ctx)
	}
	late := 0
	if ctx.Err() != nil { // else the gates are empty, and the last of them is just being struck off
		late = s.remains.Size() // of which no server knows
	}
	if err != nil || late > 0 {
		s.logger().Error("drain_timeout is over; ending what still runs", "in_flight", s.running.size(), "still_running", late, "timeout", patience.String())
		//mutate:equivalent Run does it as well, a second later
		cut()
		_ = run.data.Close()
		s.settle()
		code = 1
	}
	_ = run.control.Close() // it has nothing to finish
	run.done.Wait()
	s.dropOverrides()
	s.close()
	//mutate:equivalent the program ends
	s.state.Load().proxy.Close()
	if code == 0 {
		s.logger().Info("drained; bye")
	}
	return code
}

// drainForExit returns when every gate is empty, or ctx has ended.
func (s *Server) drainForExit(ctx context.Context) {
	s.reloading.Lock() // gates that a reload makes from now on admit nobody
	s.leaving.Store(true)
	gates := s.everyGate()
	s.reloading.Unlock()
	var draining sync.WaitGroup
	for _, g := range gates {
		draining.Go(func() { _ = g.Drain(ctx) }) // what is left is counted afterwards
	}
	draining.Wait()
}

// settlePatience is what handlers get to notice that they were ended.
const settlePatience = time.Second

// settle waits for the handlers that were ended to give their slots back, so that the
// last lines of the log are true.
func (s *Server) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settlePatience)
	//mutate:equivalent the program ends
	defer cancel()
	_ = s.running.none(ctx) // who does not notice is ended with the process
}
