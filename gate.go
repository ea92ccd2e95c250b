package forebay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/admit"
)

// Gate admits a bounded number of calls, lets a bounded number wait a bounded
// time, and refuses the others at once. Make one with [New], the zero value is not
// usable; it is safe for concurrent use, has nothing to close, keeps no goroutine,
// and a timer only while somebody waits or [Config.MaxHold] watches.
type Gate struct {
	name     string
	settings atomic.Pointer[settings]

	slots   slots
	refuses atomic.Uint32                 // the verdict that ordinary arrivals meet at once; 0: ask the machine
	refused [admit.Verdicts]atomic.Uint64 // refusals counted without the lock

	inContext atomic.Bool // some context carries a lease of this gate
	stale     atomic.Uint64
	noticed   notice

	overdue        atomic.Uint64 // leases reported
	late           atomic.Int64  // leases whose callers were told that time is up
	observerPanics atomic.Uint64
	limiterPanics  atomic.Uint64
	scriptErrors   atomic.Uint64

	cluster *clustered // nil: this process alone

	mu      sync.Mutex     // guards what follows
	missed  uint64         // of the refusals without the lock, those that the machine knows of
	alarm   alarm          // for the line
	watch   alarm          // for overdue leases
	machine *admit.Machine // the truth, unless its room is lent
	lend    bool           // an ordinary call was admitted: lend the room, more are likely
	drain   *drain         // nil: nobody waits for the end of one
	script  *script
}

// Call says who asks. The zero value is a call of cost 1 about which nothing is
// known.
type Call struct {
	// Route is the pattern that the call came in by, never the concrete path:
	// events and metrics are kept by it.
	Route string
	// RequestID is what the caller's logs call this request.
	RequestID string
	// RemoteIP is the caller's address.
	RemoteIP string
	// Caller is who calls, for [Config.PerCaller]; what is beyond 128 bytes does not count.
	// Empty: the request says so, or the address does. Calls of which neither is known have
	// no bound.
	Caller string
	// Cost is how many units of the gate the call takes; of a chain, of every gate.
	// 0 means 1. A cost above [Config.MaxInFlight], and above the limit in force if
	// that is higher, is refused as too large; below 0 it panics: clamp what you
	// compute from a request.
	Cost int
	// Lane names one of [Config.Lanes]; of a chain, of every gate that has it. Empty, or a
	// name that the gate does not know: the call has none, and goes after all that have.
	// Take it from your own code or routes, never from what a request says.
	Lane string
	// Again says that the call was refused before. While others wait it comes in one rank
	// lower, so that calls that come first are not pushed out by those that come again.
	Again bool
}

// oneUnit is what an ordinary call takes.
var oneUnit = admit.Claim{Cost: 1}

func (c *Call) cost() int {
	if c.Cost < 0 {
		panic(fmt.Sprintf("forebay: Cost is %d; it must be 0 (meaning 1) or more", c.Cost))
	}
	return max(1, c.Cost)
}

// New returns a gate, or every mistake in the configuration at once.
func New(c Config) (*Gate, error) {
	if c.Name == "" {
		c.Name = defaultName
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	g := &Gate{name: c.Name}
	s := newSettings(g, c)
	g.settings.Store(s)
	g.slots.gate = g
	g.alarm.ring, g.watch.ring = expireDue, reportOverdue
	g.machine = admit.New(clock(), s.machine(&g.limiterPanics))
	g.openScript(c.Script)
	g.slots.growLocked() // nobody else has the gate yet
	g.lend = true
	if c.Cluster != nil {
		if err := g.attach(c.Cluster); err != nil {
			return nil, err
		}
		return g, nil
	}
	g.settleLocked()
	return g, nil
}

// Name returns the gate's name.
func (g *Gate) Name() string { return g.name }

// Acquire returns a lease, or why there is none: a [*RejectedError], or, when
// the caller left, an error that is [context.Canceled] and the context's cause.
// It waits in line for at most MaxWait and no longer than ctx lasts. A context
// that has ended never gets a lease, also if it ends as the slot comes. Give the
// lease back with [Lease.Release].
//
// If ctx already carries a live lease of this gate, the call is part of the one
// that holds it: it gets a lease that does nothing, and counts as nothing.
func (g *Gate) Acquire(ctx context.Context, call Call) (Lease, error) {
	return g.acquire(ctx, call, nil)
}

// acquire is Acquire for a request, which is looked after while it waits; nil: there is
// none.
func (g *Gate) acquire(ctx context.Context, call Call, in *inbound) (Lease, error) {
	s := g.settings.Load()
	if g.inContext.Load() && holds(ctx, g) {
		return Lease{}, s.ended(ctx)
	}
	if ctx.Err() != nil {
		return Lease{}, g.turnAway(ctx, s, &call, 0)
	}
	if l := g.fast(s, &call); l.slot != nil {
		return l, nil
	}
	if v := g.refusesNow(s, &call); v != admit.Queued {
		return Lease{}, s.rejected[verdictDecisions[v]]
	}
	return g.acquireSlow(ctx, s, &call, admit.Arrival{Claim: admit.Claim{Cost: call.cost()}}, in)
}

// TryAcquire returns a lease if the call can run at once, past nobody in line. Where
// a cluster lends slots and none is here, it asks for one and waits for the answer,
// at most 50 ms. Why not is in the event and the counters. It has no context, and so
// does not see a lease that the call holds already.
func (g *Gate) TryAcquire(call Call) (Lease, bool) {
	s := g.settings.Load()
	if l := g.fast(s, &call); l.slot != nil {
		return l, true
	}
	if g.refusesNow(s, &call) != admit.Queued {
		return Lease{}, false
	}
	l, err := g.acquireSlow(context.Background(), s, &call, admit.Arrival{Claim: admit.Claim{Cost: call.cost()}, NoWait: true}, nil)
	return l, err == nil
}

// fast admits an ordinary call into a slot that is lent, without the lock; the
// zero lease if there is none. Only a gate that tracks does more than claim it.
func (g *Gate) fast(s *settings, call *Call) Lease {
	if uint(call.Cost) > 1 {
		return Lease{}
	}
	state := uint64(slotHeld)
	if s.keep {
		state = slotBusy
	}
	sl, word := g.slots.find(state)
	if sl == nil && g.slots.open.Load() != 0 {
		g.mu.Lock()
		sl, word = g.slots.moreLocked(state)
		g.mu.Unlock()
	}
	if sl == nil {
		return Lease{}
	}
	return g.claimed(s, call, sl, word)
}

// claimed is the second look of a call that has claimed a lent slot.
func (g *Gate) claimed(s *settings, call *Call, sl *slot, word uint64) Lease {
	if (g.slots.open.Load() == 0 || g.cluster != nil && g.cluster.ended()) && !g.confirm(sl, word) {
		return Lease{}
	}
	if s.keep {
		return Lease{sl, word}.keep(s, holder{call: *call, claim: oneUnit})
	}
	return Lease{sl, word}
}

// confirm decides about a slot that was claimed while the machine took its room
// back, or once the time was over for which it was lent. If the machine has seen the
// claim it stands, unless that time is over. If not, the slot is one that
// was given back after the machine's pass, so the claim came behind whatever the
// machine has decided since: the release is the machine's, and the caller goes to
// the line like everybody else.
func (g *Gate) confirm(sl *slot, word uint64) bool {
	now := clock()
	g.lock()
	defer g.unlock()
	over := g.cluster != nil && g.overLocked(now)
	if sl.seen == generationOf(word) {
		if !over {
			return true
		}
		g.slots.closeLocked(sl, word)
		g.machine.Retract(now, oneUnit)
		return false
	}
	sl.seen = generationOf(word)
	g.slots.closeLocked(sl, word)
	g.machine.Release(now, oneUnit, admit.End{})
	return false
}

// refusesNow says whether a call is refused without a look at the line, which
// goes for ordinary calls of gates that nobody watches, and counts it; Queued if
// the machine has to be asked.
func (g *Gate) refusesNow(s *settings, call *Call) admit.Verdict {
	v := admit.Verdict(g.refuses.Load())
	if v != admit.Queued && s.plain && uint(call.Cost) <= 1 {
		g.refused[v].Add(1)
		return v
	}
	return admit.Queued
}

// lock takes the gate's lock, and its counting back to the machine.
func (g *Gate) lock() {
	g.mu.Lock()
	if loan, ok := g.slots.collectLocked(); ok {
		g.machine.Collect(loan)
	}
	if n := g.refused[admit.Busy].Load(); n != g.missed {
		g.machine.Missed(n - g.missed)
		g.missed = n
	}
}

// lockAt is lock for whoever will let calls in. A lent slot's time is looked at here,
// so that nobody is let in who would have to go again, and by each call once more when
// it has got its slot: only then it is known that it did not stand still in between.
func (g *Gate) lockAt(now time.Time) {
	g.lock()
	if c := g.cluster; c != nil && !c.over && c.term.Load().passed(now) {
		g.endTermLocked(now)
	}
}

// unlock hands slots to whom the machine let in, lends its room if it has nothing
// to decide, gives up the lock, and wakes whom it decided.
func (g *Gate) unlock() {
	m := g.machine
	decided := m.Decided()
	for w := decided; w != nil; w = w.Next() {
		if w.Verdict() == admit.Granted {
			w.Owner.(*waiting).grantLocked(g)
		}
	}
	if m.Waiting() == 0 && g.alarm.set != nil {
		g.alarm.offLocked(clock())
	}
	if m.Calls() == 0 && g.watch.set != nil {
		g.watch.offLocked(clock())
	}
	g.settleLocked()
	script := g.script
	if script != nil && script.collectLocked() {
		g.scriptErrors.Add(1)
	}
	var told notices
	if g.cluster != nil {
		told = g.noticesLocked()
	}
	g.mu.Unlock()
	wake(decided)
	told.deliver()
	if script != nil {
		g.flush(script)
	}
}

// settleLocked publishes what callers may know without the lock: that there are
// slots for them, or that they are refused. It also ends a drain that has nobody
// left to wait for.
func (g *Gate) settleLocked() {
	var refuses admit.Verdict
	if room, ok := g.machine.Lend(); ok {
		if g.lend && g.settings.Load().lends && (g.cluster == nil || !g.cluster.fenced) {
			g.slots.lendLocked(room)
		}
	} else {
		refuses, _ = g.machine.Refuses()
	}
	g.lend = false
	if g.refuses.Load() != uint32(refuses) {
		g.refuses.Store(uint32(refuses))
	}
	if g.machine.Calls() == 0 {
		g.endDrainLocked(false)
	}
}

func (g *Gate) emitDecision(s *settings, call *Call, d Decision, waited time.Duration, at admit.Gauge) {
	g.emit(s, Event{
		Kind: EventDecided, Decision: d, Waited: waited,
		Route: call.Route, RequestID: call.RequestID, RemoteIP: call.RemoteIP, Cost: call.cost(),
		Lane:     s.laneOf(call),
		InFlight: int(at.InFlight), Waiting: int(at.Waiting), Limit: int(at.Limit),
	})
}
