package forebay

import (
	"bytes"
	"io"
	"sync"
)

// script carries what the machine writes down to [Config.Script], in order and
// outside the gate's lock: whoever finds nobody writing writes, for all.
type script struct {
	recorded bytes.Buffer // guarded by the gate's lock

	mu      sync.Mutex // guards what follows; never held while writing
	pending []byte
	holed   bool // something was dropped: nothing after it would play
	writing bool
	out     io.Writer
}

// maxPending is how much may wait for a slow writer. A script with a hole plays
// nothing, so what comes after is dropped and counted: some 200,000 events.
const maxPending = 16 << 20

// openScript starts the script of a new gate.
func (g *Gate) openScript(out io.Writer) {
	if out == nil {
		return
	}
	g.script = &script{out: out}
	g.machine.Record(&g.script.recorded, clock())
}

// collectLocked moves what was recorded to what is pending, and reports whether
// it had to be dropped. The gate's lock is held.
func (s *script) collectLocked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holed = s.holed || len(s.pending) > maxPending
	if !s.holed {
		s.pending = append(s.pending, s.recorded.Bytes()...)
	}
	s.recorded.Reset()
	return s.holed
}

// flush writes what is pending, unless somebody else is at it.
func (g *Gate) flush(s *script) {
	s.mu.Lock()
	if s.writing {
		s.mu.Unlock()
		return
	}
	s.writing = true
	for len(s.pending) > 0 {
		chunk := s.pending
		s.pending = nil
		s.mu.Unlock()
		if _, err := s.out.Write(chunk); err != nil {
			g.scriptErrors.Add(1)
		}
		s.mu.Lock()
	}
	s.writing = false
	s.mu.Unlock()
}
