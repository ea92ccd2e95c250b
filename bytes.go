package forebay

import (
	"fmt"
	"sync/atomic"
)

// Bytes counts the bytes that are held for requests, and lets no more be held than
// its limit: bodies that are read ahead, the rest of bodies that is thrown away,
// answers that are spooled. One of them can serve any number of gates, handlers and
// servers. Make one with [NewBytes], the zero value lets nothing be held; it is safe
// for concurrent use, exact in every interleaving, and allocates nothing.
//
// What is held belongs to a [Held], which gives it back.
type Bytes struct {
	limit   atomic.Int64
	held    atomic.Int64
	peak    atomic.Int64
	refused atomic.Uint64
}

// BytesStats is one picture of a [Bytes]. Its figures are read one after another, so
// under load they may be those of neighbouring instants; Held is never above the
// highest limit that was in force.
type BytesStats struct {
	Limit   int64  `json:"limit"`
	Held    int64  `json:"held"`
	Peak    int64  `json:"peak"`    // the most that was ever held
	Refused uint64 `json:"refused"` // how often there was no room
}

// NewBytes returns an accountant of at most limit bytes. 0 lets nothing be held;
// below 0 it panics.
func NewBytes(limit int64) *Bytes {
	b := &Bytes{}
	b.SetLimit(limit)
	return b
}

// SetLimit moves the limit. Under a lower one what is held stays, and nothing more is
// until enough has been given back. Below 0 it panics.
func (b *Bytes) SetLimit(limit int64) {
	if limit < 0 {
		panic(fmt.Sprintf("forebay: a limit of %d bytes; it must be 0 (nothing) or more", limit))
	}
	b.limit.Store(limit)
}

// Stats returns how much is held, of how much.
func (b *Bytes) Stats() BytesStats {
	return BytesStats{Limit: b.limit.Load(), Held: b.held.Load(), Peak: b.peak.Load(), Refused: b.refused.Load()}
}

// take holds n more bytes if there is room.
func (b *Bytes) take(n int64) bool {
	for {
		held := b.held.Load()
		if n > b.limit.Load()-held { // no sum that could overflow
			b.refused.Add(1)
			return false
		}
		if b.held.CompareAndSwap(held, held+n) {
			b.peaked(held + n)
			return true
		}
	}
}

func (b *Bytes) peaked(held int64) {
	for peak := b.peak.Load(); held > peak; peak = b.peak.Load() {
		if b.peak.CompareAndSwap(peak, held) {
			return
		}
	}
}

// Held is what one request holds of a [Bytes]. Get one from [Bytes.Held] and give it
// back with Release; the zero value holds nothing and gets nothing. It belongs to one
// goroutine at a time and must not be copied.
type Held struct {
	_  noCopy
	of *Bytes
	n  int64
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (noCopy) Lock()   {}
func (noCopy) Unlock() {}

// Held returns an empty account of b.
func (b *Bytes) Held() Held { return Held{of: b} }

// Grow holds n bytes more, all or none, and reports whether there was room. Below 0 it
// panics.
func (h *Held) Grow(n int64) bool {
	if n < 0 {
		panic(fmt.Sprintf("forebay: Grow by %d bytes; Shrink gives back", n))
	}
	if h.of == nil || !h.of.take(n) {
		return false
	}
	h.n += n
	return true
}

// Shrink gives n bytes back, or all if fewer are held. Below 0 it panics.
func (h *Held) Shrink(n int64) {
	if n < 0 {
		panic(fmt.Sprintf("forebay: Shrink by %d bytes; Grow takes", n))
	}
	if n = min(n, h.n); n > 0 {
		h.n -= n
		h.of.held.Add(-n)
	}
}

// Release gives everything back. A second one does nothing.
func (h *Held) Release() { h.Shrink(h.n) }

// Size returns how many bytes are held.
func (h *Held) Size() int64 { return h.n }
