package forebay

import (
	"context"
	"errors"
	"slices"

	"example.com/forebay/internal/feed"
)

// ErrLeaseLost is why the context of [Lease.Context] ends when the cluster may lend
// the lease's slot to somebody else.
var ErrLeaseLost = errors.New("forebay: the lease is lost: the cluster may lend its slot to others")

// Context returns a context that ends with the cause [ErrLeaseLost] when the lease is
// lost: when the time is over for which a cluster lent its slot, because the store was
// away or this process stood still (for which the wall clock set ahead is taken too).
// Work that goes on then may be one too many. Call the function once the work has
// ended. The lease of a gate without a cluster cannot be lost, and one that was given
// back has nothing to lose.
func (l Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	var leases []Lease
	l.eachLink(func(l Lease) {
		if l.slot.gate.cluster != nil {
			leases = append(leases, l)
		}
	})
	var stops []func()
	for _, l := range leases {
		stops = append(stops, l.whenLost(end))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		end(nil)
	}
}

// watched is a lease whose holder wants to know when it is lost.
type watched struct {
	lease Lease
	end   context.CancelCauseFunc
}

// whenLost has end called when the lease is lost, at once if it is, unless stop is
// called before.
func (l Lease) whenLost(end context.CancelCauseFunc) (stop func()) {
	g := l.slot.gate
	w := &watched{l, end}
	g.noticeEnd()
	g.mu.Lock() // not more: what is lent to callers stays lent
	g.cluster.watched[w] = struct{}{}
	lost := l.lostLocked()
	g.mu.Unlock()
	if lost {
		end(ErrLeaseLost)
	}
	return func() {
		g.mu.Lock()
		delete(g.cluster.watched, w)
		g.mu.Unlock()
	}
}

// lost reports whether the lease of a gate with a cluster is lost.
func (l Lease) lost() bool {
	g := l.slot.gate
	g.noticeEnd()
	g.mu.Lock()
	defer g.mu.Unlock()
	return l.lostLocked()
}

func (l Lease) lostLocked() bool { return l.slot.lost >= generationOf(l.word) }

// noticeEnd has the gate know that its term is over, if it is.
func (g *Gate) noticeEnd() {
	if g.cluster.ended() {
		g.lock()
		g.overLocked(clock())
		g.unlock()
	}
}

// loseLocked notes that every lease that is out is lost.
func (g *Gate) loseLocked() {
	g.slots.outLocked(func(sl *slot) { sl.lost = generationOf(sl.word.Load()) })
	c := g.cluster
	for w := range c.watched {
		if w.lease.Live() {
			c.ends = append(c.ends, w.end)
		}
	}
}

// Fence is a numbered slot of a cluster's limit. Of two holders of one Number the one
// with the higher Fence came later: a resource that keeps the highest Fence it has
// seen for each Number, and refuses lower ones, is safe from a holder that stood
// still and does not know that its slot has gone to somebody else.
type Fence struct {
	Number int
	Fence  uint64
}

// Fences returns the numbered slots that the lease holds, one for each unit; of a
// chain, those of all its gates in order. None unless the cluster's terms say Fenced,
// and none for a lease that was given without the store.
func (l Lease) Fences() []Fence {
	var all []Fence
	var leases []Lease
	l.eachLink(func(l Lease) { leases = append(leases, l) })
	for _, l := range leases {
		g := l.slot.gate
		g.mu.Lock()
		if n := l.slot.numbers; n != nil && l.Live() {
			for _, s := range n.slots {
				all = append(all, Fence(s))
			}
		}
		g.mu.Unlock()
	}
	return all
}

// numbers are the numbered units that a lease holds.
type numbers struct {
	slots     []feed.Slot
	withdrawn bool // they are not this gate's any more
}

// numberLocked takes the numbered units for a call. There are as many free ones as
// there is room, but for a gate that goes on without the ledger.
func (c *clustered) numberLocked(cost int) *numbers {
	if c.away {
		return nil
	}
	return &numbers{slots: c.popLocked(cost)}
}

func (c *clustered) giveBackLocked(n *numbers) {
	if !n.withdrawn {
		c.free = append(c.free, n.slots...)
	}
}

func (c *clustered) popLocked(n int) []feed.Slot {
	n = min(n, len(c.free))
	if n == 0 {
		return nil
	}
	rest := len(c.free) - n
	popped := slices.Clone(c.free[rest:])
	c.free = c.free[:rest]
	return popped
}
