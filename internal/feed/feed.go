// Package feed is the seam between a gate and whoever lends it its slots: package
// cluster, from a ledger that many processes share. The gate decides as it always
// does, within the slots that it has been lent at this moment.
package feed

import "time"

// Source lends gates their slots. A cluster is one.
type Source interface {
	// Attach is called once for each gate, as it is made. The gate has no slots
	// until the source lends it some.
	Attach(g Gate) (Supplier, error)
}

// Supplier is a source's side of one gate. The gate calls it outside its lock; no
// method blocks.
type Supplier interface {
	// Poke says that there is something to say to the ledger: calls wait that have
	// no slot, or slots are to go back.
	Poke()
	// SetLimit says that the limit was set by hand, for the whole cluster and for as
	// long as lasts, 0: until another word. Below 0 the configured limit is in force
	// again.
	SetLimit(n int, lasts time.Duration)
	// Configured says that the gate has another configuration. A lower limit is in
	// force at once, a higher one when SetLimit says so.
	Configured(limit int)
	// Stats returns what is known of the gate over the whole cluster. It may ask the
	// store, for at most a moment, and else says what was last known.
	Stats() Stats
}

// Gate is a gate's side of the loan. Every method takes the gate's lock, and none
// waits for anything else; all are safe for concurrent use.
type Gate interface {
	// Name returns the gate's name.
	Name() string
	// Limit returns the configured limit.
	Limit() int
	// Fenced makes the gate number its slots: each unit in flight holds one that was
	// lent by Lend. It is called once, before anything is lent.
	Fenced()

	// Look returns what the ledger is to be told, and hands over the units that were
	// given back since the last Look. Calls in line are numbered as they join; Arrived
	// are those above after, at most maxRuns runs of them.
	Look(after uint64, maxRuns int) View
	// Lend adds n units, numbered by slots if the gate is fenced, and lets in whoever
	// fits.
	Lend(n int, slots []Slot)
	// Take takes back up to n units that nobody uses.
	Take(n int) (taken int, slots []Slot)
	// Return says whether units go back to the ledger as calls end (others wait for
	// them elsewhere), or stay for the next call here.
	Return(on bool)
	// Answered says that the ledger has heard of all calls up to number last: of
	// those, the ones that wait for that answer only are refused.
	Answered(last uint64)
	// Renumber gives every call in line a new number: the ledger has forgotten them.
	Renumber()

	// Renew says until when the slots may be used: by the monotonic clock and by the
	// wall clock, whichever ends first. From then on nobody starts, and work that asked
	// is told that its slot is lost; the slots stay here until Lapse, so that a later
	// Renew lets them be used again.
	Renew(until time.Time)
	// Lapse withdraws every slot at once. Work that runs goes on without one, and is
	// told so if it asked; what is lent next goes to it first.
	Lapse()
	// Alone says how to go on without the ledger, from Alone to the next Together: with
	// slots that no time bounds, unless Renew gives one.
	Alone(p Alone)
	// Together ends Alone: slots come from the ledger again, those included that were
	// lent meanwhile. Renew comes before, or nobody starts until it does.
	Together()

	// SetLimit puts the cluster's limit in force here; 0 closes.
	SetLimit(n int)
}

// Alone is how a gate goes on while the ledger is away.
type Alone struct {
	Refuse bool // everybody is refused
	Slots  int  // else: the units that may run here
}

// View is a gate as the ledger is to know it.
type View struct {
	Slots    int    // lent, of which some may be idle
	InFlight int    // units that run, with or without a slot
	Back     int    // units handed over
	BackOf   []Slot // which, if the gate is fenced
	Waiting  int    // calls in line
	Arrived  []Run  // calls in line above after, in order
	Standing []Span // calls in line up to after, in order; of too many spans the last is too long
	Peak     int    // the most units that ran since the last Look, or about that
	Lapses   uint64 // how often Lapse was called
	Oldest   time.Duration
}

// Run is calls in line with consecutive numbers, and of the same cost.
type Run struct {
	First uint64
	Calls int
	Cost  int
	Ask   bool // they wait for the ledger's answer only, and leave no trace if it is no
}

// Span is consecutive numbers, both ends included.
type Span struct{ First, Last uint64 }

// Slot is a numbered unit of the cluster's limit. Of two holders of one number the
// one with the higher Fence came later.
type Slot struct {
	Number int
	Fence  uint64
}

// Stats is a gate over the whole cluster.
type Stats struct {
	Mode       string        // "normal", "learning", "share", "open", "closed" or "joining"
	Epoch      uint64        // of the ledger's state; 0: none heard of yet
	Age        time.Duration // of what follows, where it is from others
	Limit      int           // in force; 0: closed
	Configured []int         // the limits that live instances are configured with, if they differ
	Overridden bool          // the limit was set by hand
	Held       int           // units lent to all instances
	InUse      int           // of which run
	Over       int           // units lent above the limit, after a shrink
	Waiting    int           // calls in line anywhere
	Reclaimed  uint64        // units taken from instances that died, since the epoch began
	Lost       uint64        // units that instances held and the ledger knew nothing of
	Lapses     uint64        // how often this instance lost its slots
	Error      string        // of the last exchange, empty if it went well
	Exchanges  uint64        // of this instance
	Failures   uint64        // exchanges of this instance that failed
	Learning   time.Duration // until the ledger grants again; 0: it does
	Instances  []Instance
}

// Instance is one process that shares the limit.
type Instance struct {
	ID      string
	Host    string
	Self    bool
	Held    int
	InUse   int
	Waiting int
	Lease   time.Duration // what is left of its lease
	Seen    time.Duration // since it last spoke
	Oldest  time.Duration // how long its oldest call runs; 0: not known
	Limit   int           // it is configured with
}
