package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/forebay/cluster"
	"example.com/forebay/cmd/forebay/internal/config"
)

// askPatience is how long a call of a gate without max_wait waits for the cluster's
// answer, as the library has it.
const askPatience = 50 * time.Millisecond

// expiryOf is when the slots of a program that is not heard of are lent again: what
// package cluster makes of a lease.
func expiryOf(lease time.Duration) time.Duration { return lease * 8 / 5 }

// clusterTerms: what a policy promises must not be undone by how long calls run.
func (c *checker) clusterTerms() {
	for i := range c.Gates {
		g := &c.Gates[i]
		if g.Terms == nil {
			continue
		}
		switch g.Terms.WhenAway {
		case cluster.Open:
			c.openPool(g)
		case cluster.Closed:
			c.closedLease(g)
		case cluster.Share:
			c.withheld(g)
			c.start(g)
		}
	}
}

// termKey is the key that sets a term of a gate, or the gate's name where it is the
// default.
func (c *checker) termKey(g *config.Gate, name string) string {
	gate := "cluster.gates." + g.Name
	for _, key := range []string{gate + "." + name, "cluster." + name} {
		if c.At(key) != (config.Pos{}) {
			return key
		}
	}
	return gate
}

// openPool: what a pool holds was divided among gates on the word that their limits
// hold.
func (c *checker) openPool(g *config.Gate) {
	if g.Pool != "" {
		c.find(Warning, "cluster_open", c.termKey(g, "when_store_is_away"),
			"when_store_is_away is open for gate %s: while Redis is away each program lets in %d calls by itself, and pool %s has %d; write share, or make sure that all programs together fit", g.Name, g.MaxInFlight, g.Pool, c.Pools[g.Pool])
	}
}

// closedLease: who writes closed wants the limit to hold whatever happens, and slots
// are lent again while calls of a program that was cut off still run.
func (c *checker) closedLease(g *config.Gate) {
	if expiry := expiryOf(c.Cluster.Lease); expiry < c.Timeouts.UpstreamResponse {
		c.find(Warning, "cluster_lease", c.termKey(g, "when_store_is_away"),
			"when_store_is_away is closed for gate %s, so its limit is to hold always; but when a program is cut off, its slots are lent again after %v (1.6 times cluster.lease %v), and a call that runs by then may go on for timeouts.upstream_response %v; raise the one, lower the other, or accept it",
			g.Name, expiry, c.Cluster.Lease, c.Timeouts.UpstreamResponse)
	}
}

// withheld: the share of a program that is cut off must be withheld for longer than its
// calls run, and not so long that a crash costs capacity for minutes.
func (c *checker) withheld(g *config.Gate) {
	const long = 2 * time.Minute
	hold, key := g.Terms.Withhold, c.termKey(g, "withhold")
	switch {
	case hold == 0:
	case hold < c.Timeouts.UpstreamResponse:
		c.find(Warning, "cluster_withhold", key, "withhold %v of gate %s is below timeouts.upstream_response %v: calls that ran when a program was cut off may run for longer than its share is kept for it; write at least %v", hold, g.Name, c.Timeouts.UpstreamResponse, c.Timeouts.UpstreamResponse)
	case hold > long:
		c.find(Warning, "cluster_withhold", key, "withhold %v of gate %s keeps the share of a program that crashed from all others for so long; write at most %v", hold, g.Name, long)
	}
}

// start: who has never heard of the others does not know how many they are.
func (c *checker) start(g *config.Gate) {
	if g.Terms.MinShare == 0 && !g.Closed {
		c.find(Warning, "cluster_start", c.termKey(g, "when_store_is_away"),
			"a program that starts while Redis is away does not know how many share gate %s, and lets in min_share 0: nobody; write min_share: 1 or more, or closed if that is meant", g.Name)
	}
}

// clusterSecrets: a password in a file that people mail to each other is none.
func (c *checker) clusterSecrets() {
	if c.Cluster == nil {
		return
	}
	if c.Cluster.RedisFile == "" && c.Cluster.Redis.HasPassword() {
		c.find(Warning, "cluster_password", "cluster.redis", "the password of Redis stands in this file; write the URL into a file of its own, and redis_file: PATH here")
	}
	key := "cluster.redis"
	if c.Cluster.RedisFile != "" {
		key = "cluster.redis_file"
	}
	switch host, tls, verified := c.Cluster.Redis.Reached(); {
	case tls && !verified:
		c.find(Warning, "cluster_network", key, "skip_verify takes whoever answers at %s for Redis; take it out, and name the certificate of whoever signed in cluster.tls.ca_file", host)
	case !tls && !config.Loopback(host):
		c.find(Unknown, "cluster_network", key, "Redis at %s is reached without TLS; whether somebody can listen on the way is not written here", host)
	}
}

// Store is what was seen of the Redis that a configuration names.
type Store struct {
	cluster.Inspection
	Gates map[string]cluster.State // the gates that are shared, by name
}

// CheckStore returns what the rules say about the Redis of a configuration, which has
// a cluster. With an error, which says why it could not be asked, that is unknown.
func CheckStore(conf *config.Config, s Store, err error) []Finding {
	c := &checker{Config: conf}
	key := "cluster.redis"
	if conf.Cluster.RedisFile != "" {
		key = "cluster.redis_file"
	}
	switch {
	case errors.Is(err, cluster.ErrSetup):
		c.find(Error, "cluster_store", key, "Redis refuses this program: %v", err)
	case err != nil:
		c.find(Unknown, "cluster_store", key, "Redis cannot be asked (%v); whether it is set up as it should be, and what shares the gates, is not known", err)
	default:
		c.server(key, &s)
		for i := range c.Gates {
			if g := &c.Gates[i]; g.Terms != nil {
				c.sharedGate(g, s.Gates[g.Name].Members)
			}
		}
	}
	return c.sorted()
}

// spare are rights that the limits hold without, but less well.
var spare = map[string]string{
	"+info":          "a replica that was promoted with old data is not recognised, and lends what is lent already",
	"+pubsub|numsub": "after an empty restart nothing is lent until all leases have ended",
}

// server: what is wrong with the server itself.
func (c *checker) server(key string, s *Store) {
	const rights = "cluster_rights"
	name := cmp.Or(s.Server, "the server")
	if s.TooOld != "" {
		c.find(Error, "cluster_version", key, "%s cannot keep the limits: %s", name, s.TooOld)
	}
	var missing []string
	for _, right := range s.Missing {
		if without := spare[right]; without != "" {
			c.find(Warning, rights, key, "the user of the URL lacks the right %s; without it %s", right, without)
			continue
		}
		missing = append(missing, right)
	}
	if len(missing) > 0 {
		c.find(Error, rights, key, "the user of the URL lacks the rights %s; docs/operations.md has the whole line", strings.Join(missing, " "))
	}
	if s.Anonymous && !slices.Contains(s.Missing, "+info") {
		c.find(Warning, "cluster_identity", key, "%s does not say which server it is: %s", name, spare["+info"])
	}
	if s.Failover != "" {
		c.find(Warning, "cluster_failover", key, "%s: %s", name, s.Failover)
	}
	switch {
	case s.Evicts == "":
		c.find(Unknown, "cluster_eviction", key, "whether %s drops keys when its memory is full cannot be seen; maxmemory-policy should be noeviction", name)
	case s.Evicts != "noeviction":
		c.find(Warning, "cluster_eviction", key, "%s has maxmemory-policy %s: when its memory is full it drops the limits, and nothing is lent for a while each time; write noeviction, or take a Redis of its own", name, s.Evicts)
	}
	if len(c.findings) == 0 {
		c.find(OK, "cluster_store", key, "%s answers and lets this program do what it needs", name)
	}
}

// sharedGate: what the programs that run now are configured with, and how many there
// are.
func (c *checker) sharedGate(g *config.Gate, members []cluster.Member) {
	if g.Closed {
		return
	}
	var others []string
	for _, m := range members {
		if m.Limit != g.MaxInFlight {
			others = append(others, fmt.Sprintf("%s %d", m.Host, m.Limit))
		}
	}
	if len(others) > 0 {
		c.find(Warning, "cluster_limits", gateKey(g.Name, "max_in_flight"), "max_in_flight of gate %s is %d here, and elsewhere: %s; the lowest is in force until all have the same", g.Name, g.MaxInFlight, strings.Join(others, ", "))
	}
	n := len(members)
	if g.Terms.WhenAway != cluster.Share || n == 0 {
		return
	}
	switch share := g.Terms.MinShare; {
	case share*n > g.MaxInFlight:
		c.find(Warning, "cluster_min_share", c.termKey(g, "min_share"), "min_share %d of gate %s times %d programs is %d, above max_in_flight %d: without Redis the limit does not hold; lower it, or raise the limit", share, g.Name, n, share*n, g.MaxInFlight)
	case share == 0 && g.MaxInFlight < n:
		c.find(Warning, "cluster_min_share", c.termKey(g, "when_store_is_away"), "max_in_flight %d of gate %s leaves none of %d programs a share: without Redis nobody is let in; write min_share: 1 for up to %d at once, or closed if that is meant", g.MaxInFlight, g.Name, n, n)
	}
}
