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
	// MinShare is the least that Share leaves to an instance, up to 1,048,575. 0: nothing is
	// added, so a limit of 3 on five instances leaves nobody anything, which is Closed.
	// Times the number of instances it should stay within the limit, or that is exceeded.
	MinShare int
	// Withhold makes the ledger keep the share of an instance that it hears nothing of
	// from the others for that long, and the instance use it no longer than that and not
	// before 1.65 leases, so that the limit also holds when only some are cut off. Calls
	// of others that began before the instance was missed, and take 0.4 leases more, come
	// on top until they end: never more than the shares of those that are cut off. A
	// ledger that is lost meanwhile withholds nothing. 0: nothing is withheld, and the
	// limit may be exceeded by the shares of those that are cut off. Else at least a lease,
	// up to 24 h: the less, the sooner those that are cut off stand still; the more, the
	// longer the share of one that crashed is nobody's. A change is in force once the ledger
	// has heard of it.
	Withhold time.Duration
	// IdleHold is how long a slot that nobody uses here stays for the next call,
	// while nobody misses it; up to a minute. 0: 50 ms. Negative: it goes back at once.
	// At half, calls that come one by one ask the store more often; at double, others
	// are shown slots as lent that nobody uses, until they ask for them.
	IdleHold time.Duration
	// Fenced numbers the slots: see forebay.Lease.Fences. The gate then takes its lock for
	// every call, and so it is off.
	Fenced bool
}

// Config says what a cluster is.
type Config struct {
	// Store keeps the ledgers. Required.
	Store Store
	// Name keeps clusters that use one store apart: the prefix of their keys, up to 64
	// letters, digits and any of - _ . / : Empty: "forebay".
	Name string
	// Host is what people call this process, up to 255 printable characters. Empty: the
	// host's name.
	Host string
	// Lease is for how long an instance may use its slots after it last heard from
	// the store; 200 ms to 10 min. Slots of an instance that died are lent again within
	// 1.6 × Lease + 1 s. 0: 2 s. At half of it a busy machine loses slots that it could
	// have kept; at double a crash costs capacity for twice as long.
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
