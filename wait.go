package forebay

import (
	"context"
	"errors"
	"time"

	"example.com/forebay/internal/admit"
)

// answer is what became of one call at one gate.
type answer struct {
	verdict admit.Verdict
	at      time.Time // when it was given
	waited  time.Duration
	gauge   admit.Gauge
	lease   Lease // if granted
}

// waiting is the shell's side of a [admit.Waiter].
type waiting struct {
	woken chan struct{}
	cost  int
	keep  bool
	lease Lease
}

// grantLocked gives the waiter its slot in the very step in which the machine
// lets it in.
func (w *waiting) grantLocked(g *Gate) { w.lease = g.grantLocked(w.cost, w.keep) }

// acquireSlow asks the machine, waits if it says so, and reports the decision.
func (g *Gate) acquireSlow(ctx context.Context, s *settings, call *Call, a admit.Arrival) (Lease, error) {
	ans := g.enter(ctx, s, a)
	if ans.verdict != admit.Granted {
		return Lease{}, g.refusal(ctx, s, call, ans)
	}
	l := g.keepGranted(s, call, ans)
	if len(s.Observers) > 0 {
		g.emitDecision(s, call, Accepted, ans.waited, ans.gauge)
	}
	return l, nil
}

// keepGranted notes who got the lease, if it is one of which something is kept.
func (g *Gate) keepGranted(s *settings, call *Call, ans answer) Lease {
	if stateOf(ans.lease.word) != slotBusy {
		return ans.lease
	}
	h := holder{call: *call, cost: call.cost(), waited: ans.waited}
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
	g.noticed.refusedAt(ans.at)
	return s.rejected[d]
}

// turnAway decides a call whose context had ended before it arrived.
func (g *Gate) turnAway(ctx context.Context, s *settings, call *Call) error {
	now := time.Now()
	ans := answer{verdict: leaveVerdict(ctx), at: now}
	g.lock()
	g.machine.Count(now, ans.verdict)
	ans.gauge = g.machine.Gauge()
	g.unlock()
	return g.refusal(ctx, s, call, ans)
}

// enter brings one arrival before the machine and returns its verdict, after a
// wait if need be.
func (g *Gate) enter(ctx context.Context, s *settings, a admit.Arrival) answer {
	if deadline, ok := ctx.Deadline(); ok {
		a.Deadline = deadline
	}
	keep := s.keep || a.Link || a.Cost > 1
	now := time.Now()
	g.lock()
	v, w := g.machine.Arrive(now, a)
	ans := answer{verdict: v, at: now, gauge: g.machine.Gauge()}
	var mine *waiting
	switch v {
	case admit.Granted:
		ans.lease = g.grantLocked(a.Cost, keep)
		g.lend = a.Cost == 1 && !a.Link
	case admit.Queued:
		mine = &waiting{woken: make(chan struct{}, 1), cost: a.Cost, keep: keep}
		w.Owner = mine
	}
	g.unlock()
	if v != admit.Queued {
		return ans
	}
	g.wait(ctx, w, mine, w.Until().Sub(now))
	return answer{
		verdict: w.Verdict(), at: now.Add(w.Waited()), waited: w.Waited(),
		gauge: w.Gauge(), lease: mine.lease,
	}
}

// grantLocked makes the lease of a call that the machine has let in.
func (g *Gate) grantLocked(cost int, keep bool) Lease {
	state := uint64(slotHeld)
	if keep {
		state = slotBusy
	}
	sl, word := g.slots.grantLocked(state, cost)
	return Lease{sl, word}
}

// wait returns once w has its verdict. Three things race; the machine, under the
// lock, says who was first, and a verdict once given stands, with one exception:
// a grant whose caller has left meanwhile is handed on to the next in line.
// Channel and timer are fresh for each wait: pooled ones would carry a
// testing/synctest bubble's into the world outside it.
func (g *Gate) wait(ctx context.Context, w *admit.Waiter, mine *waiting, patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-mine.woken:
	case <-timer.C:
		g.lock()
		g.machine.Expire(time.Now(), w)
		g.unlock()
	case <-ctx.Done():
		g.lock()
		g.machine.Leave(time.Now(), w, leaveVerdict(ctx))
		g.unlock()
	}
	if w.Verdict() == admit.Granted && ctx.Err() != nil {
		now := time.Now()
		g.lock()
		g.slots.closeLocked(mine.lease.slot, mine.lease.word)
		g.machine.Disown(now, w, leaveVerdict(ctx))
		g.unlock()
	}
}

// wake tells the decided waiters that they are.
func wake(w *admit.Waiter) {
	for w != nil {
		next := w.Next() // read first: once told, the waiter is its owner's
		w.Owner.(*waiting).woken <- struct{}{}
		w = next
	}
}

// leaveVerdict says what an ended context means: its deadline passed, which the
// caller is told, or the caller left.
func leaveVerdict(ctx context.Context) admit.Verdict {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return admit.Deadline
	}
	return admit.Canceled
}
