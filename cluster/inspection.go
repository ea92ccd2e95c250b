package cluster

// Inspection is what is to be known of the servers behind a [Store] before a limit is
// trusted to them; the stores on Redis return one.
type Inspection struct {
	// Server is what answers and its version, "Redis 7.0.15" for example. Empty: it
	// does not say.
	Server string
	// TooOld says why it cannot keep a ledger. Empty: it can.
	TooOld string
	// Evicts is its maxmemory-policy: "noeviction" if it drops nothing. Empty: it does
	// not say.
	Evicts string
	// Missing are the rights that its user lacks, as an ACL writes them, "+info" for
	// example.
	Missing []string
	// Failover says what lets the limit be exceeded when a replica takes over. Empty:
	// nothing that can be seen, or there are no replicas.
	Failover string
	// Anonymous says that nothing tells one server from another. A replica that missed
	// the last exchanges before it took over then goes on as if nothing had happened,
	// and lends what is lent already.
	Anonymous bool
}

// Rights are what an ACL has to allow the user of a store on Redis, for the clusters of
// this name, as ACL SETUSER takes them. Without +info and +pubsub|numsub it works too,
// with less to go by: see [Inspection].
func Rights(name string) []string {
	prefix := braces.Replace(name)
	return []string{
		"~" + prefix + ":*", "&" + prefix + ":*",
		"+evalsha", "+eval", "+subscribe",
		"+hget", "+hmget", "+hgetall", "+hset", "+hdel", "+set", "+del", "+pexpire",
		"+time", "+publish", "+info", "+pubsub|numsub",
	}
}
