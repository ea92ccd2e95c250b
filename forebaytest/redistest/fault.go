package redistest

import (
	"os"
	"path/filepath"
	"strings"
)

// Kill ends the server at once, as a crash does, and returns when it is gone.
// Nothing that it held in memory is left.
func (s *Server) Kill() {
	if p := s.process(); p != nil {
		p.kill()
	}
}

// Terminate asks the server to end, and returns when it is gone.
func (s *Server) Terminate() {
	s.signal(terminate)
	<-s.process().done
}

// Restart starts a server that has ended, at its old address, with what it has on
// disk, which is nothing unless it was told otherwise, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	if !s.process().ended() {
		s.t.Fatalf("redistest: Restart of a server that runs; Kill it first")
	}
	s.launch()
	if !s.answers() {
		s.t.Fatalf("redistest: the server does not start again:\n%s", logOf(s.dir, 30))
	}
}

// RestartUnready is [Server.Restart], and does not wait for anything: the server may
// answer that it is loading.
func (s *Server) RestartUnready() {
	s.t.Helper()
	s.launch()
}

// Freeze stops the server where it stands, as a machine does that is suspended.
func (s *Server) Freeze() { s.signal(freeze) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.signal(thaw) }

func (s *Server) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.process().cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v to %d: %v", sig, s.PID(), err)
	}
}

// ownClock lets the server start with a clock that a file says. With the C library
// before it, an allocator that the server is linked with does not ask for the time
// while libfaketime is being set up, which hangs the process.
func (s *Server) ownClock(library string) {
	s.env = append(s.env,
		"LD_PRELOAD="+library+":libc.so.6",
		"FAKETIME_TIMESTAMP_FILE="+s.clockFile(),
		"FAKETIME_NO_CACHE=1",            // a change is seen at the next look
		"FAKETIME_DONT_FAKE_MONOTONIC=1", // as when somebody sets a machine's clock
	)
	s.SetClock("+0")
}

// SetClock moves the clock of a server with OwnClock: "+3600" is an hour ahead of
// ours, "-3600" an hour behind, "+0 x1.1" runs a tenth too fast from the start of
// the process.
func (s *Server) SetClock(offset string) {
	s.t.Helper()
	// Written beside and moved: the server never reads half of it.
	next := s.clockFile() + ".next"
	if err := os.WriteFile(next, []byte(offset+"\n"), 0o600); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	if err := os.Rename(next, s.clockFile()); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}

func (s *Server) clockFile() string { return filepath.Join(s.dir, "clock") }

// AddUser makes a user with these rights and no others, "~forebay:*" and "+evalsha"
// for example.
func (s *Server) AddUser(name, password string, rules ...string) {
	s.t.Helper()
	s.Must(append([]string{"ACL", "SETUSER", name, "reset", "on", ">" + password}, rules...)...)
}

// Config sets a configuration parameter while the server runs.
func (s *Server) Config(name, value string) {
	s.t.Helper()
	s.Must("CONFIG", "SET", name, value)
}

// Info returns a section of what the server says about itself, by name.
func (s *Server) Info(section string) map[string]string {
	s.t.Helper()
	text, _ := s.Must("INFO", section).(string)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// append adds lines to the configuration, for the next start.
func (s *Server) append(lines string) {
	s.t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, "redis.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
	defer f.Close()
	if _, err := f.WriteString(lines); err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}
