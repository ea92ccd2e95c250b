package cluster

import (
	"time"

	"example.com/forebay/internal/feed"
)

// Run is calls that joined the line of an instance one after the other, and cost the
// same.
type Run = feed.Run

// Span is consecutive numbers of calls in the line of an instance, both ends included.
type Span = feed.Span

// Slot is a numbered unit of the limit, with its fence.
type Slot = feed.Slot

// Request is what one instance tells the ledger of one gate, and asks of it. All
// counts are totals, so that a request that is lost, repeated or late changes nothing.
type Request struct {
	Key      string // of the ledger: [KeyOf]
	Instance string // unique for each process and gate, without spaces
	Host     string // what people call the instance
	Number   uint64 // of this request; of two, the ledger follows the later

	Epoch    uint64 // of the figures below; 0: none heard of yet
	Granted  uint64 // units that the instance has heard of being lent to it, in Epoch
	Returned uint64 // units that it has given back, in Epoch; of a fenced gate Slots says so
	// Claim is the units that are surely still the instance's own if the ledger has lost
	// Epoch. While it learns, a later request of an instance that it knows already may
	// raise what is held by it to Claim: units that were lent just before the loss, and
	// of which the instance heard as its claim was on the way.
	Claim int
	Slots []Slot // of a fenced gate: what it holds; Claim of them are claimed

	Arrived  []Run  // calls that joined the line since the ledger last heard of some
	Standing []Span // calls that it has heard of and that still stand in line
	Waiting  int    // calls in line
	InUse    int    // units that run
	Oldest   time.Duration
	// Spare is units that run without being lent: what the instance used while it was cut
	// off, or had lost. They are lent first of all, whoever waits: they run already.
	Spare int

	Limit    int      // configured
	Override Override // the latest that the instance knows of
	Lease    time.Duration
	// Withhold is for how long the instance may use its share once it is cut off, and the
	// others may not; 0: they may. Who has one speaks as often as one that holds.
	Withhold time.Duration
	MinShare int
	// Contact is Reply.Clock of the latest answer that the instance heard, in Epoch: it
	// uses nothing but what it is lent, and begins with its share 1.6 leases after that
	// answer at the earliest. 0: it uses its share, or runs what it is not lent. Below 0: it
	// has no share before it hears of one. Share is the most that it may use by itself.
	// Both matter to Withhold only.
	Contact int64
	Share   int
	Fenced  bool
	Leaving bool // the last request of the instance: what it has not heard of is not its own
}

// Override is a limit that was set by hand. Of two, the one with the higher version
// is in force; of the same version, the lower limit.
type Override struct {
	Version uint64
	Limit   int // -1: the configured one is in force again
	// For is what is left of it, by the store's wall clock; then Limit is -1 in the same
	// version, everywhere, whatever became of who set it. 0: it stays.
	For time.Duration
}

// Reply is the ledger's answer. What the instance holds is Granted - Returned, and what
// it gave back after it sent the request is still to be taken off. Where that is not
// what it believed to hold, units were lent to it or lost. An instance that the ledger
// did not know, or had given up, starts at any number, the same for both.
type Reply struct {
	Epoch    uint64
	Granted  uint64 // units lent to the instance so far, in Epoch
	Returned uint64 // units taken back from it so far, in Epoch
	Slots    []Slot // of a fenced gate: all that it holds
	Heard    uint64 // the highest number of a call that the ledger has heard of
	Queued   int    // calls of the instance that stand in the ledger's line
	Lost     int    // units of Claim, or held in Epoch, of which the ledger knows nothing

	Limit     int // in force
	Override  Override
	Held      int           // units lent to all instances
	InUse     int           // units that run anywhere, as last told
	Waiting   int           // calls in line anywhere, as last told
	Instances int           // that spoke within the last membership
	Share     int           // units that the instance may use once it is cut off; too many while Learning
	Clock     int64         // of the ledger, above 0: for Request.Contact
	Contended bool          // calls of others wait, or more is lent than the limit
	Learning  time.Duration // until the ledger lends again; 0: it does
	Reclaimed uint64        // units taken from instances that died, in Epoch
	LostTotal uint64        // of all instances, in Epoch
}

// State is the ledger of one gate as [Store.Stats] shows it.
type State struct {
	Epoch     uint64
	Limit     int
	Override  Override
	Held      int
	Queued    int
	Learning  time.Duration
	Reclaimed uint64
	LostTotal uint64
	Members   []Member
}

// Member is one instance in a [State].
type Member struct {
	ID, Host string
	Held     int
	InUse    int
	Waiting  int
	Limit    int           // configured
	Oldest   time.Duration // as last told
	Seen     time.Duration // since it last spoke
	Lease    time.Duration // what is left of its lease; below 0: its units are reclaimed next
}
