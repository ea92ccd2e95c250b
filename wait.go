package forebay

import (
	"context"
	"errors"
	"sync"
	"time"

	"example.com/forebay/internal/admit"
)

// answer is what became of one call at one gate.
type answer struct {
	verdict admit.Verdict
	at      time.Time // when it was given
	waited  time.Duration
	gauge   admit.Gauge
	lease   Lease       // if granted
	claim   admit.Claim // if granted
}

// waiting is one call in line, and what wakes it.
type waiting struct {
	admit.Waiter
	woken chan struct{}   // fresh for each wait: a kept one would carry a testing/synctest bubble's into the world outside
	gone  <-chan struct{} // the context's
	lease Lease
	keep  bool
}

// waitings are those whose waits are over: they are most of what a wait allocates.
var waitings = sync.Pool{New: func() any { return new(waiting) }}

// grantLocked gives the waiter its slot in the very step in which the machine
// lets it in.
func (w *waiting) grantLocked(g *Gate) { w.lease = g.grantLocked(w.Cost(), w.keep) }

// acquireSlow asks the machine, waits if it says so, and reports the decision.
func (g *Gate) acquireSlow(ctx context.Context, s *settings, call *Call, a admit.Arrival, in *inbound) (Lease, error) {
	ans := g.enter(ctx, s, call, a, in)
	if ans.verdict != admit.Granted {
		return Lease{}, g.refusal(ctx, s, call, ans)
	}
	l := g.keepGranted(s, call, ans)
	g.emitAccepted(s, call, ans, l)
	return l, nil
}

// keepGranted notes who got the lease, if it is one of which something is kept.
func (g *Gate) keepGranted(s *settings, call *Call, ans answer) Lease {
	if stateOf(ans.lease.word) != slotBusy {
		return ans.lease
	}
	h := holder{call: *call, claim: ans.claim, waited: ans.waited}
	if s.track {
		h.since = ans.at
	}
	return ans.lease.keep(s, h)
}

// refusal reports a decision that gave no lease, and returns its error.
func (g *Gate) refusal(ctx context.Context, s *settings, call *Call, ans answer) error {
	d := verdictDecisions[ans.verdict]
	if len(s.Observers) > 0 {
		g.emitDecision(s, call, d, ans.waited, ans.gauge)
	}
	if d == Canceled {
		return leftBecause(ctx)
	}
	if d != RejectedCaller { // it says nothing of the gate
		g.noticed.refusedAt(ans.at)
	}
	return s.rejected[d]
}

// turnAway decides a call whose context had ended before it arrived, here or at a
// later gate of its chain.
func (g *Gate) turnAway(ctx context.Context, s *settings, call *Call, waited time.Duration) error {
	return g.refuseLate(ctx, s, call, leaveVerdict(ctx), waited)
}

// refuseLate gives a call a decision that its arrival at the gate did not.
func (g *Gate) refuseLate(ctx context.Context, s *settings, call *Call, v admit.Verdict, waited time.Duration) error {
	now := clock()
	ans := answer{verdict: v, at: now, waited: waited}
	g.lock()
	g.machine.Count(now, ans.verdict)
	ans.gauge = g.machine.Gauge()
	g.unlock()
	return g.refusal(ctx, s, call, ans)
}

// enter brings one arrival before the machine and returns its verdict, after a
// wait if need be.
func (g *Gate) enter(ctx context.Context, s *settings, call *Call, a admit.Arrival, in *inbound) answer {
	keep := s.keep || a.Link || a.Cost > 1
	caller := s.callerOf(call, in)
	gone := ctx.Done() // before the lock: whatever ctx does in it, nothing is taken yet
	now := clock()
	if d, ok := ctx.Deadline(); ok {
		a.Deadline = onClock(now, d)
	}
	g.lockAt(now)
	v := g.arriveLocked(now, &a, call, caller)
	if v == admit.Granted && g.cluster != nil && g.overLocked(now) {
		g.machine.Retract(now, a.Claim)
		v = g.arriveLocked(now, &a, call, caller)
	}
	if v == admit.Queued {
		w := waitings.Get().(*waiting)
		*w = waiting{woken: make(chan struct{}, 1), gone: gone, keep: keep}
		w.Owner = w
		g.machine.Join(now, a, &w.Waiter)
		g.alarm.setLocked(g, now, w.Until())
		g.unlock()
		return g.wait(ctx, w, now, in)
	}
	ans := answer{verdict: v, at: now, gauge: g.machine.Gauge(), claim: a.Claim}
	if v == admit.Granted {
		ans.lease = g.grantLocked(a.Cost, keep)
		g.lend = a.Cost == 1 && !a.Link
	}
	g.unlock()
	return ans
}

// arriveLocked asks the machine about an arrival of a caller.
func (g *Gate) arriveLocked(now time.Time, a *admit.Arrival, call *Call, caller string) admit.Verdict {
	if call.Lane != "" {
		a.Lane = g.machine.Lane(call.Lane)
	}
	if call.Again {
		a.Lane = g.machine.Below(a.Lane)
	}
	if caller != "" {
		a.Caller = g.machine.Caller(caller)
	}
	return g.machine.Arrive(now, *a)
}

// grantLocked makes the lease of a call that the machine has let in.
func (g *Gate) grantLocked(cost int, keep bool) Lease {
	state := uint64(slotHeld)
	if keep {
		state = slotBusy
	}
	sl, word := g.slots.grantLocked(state, cost)
	if g.cluster != nil && g.cluster.fenced {
		sl.numbers = g.cluster.numberLocked(cost)
	}
	return Lease{sl, word}
}

// wait returns what became of a call in line. Three things race: a verdict, the
// gate's alarm (which gives one), and the end of ctx or of the caller's connection. The
// machine, under the lock, says who was first, and a verdict once given stands, with two
// exceptions: a grant whose caller has left meanwhile is handed on to the next in line,
// and so is one whose slot was lent for a time that is over.
func (g *Gate) wait(ctx context.Context, w *waiting, arrived time.Time, in *inbound) answer {
	end := in.await(g.settings.Load().intake(), w.woken, w.gone)
	switch end {
	case woken:
		if w.gone != nil && ctx.Err() != nil {
			g.leave(w, leaveVerdict(ctx))
		} else if in.gone() {
			g.leave(w, admit.Canceled)
		} else if g.cluster != nil && w.Verdict() == admit.Granted && g.cluster.ended() {
			g.leave(w, admit.Store)
		}
	case ctxEnded:
		g.leave(w, leaveVerdict(ctx))
	case hungUp:
		g.leave(w, admit.Canceled)
	}
	ans := answer{
		verdict: w.Verdict(), at: arrived.Add(w.Waited()), waited: w.Waited(),
		gauge: w.Gauge(), lease: w.lease, claim: w.Claim(),
	}
	if end == woken { // or who wakes it is yet to come
		*w = waiting{}
		waitings.Put(w)
	}
	return ans
}

// leave takes a call whose caller has left out of the line, or hands on the slot
// that it got in the same instant and may not use.
func (g *Gate) leave(w *waiting, v admit.Verdict) {
	now := clock()
	g.lock()
	defer g.unlock()
	if v == admit.Store {
		g.overLocked(now) // or the slot would go to the next in line, who may not use it either
	}
	if !g.machine.Leave(now, &w.Waiter, v) && w.Verdict() == admit.Granted {
		g.slots.closeLocked(w.lease.slot, w.lease.word)
		g.machine.Disown(now, &w.Waiter, v)
	}
}

// wake tells those who were decided so. It is called without the lock.
func wake(w *admit.Waiter) {
	for w != nil {
		next := w.Next() // read first: once told, the waiter is its owner's
		w.Owner.(*waiting).woken <- struct{}{}
		w = next
	}
}

// ended returns the error of a context that has ended, nil if it has not.
func (s *settings) ended(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case leaveVerdict(ctx) == admit.Deadline:
		return s.rejected[RejectedDeadline]
	}
	return leftBecause(ctx)
}

// leaveVerdict says what an ended context means: its deadline passed, which the
// caller is told, or the caller left.
func leaveVerdict(ctx context.Context) admit.Verdict {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return admit.Deadline
	}
	return admit.Canceled
}
