package main

import "fmt"

// clusterSuite compares one limit over many instances with what else does that with
// Redis.
var clusterSuite = &suite{
	name: "cluster", making: "bench-cluster", document: "cluster-performance.md", title: "Performance of a cluster",
	about: `All figures are of one run: a Redis server of
its own, and everything else in one process, in rounds that take each contender in turn (A B C A B C …), so that noise
of the machine hits all alike. A figure is the median of its rounds; a ratio is taken within a round, and is the median
of those. Each instance has connections of its own. Ratios carry over to other machines, microseconds do not.

The rivals are in ` + "`bench/rivals`" + `, each through rueidis, through a pool of go-redis and, but for redsync, through
go-redis' AutoPipeline, at the settings that were fastest here:

- token list: Frappe's ` + "`concurrent_limit`" + `: EXISTS, BLPOP, LPUSH; whoever waits has a connection.
- lease set: a sorted set of holders, one script to acquire and ZREM to release; who finds no room asks again after 5 to
  15 ms.
- counter: one script around INCR and PEXPIRE, and DECR to release: the least that a script for each request can do, and
  nobody knows whose the slots are. It asks again as the lease set does.
- redsync: a mutex for each slot, of which a caller tries two and asks again.

What all of them do when something fails, make chaos shows.`,
	sections: []func(effort) (*section, error){
		cachedSection, uncachedSection(1), uncachedSection(16), uncachedSection(256),
		contendedSection, waitingSection, wakeSection, recallSection,
	},
	modules: []string{
		"github.com/redis/rueidis", "github.com/redis/go-redis/v9", "github.com/go-redsync/redsync/v4",
	},
	peer: func() string { return "Redis " + lab().Info("server")["redis_version"] },
	work: func(e effort) string {
		return fmt.Sprintf("%d rounds of the loops, %d of those who wait, %d of the others", e.loopRounds, e.waitingRounds, e.storeRounds)
	},
	limits: []string{
		"Server and clients share two cores and the loopback interface. With a network between them a round trip costs more, and what needs fewer of them gains.",
		"Processor time of Redis is that of its process, system calls included; the time of a command is what it says of itself.",
		"The rivals do less: none of them stays within its limit when the server loses its data or a holder dies, but for lack of anything to lose. Nor is any of them fair over instances, but for the token list.",
		"Five instances are few. An exchange costs Redis more when many are in line; with hundreds, measure.",
	},
}
