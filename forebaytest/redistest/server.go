package redistest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Config says how a server is. The zero value is a server that keeps nothing on
// disk, with any rights for everybody.
type Config struct {
	// Directives are further lines of its configuration, "maxmemory 2mb" for example.
	Directives []string
	// Password is the default user's. Empty: none is needed.
	Password string
	// TLS makes the server speak TLS only, and want a certificate of its callers:
	// see [Server.TLS].
	TLS bool
	// OwnClock gives it a clock that [Server.SetClock] moves.
	OwnClock bool
}

// Server is a Redis server, or a Sentinel.
type Server struct {
	t       T
	config  Config
	dir     string
	port    int
	args    []string // of its process, before the configuration
	program string
	env     []string
	certs   *certificates

	mu   sync.Mutex // guards proc
	proc *process
}

// Start starts a server and returns when it answers. It is stopped when the test
// ends. The test is skipped where no server is installed.
func Start(t T, c Config) *Server {
	t.Helper()
	return startWith(t, c, newDir(t), c.certificates(t))
}

// certificates returns new ones if the configuration wants TLS.
func (c *Config) certificates(t T) *certificates {
	if !c.TLS {
		return nil
	}
	return newCertificates(t)
}

// startWith starts a server in a directory, with further lines of configuration.
func startWith(t T, c Config, dir string, certs *certificates, more ...string) *Server {
	t.Helper()
	s := &Server{t: t, config: c, dir: dir, certs: certs, program: need(t, "redis-server"), args: []string{"redis.conf"}}
	if c.OwnClock {
		s.ownClock(needFaketime(t))
	}
	s.startOnFreePort(func() string {
		return strings.Join(slices.Concat(s.directives(), more, c.Directives), "\n") + "\n"
	})
	return s
}

// directives returns the configuration of a server on s.port, without what the
// caller adds.
func (s *Server) directives() []string {
	lines := []string{
		"bind " + host, "dir " + s.dir, "unixsocket " + s.Socket(),
		"daemonize no", "save \"\"", "appendonly no", "loglevel notice", "repl-diskless-sync-delay 0",
	}
	if s.config.Password != "" {
		lines = append(lines, "requirepass "+s.config.Password, "masterauth "+s.config.Password)
	}
	if s.certs != nil {
		lines = append(lines, "tls-cluster yes")
	}
	return append(lines, s.listening()...)
}

// listening returns the lines that say where and how a server listens.
func (s *Server) listening() []string {
	if s.certs == nil {
		return []string{fmt.Sprintf("port %d", s.port)}
	}
	return []string{
		"port 0", fmt.Sprintf("tls-port %d", s.port), "tls-replication yes",
		"tls-cert-file " + s.certs.certFile, "tls-key-file " + s.certs.keyFile, "tls-ca-cert-file " + s.certs.caFile,
	}
}

// startOnFreePort starts the process for the first time. If somebody else takes
// the port before it does, it gets another one.
func (s *Server) startOnFreePort(configuration func() string) {
	s.t.Helper()
	s.t.Cleanup(func() {
		s.Kill()
		if s.t.Failed() {
			s.t.Logf("redistest: the end of what %s on port %d wrote:\n%s", filepath.Base(s.program), s.port, logOf(s.dir, 30))
		}
	})
	for range 20 {
		s.port = freePort(s.t)
		if err := os.WriteFile(filepath.Join(s.dir, "redis.conf"), []byte(configuration()), 0o600); err != nil {
			s.t.Fatalf("redistest: %v", err)
		}
		s.launch()
		if s.answers() {
			return
		}
		if log := logOf(s.dir, 0); !strings.Contains(log, "in use") {
			break
		}
		_ = os.Remove(filepath.Join(s.dir, "log"))
	}
	s.t.Fatalf("redistest: %s does not start:\n%s", filepath.Base(s.program), logOf(s.dir, 0))
}

func (s *Server) launch() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = launch(s.t, s.dir, s.env, s.program, s.args...)
}

// answers waits until the server answers anything at all, and reports whether it
// does before it ends.
func (s *Server) answers() bool {
	s.t.Helper()
	p := s.process()
	ok := false
	until(s.t, "an answer of a server that was started", func() bool {
		if p.ended() {
			return true
		}
		_, err := s.Do("PING")
		_, refused := err.(ServerError)
		// Somebody else's server on our port would answer too, but not with ours up.
		ok = (err == nil || refused && !strings.HasPrefix(err.Error(), "LOADING")) && !p.ended()
		return ok
	})
	return ok
}

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Port returns the port that it listens on.
func (s *Server) Port() int { return s.port }

// Addr returns host and port.
func (s *Server) Addr() string { return address(s.port) }

// Socket returns the path of the unix socket that it also listens on.
func (s *Server) Socket() string { return filepath.Join(s.dir, "s") }

// PID returns its process id.
func (s *Server) PID() int { return s.process().cmd.Process.Pid }

// URL returns its address as client libraries write it, with the default user's
// password, if it has one.
func (s *Server) URL() string { return s.URLFor("", s.config.Password) }

// URLFor returns its address with a user's name and password.
func (s *Server) URLFor(user, password string) string {
	scheme, who := "redis", ""
	if s.certs != nil {
		scheme = "rediss"
	}
	if user != "" || password != "" {
		who = user + ":" + password + "@"
	}
	return scheme + "://" + who + s.Addr()
}

// TLS returns how to call it: the authority of its certificate, and a certificate
// of one's own. Nil: it does not speak TLS.
func (s *Server) TLS() *tls.Config {
	if s.certs == nil {
		return nil
	}
	return s.certs.client()
}

// CertificateFile returns the file of the authority's certificate; empty: it does
// not speak TLS.
func (s *Server) CertificateFile() string {
	if s.certs == nil {
		return ""
	}
	return s.certs.caFile
}

// Log returns what it has written.
func (s *Server) Log() string { return logOf(s.dir, 0) }

// Do sends a command over a connection of its own, as the default user, and returns
// the answer: a string, an int64, nil, or a []any of them. What the server answers
// with an error is a [ServerError].
func (s *Server) Do(args ...string) (any, error) {
	c, err := s.dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if s.config.Password != "" {
		if _, err := c.do([]string{"AUTH", s.config.Password}); err != nil {
			return nil, err
		}
	}
	return c.do(args)
}

// Must does a command and fails the test if it fails.
func (s *Server) Must(args ...string) any {
	s.t.Helper()
	v, err := s.Do(args...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %v", strings.Join(args, " "), err)
	}
	return v
}

func (s *Server) dial() (*conn, error) {
	nc, err := net.Dial("tcp", s.Addr())
	if err != nil {
		return nil, err
	}
	if s.certs != nil {
		c := s.certs.client()
		c.ServerName = host
		nc = tls.Client(nc, c)
	}
	return &conn{nc, bufio.NewReader(nc)}, nil
}
