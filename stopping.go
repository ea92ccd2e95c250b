package forebay

import (
	"net/http"
	"runtime"
	"sync"
	"weak"
)

// stopping ends what is thrown away at the end of connections when their server stops:
// http.Server.Shutdown waits for handlers, and must not wait for this. A server is told
// of it once, and not kept alive by it.
type stopping struct {
	mu      sync.Mutex // guards servers
	servers map[weak.Pointer[http.Server]]*serverStop
}

// serverStop is one server, as far as it can stop.
type serverStop struct {
	mu      sync.Mutex // guards what follows; that of a rest is taken inside it
	stopped bool
	rests   map[*rest]struct{}
}

// enter makes the end of the server end f as well.
func (s *stopping) enter(srv *http.Server, f *rest) *serverStop {
	stop := s.of(srv)
	stop.mu.Lock()
	defer stop.mu.Unlock()
	stop.rests[f] = struct{}{}
	if stop.stopped {
		f.stop()
	}
	return stop
}

func (s *stopping) of(srv *http.Server) *serverStop {
	key := weak.Make(srv)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.servers[key]; known != nil {
		return known
	}
	stop := &serverStop{rests: make(map[*rest]struct{})}
	if s.servers == nil {
		s.servers = make(map[weak.Pointer[http.Server]]*serverStop)
	}
	s.servers[key] = stop
	srv.RegisterOnShutdown(stop.all)
	runtime.AddCleanup(srv, s.forget, key)
	return stop
}

func (s *stopping) forget(key weak.Pointer[http.Server]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, key)
}

// all ends everything, and from now on what is entered as soon as it is.
func (s *serverStop) all() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for f := range s.rests {
		f.stop()
	}
}

func (s *serverStop) leave(f *rest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rests, f)
}
