package forebay

import (
	"bytes"
	"io"
	"sync"
)

// script carries what the machine writes down to [Config.Script], in order and
// outside the gate's lock. A goroutine of its own writes, and exists only while
// something is to be written: a writer that is slow, blocks, panics or ends its
// goroutine costs no call anything.
type script struct {
	recorded bytes.Buffer // guarded by the gate's lock

	mu      sync.Mutex // guards what follows; never held while writing
	pending []byte
	holed   bool           // something was dropped: nothing after it would play
	writing sync.WaitGroup // of the goroutine that writes, if there is one
	busy    bool
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

// flush has what is pending written, unless somebody is at it.
func (g *Gate) flush(s *script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || len(s.pending) == 0 {
		return
	}
	s.busy = true
	s.writing.Go(func() { g.write(s) })
}

// write writes until nothing is pending.
func (g *Gate) write(s *script) {
	whole := false
	defer func() {
		if whole {
			return
		}
		_ = recover() // of the writer; it is counted, and the script ends here
		g.scriptErrors.Add(1)
		s.mu.Lock()
		s.busy, s.holed, s.pending = false, true, nil
		s.mu.Unlock()
	}()
	for chunk := s.take(); chunk != nil; chunk = s.take() {
		if _, err := s.out.Write(chunk); err != nil {
			g.scriptErrors.Add(1)
		}
	}
	whole = true
}

// take returns what is pending, and nil, which ends the writing, if nothing is.
func (s *script) take() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunk := s.pending
	s.pending = nil
	s.busy = len(chunk) > 0
	return chunk
}
