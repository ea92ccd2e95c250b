package cluster

import "time"

// Policy says how a gate goes on once the store has been away for a lease.
type Policy uint8

// The policies. The zero value is Share.
const (
	// Share lets each instance use its share of the limit: the limit divided by the
	// number of instances last known, rounded down, and at least Terms.MinShare. Who has
	// not heard of any ledger yet knows of no others, and has MinShare. Shares are used a
	// lease after the store was first missed, when nobody can use the limit otherwise, and
	// until a moment after it is back, when all have heard so. If everybody is cut off
	// the limit holds; an instance that was idle notices as it is first needed.
	Share Policy = iota
	// Closed refuses everybody with forebay.RejectedStore. The limit always holds.
	Closed
	// Open lets each instance use the whole limit by itself.
	Open
)

// Terms are what a gate's loan is subject to.
type Terms struct {
	// WhenAway says how the gate goes on when the store is away. Zero: Share.
	WhenAway Policy
	// MinShare is the least that Share leaves to an instance. 0: nothing is added, so
	// a limit of 3 on five instances leaves nobody anything, which is Closed.
	MinShare int
	// Withhold makes the ledger keep the share of an instance that it hears nothing of
	// from the others for that long, and the instance use it no longer than that and not
	// before 1.65 leases, so that the limit also holds when only some are cut off. Calls
	// of others that began before the instance was missed, and take 0.4 leases more, come
	// on top until they end: never more than the shares of those that are cut off. A
	// ledger that is lost meanwhile withholds nothing. 0: nothing is withheld, and the
	// limit may be exceeded by the shares of those that are cut off. A change is in force
	// once the ledger has heard of it.
	Withhold time.Duration
	// IdleHold is how long a slot that nobody uses here stays for the next call,
	// while nobody misses it. 0: 50 ms. Negative: it goes back at once.
	IdleHold time.Duration
	// Fenced numbers the slots: see forebay.Lease.Fences.
	Fenced bool
}

// Config says what a cluster is.
type Config struct {
	// Store keeps the ledgers. Required.
	Store Store
	// Name keeps clusters that use one store apart: the prefix of their keys. Empty:
	// "forebay".
	Name string
	// Host is what people call this process. Empty: the host's name.
	Host string
	// Lease is for how long an instance may use its slots after it last heard from
	// the store. Slots of an instance that died are lent again within 1.6 × Lease + 1 s.
	// 0: 2 s. At half of it a busy machine loses slots that it could have kept; at
	// double a crash costs capacity for twice as long.
	Lease time.Duration
	// Terms of every gate that has none of its own; see [Cluster.With].
	Terms Terms
	// Changed is told how gates go on from now on: for a log, a line each. Calls come
	// one at a time, from a goroutine that does nothing else; it must return. Nil: nobody
	// is told.
	Changed func(Change)
}

// Change says that a gate goes on differently from now on.
type Change struct {
	Gate string
	// Mode is as in forebay.ClusterStats: "normal", "learning", "share", "open",
	// "closed" or "joining". Was is the one before, or the same: then the store went
	// away, or is back, before the slots had ended.
	Mode, Was string
	// Away reports whether the store is, and Error says why.
	Away  bool
	Error string
	Epoch uint64 // of the ledger, as last heard
}
