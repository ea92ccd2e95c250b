package telemetry

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxLines in any window is what one gate may write about refusals. Ten show
	// what is going on; half of it hides the second kind of refusal in a burst, and
	// twice of it says the same thing twenty times.
	maxLines = 10
	window   = time.Second
)

// pace lets at most [maxLines] lines through in any [window], and counts the others
// until a line can say how many they were. In a storm it takes no lock.
type pace struct {
	of    paceKey
	left  atomic.Uint64 // left out and not yet said
	total atomic.Uint64 // left out so far

	until atomic.Int64 // nanoseconds on the log's clock before which nothing fits

	mu   sync.Mutex // guards what follows
	free [maxLines]time.Duration
	next int // the place in free that is used next: the one that is free first
}

// paceKey says what a pace is for: the refusals of a gate, or one message of the
// program. Both come from the configuration and the code, never from a client, so
// there are few.
type paceKey struct{ gate, message string }

// allow reports whether one more line fits at now.
func (p *pace) allow(now time.Duration) bool {
	if int64(now) < p.until.Load() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now < p.free[p.next] {
		return false
	}
	p.free[p.next] = now + window
	p.next = (p.next + 1) % maxLines
	p.until.Store(int64(p.free[p.next]))
	return true
}

// quiet reports whether the latest line is a whole window ago, so that no other can
// be relied on to say what was left out.
func (p *pace) quiet(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now >= p.free[(p.next+maxLines-1)%maxLines]
}

// leaveOut counts a line that is not written, and brings back what it would have
// said was left out before. It reports whether this is the first since then.
func (p *pace) leaveOut(said uint64) (first bool) {
	p.total.Add(1)
	return p.left.Add(said+1) == said+1
}

// paces are all paces of a log.
type paces struct{ all sync.Map } // paceKey to *pace

func (ps *paces) of(key paceKey) *pace {
	if p, ok := ps.all.Load(key); ok {
		return p.(*pace)
	}
	p, _ := ps.all.LoadOrStore(key, &pace{of: key})
	return p.(*pace)
}

func (ps *paces) each(f func(*pace)) {
	ps.all.Range(func(_, p any) bool {
		f(p.(*pace))
		return true
	})
}
