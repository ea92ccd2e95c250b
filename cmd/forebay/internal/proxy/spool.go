package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"example.com/forebay"
)

// Spool takes in the answers of the upstream faster than their clients read them, so that
// the slots of gates with [forebay.HoldUpstreamDone] are free when the upstream is done:
// in memory first, then in files, within bounds over all answers. One of them serves any
// number of handlers. Make it with [NewSpool]; it is safe for concurrent use and has
// nothing to close.
type Spool struct {
	memory, disk *forebay.Bytes
	bounds       atomic.Pointer[SpoolBounds] // nil: nothing is spooled
	failed       func(error)
	create       func(*SpoolBounds) (spoolFile, error)

	answers atomic.Int64
	kept    atomic.Uint64
	errors  atomic.Uint64

	mu      sync.Mutex // guards what follows
	waiting map[*spooled]struct{}
}

// SpoolBounds say how much a [Spool] takes in.
type SpoolBounds struct {
	Memory    int64  // bytes, of all answers together
	PerAnswer int64  // bytes of them that one answer may take
	Directory string // of the files; empty: there are none
	Disk      int64  // bytes in files, of all answers together
}

// SpoolStats is one picture of a [Spool].
type SpoolStats struct {
	Memory  forebay.BytesStats `json:"memory"`
	Disk    forebay.BytesStats `json:"disk"`    // of files, as long as they are large
	Answers int64              `json:"answers"` // that are on their way through it
	Kept    uint64             `json:"kept"`    // answers that kept their slot for a while: there was no room
	Errors  uint64             `json:"errors"`  // of files; answers that met one kept their slot if need be
}

// NewSpool returns a spool that takes in nothing before [Spool.Set] says how much. failed
// is told of errors of files, by whoever meets them; it must not block. Nil: nobody is.
func NewSpool(failed func(error)) *Spool {
	return &Spool{
		memory: forebay.NewBytes(0), disk: forebay.NewBytes(0), failed: failed,
		create: (*SpoolBounds).file, waiting: map[*spooled]struct{}{},
	}
}

// spoolFile is where the bytes of one answer are.
type spoolFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Try returns why files cannot be made in the directory.
func (b *SpoolBounds) Try() error {
	if b.Directory == "" {
		return nil
	}
	f, err := b.file()
	if err != nil {
		return fmt.Errorf("proxy: no file can be made in the directory of the spool: %w", err)
	}
	return f.Close()
}

// file returns a new file that has no name any more: it is gone when it is closed, or the
// program ends, whatever ends it.
func (b *SpoolBounds) file() (spoolFile, error) {
	f, err := os.CreateTemp(b.Directory, "forebay-*.spool")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		//mutate:equivalent no test has a file that was just made and cannot be removed
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Set puts bounds in force, for answers that begin from now on; the sums are for all, at
// once. Nil: no further answer is spooled.
func (s *Spool) Set(b *SpoolBounds) {
	if b != nil {
		s.memory.SetLimit(b.Memory)
		s.disk.SetLimit(b.Disk)
	}
	s.bounds.Store(b)
	s.roomMade()
}

// Stats returns what is held, and what has become of answers.
func (s *Spool) Stats() SpoolStats {
	return SpoolStats{
		Memory: s.memory.Stats(), Disk: s.disk.Stats(),
		Answers: s.answers.Load(), Kept: s.kept.Load(), Errors: s.errors.Load(),
	}
}

// fail counts an error of a file and reports it.
func (s *Spool) fail(err error) {
	s.errors.Add(1)
	if s.failed != nil {
		s.failed(err)
	}
}

// await has an answer woken when others make room, until leave.
func (s *Spool) await(a *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[a] = struct{}{}
}

func (s *Spool) leave(a *spooled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, a)
}

// roomMade wakes the answers that wait for room. Whoever calls it holds no lock of an
// answer's.
func (s *Spool) roomMade() {
	s.mu.Lock()
	all := make([]*spooled, 0, len(s.waiting))
	for a := range s.waiting {
		all = append(all, a)
	}
	s.mu.Unlock()
	for _, a := range all {
		a.mu.Lock() // else it could miss it between its look and its wait
		a.moved.Broadcast()
		a.mu.Unlock()
	}
}
