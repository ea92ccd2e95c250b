// Package goredisstore keeps the ledgers of clustered gates in Redis, through go-redis,
// for programs that have that already. Package redisstore does the same with rueidis,
// over fewer connections; both run the same script and pass the same tests.
//
//	store := goredisstore.New(client) // yours, and it stays open
//	defer store.Close()
//	c, err := cluster.New(cluster.Config{Store: store})
//
// [Dial] and [Open] make a client of their own. Exchanges take connections from its
// pool, one for each gate that exchanges at the moment; messages come over one of their
// own, over which nothing is sent while nothing happens.
//
// # What it promises
//
// An exchange is one round trip, and one atomic script on one key. It is sent once,
// whatever MaxRetries says: what is lost is told, and nothing is repeated that may have
// been executed. The one exception repeats nothing either: a server that does not know
// the script, after a restart, a failover or SCRIPT FLUSH, has done nothing, and is sent
// it in full ([Store.Reloads] counts that). It ends with its context, and so does
// Subscribe, whatever ContextTimeoutEnabled says; without that option a connection is
// kept by an exchange that was given up until ReadTimeout.
//
// An error says where, what and what helps. One that is a [cluster.ErrSetup] will not go
// away by itself: a wrong password, a missing right, a server that is too old. With any
// other the store is away for the moment: it is not reached or does not answer in time,
// it loads its data, is a replica, has no memory left, misses replicas, or its cluster is
// not whole. Nothing is logged here; go-redis itself logs connections that fail, until
// redis.SetLogger takes that elsewhere.
//
// A gate's calls wait without a connection, however many there are.
//
// # Servers
//
// Tested is Redis 7.0.15: a single server, replicas with Sentinels, a Cluster while slots
// move, TLS, users of few rights. From 6.2 Redis has all that is needed. Valkey speaks
// the same and should do; that, and any other that speaks the protocol (Dragonfly, KeyDB,
// Garnet), and services that run Redis for you, are not tested. [Store.Inspect] says what
// is wrong with a server. How one is to be set up, and what it means when INFO is not
// allowed, stands in the documentation of package redisstore.
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
// and on a Cluster +cluster|slots and +asking; with a client of your own whose
// DisableRoutingPolicies is not set, +command.
package goredisstore
