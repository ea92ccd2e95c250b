// Package cluster makes one limit hold over many processes: MaxInFlight: 20 means twenty
// over all instances, always, and a call that meets no crowd pays nothing for it.
//
//	store, err := redisstore.Dial("redis://127.0.0.1:6379")
//	shared, err := cluster.New(cluster.Config{Store: store, Name: "shop"})
//	defer shared.Close(ctx) // gives every slot back
//	gate, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 20, Cluster: shared})
//
// Instances hold slots, calls do not. Each process has the gate that it would have had
// alone, with its line, its deadlines and its refusals; the cluster says how many slots
// the gate may use now, and for how long. A [Ledger] in a [Store], one for each gate,
// counts who holds how many. A gate asks it when calls find no slot, one exchange at a
// time: what is called for meanwhile goes with the next one. While calls wait elsewhere,
// slots go back as calls end, and the ledger hands them to whoever came first, wherever
// that is.
//
// # What it promises
//
// No more units run at once than the limit, by the instances' own clocks, while
// processes crash, messages are lost, late, repeated or out of order, the store restarts
// empty or fails over to a replica that missed something, and clocks jump: under these
// conditions.
//
//   - Work stops when its lease is lost (forebay.Config.CancelLost,
//     forebay.Lease.Context). Work that goes on regardless runs besides the limit
//     until it ends, and nothing else is let in for it meanwhile.
//   - The clocks of two machines run at speeds that differ by less than a tenth, and
//     the store's jumps ahead at most once within a lease.
//   - There is one store at a time. Two Redis primaries are two stores.
//   - While the store is away, [Closed] holds the limit always. [Share] holds it when
//     everybody is cut off: not when only some are, unless Terms.Withhold keeps it so,
//     nor against an instance that starts or wakes in the half second in which the
//     store comes back. [Open] holds nothing.
//   - After the limit is lowered, what runs goes on, and nothing starts until it fits;
//     instances that have not heard of it yet go on for a moment, and at most for a
//     lease.
//
// Slots of an instance that died are lent again within 1.6 leases and a second, as soon
// as somebody asks; those of one that leaves, at once. Calls are served in the order in
// which they came, over all instances, to within one exchange; one that costs more than
// is free is not overtaken. While the store is slow, instances keep their fair share for
// calls of their own. No call waits longer than its patience, and one that may not wait
// is answered within 50 ms. Who waits asks nothing: a heartbeat each quarter of a lease
// is all that reaches the store.
//
// # What it does not do
//
// A process that stands still in the middle of a call, or a handler that ignores its
// context, cannot be stopped from outside: only the resource can refuse it, by the
// numbers that Terms.Fenced gives (forebay.Lease.Fences). Nothing here survives a store
// that answers from two sides at once. And nothing is written to a log: Config.Changed
// is told when a gate goes on differently.
package cluster
