package forebay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/feed"
)

// Config says what a gate is. Only MaxInFlight has no default: no number is safe
// for a backend that we do not know. Every other field's zero value is the safe
// choice that its comment names.
type Config struct {
	// Name stands in refusals, events, metrics and logs: up to 64 letters,
	// digits and any of - _ . / : Empty means "gate".
	Name string

	// MaxInFlight, the concurrent limit, is how many units may run at once; a call
	// takes one unless its [Call.Cost] says otherwise. 1 to 1,048,575. Size it from what
	// the calls use up: a pool of 20 connections carries 12 to 16. With half of the right
	// number the backend idles while callers are refused; with twice, they queue inside
	// the backend, where nobody sees them. With a Limiter it is where that starts.
	MaxInFlight int

	// MaxWait is a call's patience in line, up to 24 h. 0 means refuse at once.
	// Tens of milliseconds smooth bursts: 100 ms is worth 14 % of goodput at full
	// load, half of it nearly as much. Seconds only make refusals late, and must
	// stay below every timeout in front.
	MaxWait time.Duration

	// MaxWaiting bounds the calls in line, up to 1,048,575. 0 with a MaxWait means as many
	// as leave within that, measured while the gate is full, and at least twice the limit in
	// force: half of that refuses ordinary bursts, double fills the line with calls that
	// time out. With 0 a call that has hardly a chance to be served within its patience is
	// refused on arrival as well, and a line that does not end is kept as short as the work
	// behind needs it: at twice the load about ten calls, at ten times four. A number given
	// is a promise, and then only length and patience refuse. Without MaxWait it must be 0.
	MaxWaiting int

	// Limiter moves the limit while the gate runs; each gate needs one of its own.
	// Nil: the limit stays as set. A gate with a limiter tracks (see Track) and
	// takes its lock for every call.
	Limiter Limiter

	// Cluster lends the gate its slots, so that MaxInFlight holds over every process
	// that shares it: a cluster.Cluster. The gate then has no slots of its own, and
	// while the cluster's store is away it goes on as the cluster's terms say. A call
	// that may not wait still waits for the store's answer if no slot is here, at most
	// 50 ms. Nil: this process alone. It does not go together with a Limiter.
	Cluster feed.Source

	// CancelLost ends the context of work behind [Do], [Func] and the handlers when
	// its lease is lost, with the cause [ErrLeaseLost]; see [Lease.Context]. Off: work
	// goes on, and the limit may be exceeded by it until it ends.
	CancelLost bool

	// Track keeps for every lease who holds it and since when: Holders, Held in
	// events, OldestHolder. It costs two clock reads a call, and so is off.
	Track bool

	// MaxHold is how long a lease may be held before an [EventOverdue] reports it,
	// once. The slot is never given away: work that overruns still runs. 0: no
	// watch. A gate with a MaxHold tracks, takes its lock for every call, and keeps a
	// timer while leases are out.
	MaxHold time.Duration

	// Observers are told of every decision and release. Nil: nobody is.
	Observers []Observer

	// Refusal says how refusals look in HTTP. Its zero value is a 503 (413 for
	// calls that can never fit) with a small JSON body and a Retry-After.
	Refusal Refusal

	// Intake sees to the bodies of requests that are refused or wait, and bounds what is
	// held of them; gates may share one. Nil: that of the process, with the defaults of
	// [IntakeConfig].
	Intake *Intake

	// LeaseInContext makes [Gate.Wrap] and [Groups.Wrap] put the lease into the
	// request's context, for [LeaseFrom] and so that the gate recognises a second
	// acquire by the same request. Without it a handler behind Wrap that acquires
	// the same gate again takes a second slot, and with a limit of 1 is refused. It
	// copies the request, and so is off.
	LeaseInContext bool

	// OnlyInRequests makes [Do] and [Func] run their function without a slot
	// outside HTTP requests: when the context carries no http.ServerContextKey, as
	// in a test that calls a handler without a server. Off: background work is gated
	// as well.
	OnlyInRequests bool

	// PerCaller bounds how much of the gate one caller may have. The zero value: all of it.
	PerCaller PerCaller

	// Lanes are the business processes that share the gate, at most 15, of different names:
	// who goes first, what is kept for whom, and what everybody gets in the end. A call
	// comes in by the one that [Call.Lane] or [Route] says. Nil: all calls are equal, first
	// in, first out. A gate with lanes takes its lock for every call.
	Lanes []Lane

	// Retries finds out which requests behind a handler come again, so that they go one lane
	// lower while others wait. Gates may share one. Nil: none do, as far as is known.
	Retries *Retries

	// Hold says until when a request behind a handler keeps its slot. The zero value is
	// until the handler returns. With it, or with Streams, a handler's writer is wrapped.
	Hold Hold

	// Streams says what becomes of the slot of a request that turns into a stream: an
	// upgrade to WebSocket, an event stream. The zero value keeps it until the handler
	// returns.
	Streams Streams

	// Upload says how the bodies of requests have to come: before the slot is asked for, at a
	// pace, within a time. The zero value asks nothing.
	Upload Upload

	// MaxRun is how long whoever calls [Do], or a function of [Func], waits for the work.
	// Then the work's context ends, the caller gets [ErrTimeout], and the slot is kept
	// until the work has really ended: it is in [Stats.StillRunning] until then. The work
	// runs in a goroutine of its own, which costs a microsecond. It says nothing of work
	// within a call that has its slot already: that slot might be given back before such
	// work ends. 0: as long as it takes.
	MaxRun time.Duration

	// Script receives every event of the admission core as a text script that
	// plays the run again exactly: for a bug report. The gate takes its lock for
	// every call while it is set; one writer serves one gate. Nil: none.
	Script io.Writer
}

const (
	maxUnits     = 1<<20 - 1 // far above any backend, and far within the core's int32
	maxName      = 64
	defaultName  = "gate"
	longestWait  = 24 * time.Hour
	longestHold  = 365 * 24 * time.Hour
	nameAlphabet = "letters, digits and any of - _ . / :"
)

// validate returns every mistake in c at once.
func (c *Config) validate() error {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("forebay: "+format, args...))
		}
	}
	wrong(!validName(c.Name), "Name is %q; it must be 1 to %d %s", c.Name, maxName, nameAlphabet)
	wrong(c.MaxInFlight < 1, "MaxInFlight is %d; it must be at least 1 (SetLimit(0) closes a gate)", c.MaxInFlight)
	wrong(c.MaxInFlight > maxUnits, "MaxInFlight is %d; it must be at most %d", c.MaxInFlight, maxUnits)
	wrong(c.MaxWait < 0, "MaxWait is %v; it must be 0 (refuse at once) or more", c.MaxWait)
	wrong(c.MaxWait > longestWait, "MaxWait is %v; it must be at most %v", c.MaxWait, longestWait)
	wrong(c.MaxWaiting < 0, "MaxWaiting is %d; it must be 0 (as many as leave within MaxWait) or more", c.MaxWaiting)
	wrong(c.MaxWaiting > maxUnits, "MaxWaiting is %d; it must be at most %d", c.MaxWaiting, maxUnits)
	wrong(c.MaxWaiting > 0 && c.MaxWait == 0,
		"MaxWaiting is %d without a MaxWait; set MaxWait, or leave MaxWaiting 0 to refuse at once", c.MaxWaiting)
	wrong(c.MaxHold < 0, "MaxHold is %v; it must be 0 (no watch) or more", c.MaxHold)
	wrong(c.MaxHold > longestHold, "MaxHold is %v; it must be at most %v", c.MaxHold, longestHold)
	wrong(c.Cluster != nil && c.Limiter != nil, "Limiter and Cluster are both set; a limit that others share is not one gate's to move")
	wrong(c.MaxRun < 0, "MaxRun is %v; it must be 0 (as long as it takes) or more", c.MaxRun)
	wrong(c.MaxRun > longestHold, "MaxRun is %v; it must be at most %v", c.MaxRun, longestHold)
	wrong(c.Hold >= holdKinds, "Hold is %d; it must be HoldHandler, HoldFirstByte or HoldUpstreamDone", c.Hold)
	for i, o := range c.Observers {
		wrong(o == nil, "Observers[%d] is nil; leave it out", i)
	}
	return errors.Join(slices.Concat(errs, c.Refusal.validate(), c.PerCaller.validate(), c.Streams.validate(), c.Upload.validate(), c.validateLanes())...)
}

func validName(s string) bool {
	if len(s) == 0 || len(s) > maxName {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("-_./:", r)
	})
}

// settings is a validated configuration with what follows from it. It is never
// changed, only replaced.
type settings struct {
	Config
	track bool // who holds what since when: two clock reads a call
	wants want // of requests
	keep  bool // leases remember their call, for Holders or for observers
	plain bool // a refusal needs no more than a count
	lends bool // calls need not pass the lock while the machine has nothing to decide

	rejected [decisions]*RejectedError
	pages    [decisions]page

	refusalLines []headerLine
}

func newSettings(g *Gate, c Config) *settings {
	s := &settings{Config: c}
	s.Observers = slices.Clone(c.Observers)
	s.track = c.Track || c.MaxHold > 0 || c.Limiter != nil
	isSeen := s.track || len(c.Observers) > 0 // observers are told whose lease ends
	s.keep = isSeen || c.PerCaller.tells() || len(c.Lanes) > 0
	s.wants = s.want(isSeen)
	s.plain = !s.keep && c.Script == nil
	// An observer is told figures of one instant, and a watchdog's timer must not
	// outlive the last lease: both need the lock.
	s.lends = len(c.Observers) == 0 && c.MaxHold == 0
	s.refusalLines = c.Refusal.lines()
	for d := RejectedBusy; d <= RejectedShed; d++ {
		s.rejected[d] = newRejectedError(g, d)
		s.pages[d] = newPage(g.name, d, &s.Config)
	}
	return s
}

func (s *settings) machine(panics *atomic.Uint64) admit.Config {
	c := admit.Config{
		Limit: s.MaxInFlight, MaxWait: s.MaxWait, MaxWaiting: s.MaxWaiting, Measure: s.track,
		Ledger:    s.Cluster != nil,
		PerCaller: s.PerCaller.MaxInFlight, MaxCallers: s.PerCaller.MaxCallers,
	}
	c.Fair = s.PerCaller.Fair
	for _, l := range s.Lanes {
		c.Lanes = append(c.Lanes, admit.LaneConfig(l))
	}
	if c.MaxCallers == 0 {
		c.MaxCallers = defaultMaxCallers
	}
	if s.Limiter != nil {
		c.Limiter = limiterPort{s.Limiter, panics, new(Observation)}
	}
	return c
}
