// Package redisstore keeps the ledgers of clustered gates in Redis, through rueidis.
//
//	store, err := redisstore.Dial("redis://127.0.0.1:6379")
//	…
//	defer store.Close()
//	c, err := cluster.New(cluster.Config{Store: store})
//
// [Dial] and [Open] make a client of their own: one connection for exchanges, one for
// messages, over which nothing is sent while nothing happens. [New] takes a client that
// is there already.
//
// # What it promises
//
// An exchange is one round trip, and one atomic script on one key. It is sent once: what
// is lost is told, and nothing is repeated that may have been executed. The one
// exception repeats nothing either: a server that does not know the script, after a
// restart, a failover or SCRIPT FLUSH, has done nothing, and is sent it in full
// ([Store.Reloads] counts that). It ends with its context, and so does Subscribe.
//
// An error says where, what and what helps. One that is a [cluster.ErrSetup] will not go
// away by itself: a wrong password, a missing right, a server that is too old. With any
// other the store is away for the moment: it is not reached or does not answer in time,
// it loads its data, is a replica, has no memory left, misses replicas, or its cluster is
// not whole. Nothing is logged.
//
// A gate's calls wait without a connection, however many there are.
//
// # Servers
//
// Tested is Redis 7.0.15: a single server, replicas with Sentinels, a Cluster while slots
// move, TLS, users of few rights. From 6.2 Redis has all that is needed. Valkey speaks
// the same and should do; that, and any other that speaks the protocol (Dragonfly, KeyDB,
// Garnet), and services that run Redis for you, are not tested. forebay check, or
// [Store.Inspect], says what is wrong with a server.
//
// What is kept is small and may vanish at any moment: persistence is not needed. It
// should not vanish often, so maxmemory-policy is to be noeviction. With replicas set
// min-replicas-to-write 1 and min-replicas-max-lag 2: a primary that was cut off then
// stops lending before the one that took its place has begun for long.
//
// The script asks the server who it is (INFO), to find out when a replica takes over that
// missed the last exchanges. Where scripts may not ask but connections may, the store
// asks before each exchange, over the same connection, for a second round trip. Where
// neither may, the ledger does not notice such a failover, and may lend twice what the
// replica missed, for up to a lease.
//
// # Rights
//
// What a user needs, for a cluster of the default name ([cluster.Rights]):
//
//	ACL SETUSER gates on >PASSWORD ~forebay:* &forebay:*
//	  +evalsha +eval +subscribe
//	  +hget +hmget +hgetall +hset +hdel +set +del +pexpire
//	  +time +publish +info +pubsub|numsub
//
// and with Sentinels +role, on a Cluster +cluster|slots (from Redis 8 on
// +cluster|shards) and +asking. rueidis also asks a single server whether it is a
// Cluster, and sends PING, UNSUBSCRIBE and DISCARD as it ends a connection; without the
// right to these it does without them.
//
// # Your own client
//
// Any option does. With DisableRetry or without, exchanges are not repeated; but with
// ConnLifetime rueidis may repeat one that was under way as a connection ended, which the
// ledger takes for what it is, the same again. A Dialer.KeepAlive above zero, or none,
// makes rueidis send a PING over each idle connection that often, once a second by
// default. With Sentinels set TopologyRefreshInterval, or a missed message binds the
// client to a primary that is none any more.
package redisstore
