package proxy

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"example.com/forebay"
)

// errLeftSpool ends the pump of an answer that nobody reads any more.
var errLeftSpool = errors.New("proxy: nobody reads the answer any more")

// spooled is one answer on its way through a [Spool]. Whoever hands the answer on to the
// client reads from it and closes it, from one goroutine. The first piece is read right
// from the upstream. If more is to come a goroutine, the pump, takes that in; Close waits
// for it. It gives the slot back when the upstream's answer has ended, with an error too;
// else whoever closes it does, afterwards.
//
// What has come in is kept in parts, in the order in which it came: in memory where there
// is room, else in the file. With room in neither the pump waits for room or the reader,
// which then takes what the pump has in hand, and the upstream waits for the pump.
type spooled struct {
	spool  *Spool
	bounds SpoolBounds // as they were when the answer began
	from   io.ReadCloser
	slot   slot
	cancel func()        // ends the exchange with the upstream
	over   chan struct{} // the pump has ended; nil: it has not begun
	file   spoolFile     // the pump's to make; others see it by way of a part in it

	mu      sync.Mutex // guards what follows
	moved   sync.Cond  // something came, went or ended
	memory  forebay.Held
	disk    forebay.Held // the file's size
	parts   []part       // the oldest first
	inHand  []byte       // the pump's, behind all parts
	end     int64        // where the file goes on
	writing bool         // the pump does
	noDisk  bool         // there is no file for this answer, or it takes no more
	kept    bool         // the slot was kept for want of room, and that was counted
	err     error        // how the upstream's answer ended; nil: it goes on
	closed  bool
}

// part is a piece of an answer.
type part struct {
	chunk    *[bufferSize]byte // nil: it is in the file
	from, to int64             // in the chunk or the file
}

// newSpooled returns an answer's body for which length was declared, -1 for none. A slot
// comes back earlier the more of an answer is taken in, but one that is larger than all
// there is would take the disk from all others and keep its slot still: it gets memory
// alone.
func (s *Spool) newSpooled(b *SpoolBounds, from io.ReadCloser, length int64, slot slot, cancel func()) *spooled {
	a := &spooled{
		spool: s, bounds: *b, from: from, slot: slot, cancel: cancel,
		memory: s.memory.Held(), disk: s.disk.Held(),
		noDisk: b.Directory == "" || length > b.PerAnswer+b.Disk,
	}
	a.moved.L = &a.mu
	return a
}

// Read reads on.
func (a *spooled) Read(p []byte) (int, error) {
	if a.over != nil {
		return a.next(p)
	}
	n, err := a.from.Read(p)
	if err != nil {
		a.giveBack(err)
		return n, err
	}
	a.over = make(chan struct{})
	a.spool.answers.Add(1)
	go a.pump()
	return n, nil
}

// giveBack gives the slot back: the upstream's answer has ended.
func (a *spooled) giveBack(err error) {
	if a.slot.lease.Live() {
		a.slot.lease.ReleaseAs(a.slot.ended(err))
	}
}

// pump takes in the upstream's answer. Its buffer is not counted, as those are not with
// which answers are copied otherwise: there is one for each slot at most.
func (a *spooled) pump() {
	defer close(a.over)
	buf := bufferPool.Get().(*[bufferSize]byte)
	defer bufferPool.Put(buf)
	for {
		n, err := a.from.Read(buf[:])
		if err != nil {
			a.giveBack(err) // what has come with it needs no slot, even if it has to wait
		}
		isRead := a.keep(buf[:n])
		if err == nil && !isRead {
			err = errLeftSpool // the slot is given back by whoever has closed this
		}
		if err != nil {
			a.ended(err)
			return
		}
	}
}

func (a *spooled) ended(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	a.moved.Broadcast()
}

// keep puts a piece behind what is there, waiting for room; false: nobody reads any more.
func (a *spooled) keep(p []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	waits := false
	for len(p) > 0 && !a.closed {
		n := a.keepInMemoryLocked(p)
		if n == 0 {
			n = a.keepInFileLocked(p)
		}
		switch {
		case n > 0:
			p = p[n:]
			a.moved.Broadcast()
		case !waits: // and looks once more: room made from now on wakes it
			waits = true
			a.spool.await(a)
			defer a.spool.leave(a)
		default:
			a.keptLocked()
			a.inHand = p
			a.moved.Broadcast()
			a.moved.Wait()
			p, a.inHand = a.inHand, nil
		}
	}
	return !a.closed
}

// keptLocked counts an answer that needs its slot for want of room.
func (a *spooled) keptLocked() {
	if !a.kept && a.slot.lease.Live() {
		a.kept = true
		a.spool.kept.Add(1)
	}
}

// keepInMemoryLocked puts the beginning of p into memory, as much as fits there now.
func (a *spooled) keepInMemoryLocked(p []byte) int {
	if last := len(a.parts) - 1; last >= 0 && a.parts[last].chunk != nil && a.parts[last].to < bufferSize {
		into := &a.parts[last]
		n := copy(into.chunk[into.to:], p)
		into.to += int64(n)
		return n
	}
	if a.memory.Size()+bufferSize > a.bounds.PerAnswer || !a.memory.Grow(bufferSize) {
		return 0
	}
	chunk := bufferPool.Get().(*[bufferSize]byte)
	n := copy(chunk[:], p)
	a.parts = append(a.parts, part{chunk: chunk, to: int64(n)})
	return n
}

// keepInFileLocked puts p into the file, all or nothing, without the lock meanwhile.
func (a *spooled) keepInFileLocked(p []byte) int {
	size := int64(len(p))
	if a.noDisk || !a.disk.Grow(max(0, a.end+size-a.disk.Size())) {
		return 0
	}
	at := a.end
	a.writing = true
	a.mu.Unlock()
	err := a.write(p, at)
	a.mu.Lock()
	a.writing = false
	if err != nil {
		a.noDisk = true // what it holds already can be read
		a.spool.fail(err)
		return 0
	}
	a.end += size
	if last := len(a.parts) - 1; last >= 0 && a.parts[last].chunk == nil {
		a.parts[last].to = a.end
	} else {
		a.parts = append(a.parts, part{from: at, to: a.end})
	}
	return len(p)
}

// write writes to the file, which is made when it is needed.
func (a *spooled) write(p []byte, at int64) (err error) {
	if a.file == nil {
		if a.file, err = a.spool.create(&a.bounds); err != nil {
			a.file = nil
			return fmt.Errorf("proxy: an answer may keep its slot until it was read, as its file takes no more: %w", err)
		}
	}
	if _, err = a.file.WriteAt(p, at); err != nil {
		return fmt.Errorf("proxy: an answer may keep its slot until it was read, as its file takes no more: %w", err)
	}
	return nil
}

// next reads what the pump has taken in, and waits for it.
func (a *spooled) next(p []byte) (n int, err error) {
	a.mu.Lock()
	for len(a.parts) == 0 && len(a.inHand) == 0 && a.err == nil {
		a.moved.Wait()
	}
	if len(a.parts) == 0 {
		defer a.mu.Unlock()
		if len(a.inHand) == 0 {
			return 0, a.err
		}
		n = copy(p, a.inHand)
		a.inHand = a.inHand[n:]
		a.moved.Broadcast()
		return n, nil
	}
	if first := a.parts[0]; first.chunk != nil {
		n = copy(p, first.chunk[first.from:first.to])
	} else {
		p = p[:min(int64(len(p)), first.to-first.from)]
		a.mu.Unlock() // only the reader takes parts away
		if n, err = a.file.ReadAt(p, first.from); err != nil {
			err = fmt.Errorf("proxy: an answer breaks off, as its file cannot be read: %w", err)
			a.spool.fail(err)
			return n, err
		}
		a.mu.Lock()
	}
	freed := a.takenLocked(int64(n))
	a.mu.Unlock()
	if freed {
		a.spool.roomMade()
	}
	return n, nil
}

// takenLocked notes that the reader has n bytes more, and reports whether there is room
// again for others. The file stays as large as it was, and is used from its beginning
// once all of it was read.
func (a *spooled) takenLocked(n int64) (freed bool) {
	first := &a.parts[0]
	if first.from += n; first.from < first.to {
		return false
	}
	if first.chunk != nil {
		bufferPool.Put(first.chunk)
		a.memory.Shrink(bufferSize)
		freed = true
	}
	a.parts = a.parts[1:]
	if !a.writing && !a.inFileLocked() {
		a.end = 0
	}
	a.moved.Broadcast()
	return freed
}

// inFileLocked reports whether the reader has yet to read from the file.
func (a *spooled) inFileLocked() bool {
	for _, p := range a.parts {
		if p.chunk == nil {
			return true
		}
	}
	return false
}

// Close ends the exchange with the upstream if it goes on, and gives back what is held. A
// second one does nothing.
func (a *spooled) Close() error {
	a.mu.Lock()
	again, goesOn := a.closed, a.err == nil
	a.closed = true
	a.moved.Broadcast()
	a.mu.Unlock()
	switch {
	case again:
		return nil
	case a.over == nil: // there is nothing but the upstream's body
		return a.from.Close()
	case goesOn:
		a.cancel()
	}
	<-a.over
	//mutate:equivalent what has not ended by itself was canceled above
	err := a.from.Close()
	for _, p := range a.parts { // nobody else has them any more
		if p.chunk != nil {
			bufferPool.Put(p.chunk)
		}
	}
	a.parts = nil
	a.memory.Release()
	a.disk.Release()
	if a.file != nil {
		err = errors.Join(err, a.file.Close())
	}
	a.spool.answers.Add(-1)
	a.spool.roomMade()
	return err
}
