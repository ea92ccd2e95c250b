package forebay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/admit"
)

// Limiter moves a gate's limit while it runs; see [Config.Limiter]. The gate
// calls Observe under its lock for every change of what it shows, in order, with
// the time in it, and never otherwise: there is no tick. What it returns is in
// force at once, and after every observation the gate lets in whoever now fits. A
// limit that the end of a call lowers is lowered before that call's slot is handed
// on.
//
// A limiter is a function of its own state and of what it is told. It must not read
// a clock, block, call the gate, end its goroutine, or keep the pointer. What it
// returns is taken as at least 1 and at most 1,048,575: only [Gate.SetLimit] closes a
// gate, and a closed gate stays closed whatever the limiter wants. Bounds of its own
// belong inside it: a limiter that probes must know the limit that is really in
// force. A panic in it is contained, leaves the limit as it is, and is counted in
// [Stats.LimiterPanics].
//
// Each gate needs a limiter of its own, which then needs no lock.
type Limiter interface {
	// Observe is told one change and returns the limit that it wants, in units.
	Observe(o *Observation) (limit int)
}

// ObservationKind says what an [Observation] reports.
type ObservationKind uint8

// The kinds of observation.
const (
	ObservedChange ObservationKind = iota // the first of all; then configuration or limit was set from outside
	ObservedJoin                          // a call joined the line
	ObservedStart                         // a call got its slot, at once or out of the line
	ObservedFinish                        // a call gave its slot back; it is not handed on yet
	ObservedLeave                         // a call left the line without a slot, or never used the one it got
)

// Observation is one change of what a gate shows. Between two observations the
// gate shows what the earlier one said. While the gate is saturated InFlight is at
// the limit or somebody waits; refusals on arrival show in Offered alone.
type Observation struct {
	Kind     ObservationKind
	Now      time.Time
	InFlight int           // units that run, after the event
	Waiting  int           // calls in line, after the event
	Limit    int           // in force up to the event; of a change the new one; 0: closed
	Offered  uint64        // calls that have arrived so far, refused ones included
	Cost     int           // units of the call; 0 on a change
	Waited   time.Duration // of a start and a leave
	Held     time.Duration // of a finish
	Outcome  Outcome       // of a finish
	Deadline time.Time     // the caller's own; zero: none
}

// Outcome says how a call ended, for limiters that learn from it; see
// [Lease.ReleaseAs].
type Outcome uint8

// The outcomes. The zero value is OutcomeDone.
const (
	OutcomeDone       Outcome = iota // served: how long it held its slot says how the backend does
	OutcomeIgnored                   // says nothing about the backend (a cache hit, a bad request)
	OutcomeOverloaded                // the backend itself refused or timed out: it has too much
	OutcomeAborted                   // cut off: the caller left while it ran, or it panicked
)

var outcomes = [...]string{"done", "ignored", "overloaded", "aborted"}

// outcomeOf is that of work which came to its end under ctx: done, also after a
// deadline of its own, unless the caller has left.
func outcomeOf(ctx context.Context) Outcome {
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return OutcomeAborted
	}
	return OutcomeDone
}

// String returns the word for o in logs and metrics.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return "unknown"
}

// The machine's kinds and outcomes are the same, by number.
var (
	_ = [1]struct{}{}[int(ObservedLeave)-int(admit.Left)]
	_ = [1]struct{}{}[int(OutcomeAborted)-int(admit.Aborted)]
)

// limiterPort is a [Limiter] as the machine sees it. A panic in the limiter is
// contained: the limit stays as it was.
type limiterPort struct {
	limiter Limiter
	panics  *atomic.Uint64
	told    *Observation // used again each time: one made there would be on the heap
}

// Observe hands an observation of the machine's on, under the names of this
// package.
func (p limiterPort) Observe(o *admit.Observation) (limit int) {
	defer func() {
		if recover() != nil {
			p.panics.Add(1)
			limit = o.Limit
		}
	}()
	*p.told = Observation{
		Kind: ObservationKind(o.Kind), Now: o.Now,
		InFlight: o.InFlight, Waiting: o.Waiting, Limit: o.Limit, Offered: o.Offered,
		Cost: o.Cost, Waited: o.Waited, Held: o.Held,
		Outcome: Outcome(o.Outcome), Deadline: o.Deadline,
	}
	return min(maxUnits, p.limiter.Observe(p.told))
}
