package promgate

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

const (
	// peakWindow is how far back a peak reaches at least: four scrapes of 15 s, so
	// that one that is missed hides nothing.
	peakWindow = time.Minute
	// peakStep is the least that a piece of the window covers, so that somebody
	// who scrapes in a loop makes no more than a dozen pieces.
	peakStep = 5 * time.Second
)

// peaks remembers the highest in flight and waiting of one gate over a sliding
// window, for every scraper alike: reading takes nothing away.
//
// Events raise the piece of the window that is being filled, without a clock;
// scrapes, which have the time, begin new pieces and drop the old. Without a
// scrape the piece grows, so that the next one misses nothing.
//
// In flight rises only when a call starts, and every start is an event that says
// how high it went; what ran already when a piece began is known from the gate at
// that moment. So the peak is exact, with one exception: starts at the later
// gates of a chain are no events, and there the release shows the level one call
// later. Waiting sinks only when a call leaves the line, which is an event too;
// what still waits is known from the gate.
type peaks struct {
	inFlight, waiting atomic.Int64 // of the piece that is being filled

	mu    sync.Mutex // guards what follows
	began time.Time
	past  []peakPiece // oldest first
}

type peakPiece struct {
	ended             time.Time
	inFlight, waiting int64
}

// note takes in what an event says.
func (p *peaks) note(e *forebay.Event) {
	raise(&p.inFlight, int64(e.InFlight))
	waiting := int64(e.Waiting)
	if e.Kind == forebay.EventDecided && e.Waited > 0 {
		waiting++ // the call itself, which stood in line until then
	}
	raise(&p.waiting, waiting)
}

// turn ends the piece that is being filled if it is long enough. Whoever calls it
// asks the gate afterwards and hands the answer to [peaks.read]: in this order a
// call that starts in between is in the event, in the answer, or in both.
func (p *peaks) turn(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.began.IsZero():
		p.began = now
	case now.Sub(p.began) >= peakStep:
		p.past = append(p.past, peakPiece{now, p.inFlight.Swap(0), p.waiting.Swap(0)})
		p.began = now
	}
	p.past = slices.DeleteFunc(p.past, func(piece peakPiece) bool { return now.Sub(piece.ended) > peakWindow })
}

// read takes in what the gate shows and returns the highest of the window.
func (p *peaks) read(st *forebay.Stats) (inFlight, waiting int64) {
	raise(&p.inFlight, int64(st.InUse))
	raise(&p.waiting, int64(st.Waiting))
	p.mu.Lock()
	defer p.mu.Unlock()
	inFlight, waiting = p.inFlight.Load(), p.waiting.Load()
	for _, piece := range p.past {
		inFlight, waiting = max(inFlight, piece.inFlight), max(waiting, piece.waiting)
	}
	return inFlight, waiting
}

// raise lifts v to at least n.
func raise(v *atomic.Int64, n int64) {
	for old := v.Load(); old < n; old = v.Load() {
		if v.CompareAndSwap(old, n) {
			return
		}
	}
}
