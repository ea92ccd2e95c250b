package forebay

import (
	"runtime"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/admit"
)

// slot is the right to run one call, lent by the machine or kept by it, and what
// makes giving back idempotent: a lease names a slot and a generation of it, and
// only the first release of that generation counts.
//
// word is generation<<3 | state. Every claim begins a new generation.
//
//	closed --lend--> free --claim--> held or kept --release--> free
//	   ^--------------'------------------------------------------'
//	              close, under the gate's lock
//
// The machine counts every slot that is not closed as in flight, so that whoever
// finds a free one may take it by a single compare-and-swap, whatever happens
// elsewhere at that moment: the limit holds in every interleaving.
type slot struct {
	word  atomic.Uint64
	gate  *Gate
	index int // in its table

	holder *holder // belongs to the goroutine that made the slot busy or seen

	// Guarded by the gate's lock.
	seen uint64 // the last generation that the machine has counted
	wide int    // units, if the lease takes more than one
	lost uint64 // the last generation of which the lease was lost

	numbers *numbers // of a fenced gate: the units that the lease holds; with it the slot
	// fills a cache line, so that neighbours do not slow each other
}

// holder is what is kept of a call while it holds a slot.
type holder struct {
	call    Call
	claim   admit.Claim
	since   time.Time // zero unless the gate tracks
	waited  time.Duration
	overdue bool    // reported by the watchdog
	late    bool    // the caller was told that time is up
	rest    []Lease // of a chain's first lease: those of its further gates
}

const (
	slotClosed = iota // the machine's
	slotFree          // lent: whoever comes may claim it
	slotBusy          // who claims or gives back has the slot to itself, for a moment
	slotSeen          // somebody looks at what is kept of the lease, and waits for nobody
	slotHeld          // a lease is out: of one unit, and nothing is kept of it
	slotKept          // a lease is out, and holder says more of it
	slotState  = 7
	slotNext   = 8 // one generation
)

func stateOf(word uint64) uint64      { return word & slotState }
func generationOf(word uint64) uint64 { return word / slotNext }
func with(word, state uint64) uint64  { return word&^slotState | state }

// claim takes a free slot into a new generation; false if it is free no more.
func (sl *slot) claim(state uint64) (uint64, bool) {
	w := sl.word.Load()
	if stateOf(w) != slotFree {
		return 0, false
	}
	claimed := with(w, state) + slotNext
	return claimed, sl.word.CompareAndSwap(w, claimed)
}

// free ends the bare lease with this word and leaves the slot to whoever comes;
// false if it had ended before.
func (sl *slot) free(word uint64) bool {
	return sl.word.CompareAndSwap(word, with(word, slotFree))
}

// seize gives the slot of the lease with this word to the caller, who gives the
// lease back, and reports whether it was still out. The caller ends it by put.
func (sl *slot) seize(word uint64) bool { return sl.become(slotBusy, word) }

// look is seize for somebody who only looks. It never waits for who gives back,
// who may be waiting for a lock that the looker holds.
func (sl *slot) look(word uint64) bool { return sl.become(slotSeen, word) }

func (sl *slot) become(state, word uint64) bool {
	for !sl.word.CompareAndSwap(word, with(word, state)) {
		switch sl.word.Load() {
		case word: // somebody looked, and is done
		case with(word, slotSeen):
			runtime.Gosched() // a few loads, then it is back
		default:
			return false
		}
	}
	return true
}

// put ends a seizure, a look or a preparation.
func (sl *slot) put(word uint64) { sl.word.Store(word) }

// live reports whether the lease with this word is still out.
func (sl *slot) live(word uint64) bool {
	w := sl.word.Load()
	return generationOf(w) == generationOf(word) && stateOf(w) > slotFree
}
