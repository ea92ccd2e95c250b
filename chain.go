package forebay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/forebay/internal/admit"
)

// Chain is several gates that one call passes in a fixed order: all of them or
// none. Make one with [NewChain], the zero value is not usable; it is safe for
// concurrent use.
//
// A call has one patience for the whole chain, the smallest MaxWait in it, and
// gets one decision, counted at the gate that refused it or else at the first.
// While it waits at a gate it keeps what the gates before gave it, so put the
// gate that most often has room last, and let all chains name their gates in the
// same order: two that cross would wait for each other until a patience ends.
type Chain struct{ gates []*Gate }

// NewChain returns the chain of the given gates, in this order.
func NewChain(gates ...*Gate) (*Chain, error) {
	var errs []error
	if len(gates) == 0 {
		errs = append(errs, errors.New("forebay: a chain needs at least one gate"))
	}
	for i, g := range gates {
		switch {
		case g == nil:
			errs = append(errs, fmt.Errorf("forebay: gate %d of the chain is nil", i))
		case slices.Contains(gates[:i], g):
			errs = append(errs, fmt.Errorf("forebay: gate %q is twice in the chain; name it once", g.name))
		}
	}
	if by, to := streamsWithin(gates); to != nil {
		errs = append(errs, fmt.Errorf("forebay: streams of gate %q are to move to gate %q, which is in the same chain; let them move to one that is not", by.name, to.name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Chain{gates: slices.Clone(gates)}, nil
}

// streamsWithin finds a gate by which streams are to move to another one of the same
// chain, where their request has a slot already.
func streamsWithin(gates []*Gate) (by, to *Gate) {
	for _, g := range gates {
		if g == nil {
			continue
		}
		if to := g.settings.Load().Streams.Gate; to != nil && slices.Contains(gates, to) {
			return g, to
		}
	}
	return nil, nil
}

// Acquire is [Gate.Acquire] for the whole chain. The lease stands for all of it:
// one Release gives every gate back, the last first.
func (c *Chain) Acquire(ctx context.Context, call Call) (Lease, error) {
	if len(c.gates) == 0 {
		panic("forebay: Acquire of a Chain that NewChain has not made")
	}
	return acquireAll(ctx, c.gates, call, nil)
}

// Wrap is [Gate.Wrap] for the whole chain. The lease is in the context if any of the
// gates wants it there.
func (c *Chain) Wrap(next http.Handler) http.Handler {
	return &gated{gates: c.gates, next: withoutLease(next)}
}

// acquireAll takes the gates in order. A gate that the call already holds is
// passed over.
func acquireAll(ctx context.Context, gates []*Gate, call Call, in *inbound) (Lease, error) {
	if len(gates) == 1 {
		return gates[0].acquire(ctx, call, in)
	}
	a := admit.Arrival{Claim: admit.Claim{Cost: call.cost()}, Link: true}
	a.Until, a.NoWait = chainPatience(gates)
	var waited time.Duration
	var first answer
	var room [4]Lease
	links := room[:0]
	for _, g := range gates {
		if g.inContext.Load() && holds(ctx, g) {
			continue
		}
		s := g.settings.Load()
		if ctx.Err() != nil {
			unwind(links)
			return Lease{}, g.turnAway(ctx, s, &call, waited)
		}
		ans := g.enter(ctx, s, &call, a, in)
		waited += ans.waited
		if ans.verdict != admit.Granted {
			unwind(links)
			ans.waited = waited
			return Lease{}, g.refusal(ctx, s, &call, ans)
		}
		if len(links) == 0 {
			first = ans
		}
		links = append(links, g.keepGranted(s, &call, ans))
	}
	if len(links) == 0 {
		return Lease{}, gates[0].settings.Load().ended(ctx)
	}
	for _, l := range links {
		if g := l.slot.gate; g.cluster != nil && l.lost() { // while the call waited for the others
			unwind(links)
			return Lease{}, g.refuseLate(ctx, g.settings.Load(), &call, admit.Store, waited)
		}
	}
	first.waited = waited
	l := links[0].chain(links[1:])
	l.slot.gate.acceptChain(&call, first, l)
	return l, nil
}

// chainPatience returns when a chain's one patience ends, and whether it has
// none: one gate that refuses at once makes the chain refuse at once.
func chainPatience(gates []*Gate) (until time.Time, none bool) {
	patience := longestWait
	for _, g := range gates {
		patience = min(patience, g.settings.Load().MaxWait)
	}
	return clock().Add(patience), patience == 0
}

// unwind gives back the gates of a chain that did not come to its end, the last
// first. Nothing ran, so nothing is learnt from it.
func unwind(links []Lease) {
	for i := len(links) - 1; i >= 0; i-- {
		sl, now := links[i].slot, clock()
		if !sl.seize(links[i].word) {
			continue
		}
		g, claim := sl.gate, sl.holder.claim
		g.lock()
		g.slots.closeLocked(sl, with(links[i].word, slotBusy))
		g.machine.Unwind(now, claim)
		g.unlock()
	}
}

// acceptChain counts and reports a chain's one decision at its first gate.
func (g *Gate) acceptChain(call *Call, ans answer, l Lease) {
	s := g.settings.Load()
	now := clock()
	g.lock()
	g.machine.Count(now, admit.Granted)
	g.unlock()
	g.emitAccepted(s, call, ans, l)
}
