package forebay

import "context"

type leaseKey struct{}

// carried is a lease in a context, with the one that was there before it.
type carried struct {
	lease Lease
	outer *carried
}

// WithLease returns a context that carries the lease, so that whatever the call
// does further down is recognised as part of it: a second acquire of the same
// gate gets a lease that does nothing instead of waiting for itself. [Do] and
// [Func] do this; [Gate.Wrap] does with [Config.LeaseInContext]. Once the lease is
// given back it counts no more, and an acquire takes a slot as any other does.
func WithLease(ctx context.Context, l Lease) context.Context {
	if l.slot == nil {
		return ctx
	}
	outer, _ := ctx.Value(leaseKey{}).(*carried)
	l.eachGate(func(g *Gate) { g.inContext.Store(true) })
	return context.WithValue(ctx, leaseKey{}, &carried{lease: l, outer: outer})
}

// LeaseFrom returns the innermost lease that ctx carries and that was not given back;
// the zero lease, which does nothing, and false if there is none.
func LeaseFrom(ctx context.Context) (Lease, bool) {
	c, _ := ctx.Value(leaseKey{}).(*carried)
	for ; c != nil; c = c.outer {
		if c.lease.Live() {
			return c.lease, true
		}
	}
	return Lease{}, false
}

// holds reports whether ctx carries a live lease of g.
func holds(ctx context.Context, g *Gate) bool {
	c, _ := ctx.Value(leaseKey{}).(*carried)
	for ; c != nil; c = c.outer {
		found := false
		c.lease.eachGate(func(held *Gate) { found = found || held == g })
		if found {
			return true
		}
	}
	return false
}

// eachGate shows visit the gates of a live lease.
func (l Lease) eachGate(visit func(*Gate)) {
	l.eachLink(func(link Lease) { visit(link.slot.gate) })
}

// eachLink shows visit a live lease, and those of a chain's further gates. visit must
// not wait for anything.
func (l Lease) eachLink(visit func(Lease)) {
	switch {
	case l.slot == nil:
		return
	case stateOf(l.word) == slotHeld:
		if l.Live() {
			visit(l)
		}
		return
	case !l.slot.look(l.word):
		return
	}
	visit(l)
	for _, link := range l.slot.holder.rest {
		visit(link)
	}
	l.slot.put(l.word)
}

type exemptKey struct{}

// Exempt returns a context under which [Do] and [Func] run their function
// without a slot, uncounted: for work that must not wait behind what it serves.
// [Gate.Acquire] and the handlers do not look at it.
func Exempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, exemptKey{}, true)
}

type callKey struct{}

// WithCall returns a context that tells [Do] and [Func] about the call: its route,
// its request id, its cost. [Gate.Acquire] and the handlers do not look at it.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callFrom(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

func isExempt(ctx context.Context) bool { return ctx.Value(exemptKey{}) != nil }
