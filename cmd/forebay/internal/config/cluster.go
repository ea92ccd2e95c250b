package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/cluster"
)

// Cluster is what several programs share: the Redis that keeps their limits, and the
// names that they go by there. Which gates share theirs is [Gate.Terms].
type Cluster struct {
	Redis     Secret        // the URL, whether it stands in the file or in RedisFile
	RedisFile string        // as written; empty: the URL stands in the file
	TLS       *RedisTLS     // nil: as the URL alone says
	Sentinel  Sentinel      // how the Sentinels in the URL take this program
	Name      string        // the prefix of the keys
	Host      string        // what people call this process; empty: the host's name
	Lease     time.Duration // of the slots of one program
}

// Terms are what a gate's loan from the cluster is subject to; see [cluster.Terms].
// Defaults are filled in, so an IdleHold that is written as 0 is one below 0.
type Terms = cluster.Terms

// Policies are the words for [cluster.Policy], in order.
var Policies = []string{"share", "closed", "open"}

// PolicyWord is how a file says a policy.
func PolicyWord(p cluster.Policy) string { return Policies[p] }

// The defaults of a cluster. docs/config.md says why each.
const (
	DefaultClusterName = "forebay"             // of Cluster.Name
	DefaultLease       = 2 * time.Second       // of Cluster.Lease
	DefaultIdleHold    = 50 * time.Millisecond // of Terms.IdleHold
)

// clusterReader reads the cluster. Its gates are looked up when all are known.
type clusterReader struct {
	*decoder
	gates *gatesReader
	terms termsReader   // of the gates that have none of their own
	names []value       // of the gates, in order
	own   []termsReader // of each
}

// termsReader is terms, and those of them that the file says.
type termsReader struct {
	Terms
	said map[string]value
}

func newTermsReader() termsReader {
	return termsReader{Terms{IdleHold: DefaultIdleHold}, map[string]value{}}
}

func (r *clusterReader) read(v value) {
	c := &Cluster{Name: DefaultClusterName, Lease: DefaultLease}
	r.config.Cluster, r.terms = c, newTermsReader()
	keys := []key{
		{"redis", func(v value) { c.Redis = r.redis(v) }},
		{"redis_file", func(v value) {
			if s, ok := r.text(v, "a path such as /etc/forebay/redis.url"); ok {
				c.RedisFile = s
				r.readRedis(v)
			}
		}},
		{"tls", func(v value) { c.TLS = r.tls(v) }},
		{"sentinel_username", func(v value) {
			if s, ok := r.text(v, "a name such as forebay"); ok && r.name(v.Node, "user") {
				c.Sentinel.Username = s
			}
		}},
		{"sentinel_password_file", func(v value) { r.sentinelPassword(v, &c.Sentinel) }},
		{"gates", r.gateNames},
		{"lease", func(v value) {
			if n, ok := r.duration(v, shortestLease, longestLease, "2s"); ok {
				c.Lease = n
			}
		}},
		{"name", func(v value) {
			if s, ok := r.text(v, "a name such as shop"); ok && r.name(v.Node, "cluster") {
				c.Name = s
			}
		}},
		{"host", func(v value) {
			if s, ok := r.text(v, "a name such as web1"); ok && r.name(v.Node, "host") {
				c.Host = s
			}
		}},
	}
	there := r.mapping(v, "cluster", append(keys, r.termKeys(&r.terms)...))
	if v.Kind == yaml.MappingNode && !r.partial {
		r.checkWhole(posOf(v.Node), there)
	}
}

const (
	// A busy machine is late by some hundred milliseconds now and then, and a lease
	// that ends meanwhile costs slots.
	shortestLease = 500 * time.Millisecond
	// For as long as 1.6 of it the slots of a program that died are nobody's.
	longestLease = time.Minute
)

// termKeys are the keys that stand with the cluster and with each of its gates.
func (r *clusterReader) termKeys(t *termsReader) []key {
	note := func(read func(v value)) func(v value) {
		return func(v value) {
			t.said[v.name] = v
			read(v)
		}
	}
	return []key{
		{"when_store_is_away", note(func(v value) {
			if w, ok := r.word(v, Policies...); ok {
				t.WhenAway = cluster.Policy(slices.Index(Policies, w))
			}
		})},
		{"min_share", note(func(v value) { t.MinShare, _ = r.number(v, 0, maxUnits) })},
		{"withhold", note(func(v value) { r.durationInto(&t.Withhold, v, 0, "10s") })},
		{"idle_hold", note(func(v value) {
			if n, ok := r.duration(v, 0, longestLease, "50ms"); ok {
				t.IdleHold = n
				if n == 0 {
					t.IdleHold = -1
				}
			}
		})},
	}
}

func (r *clusterReader) checkWhole(at Pos, there map[string]Pos) {
	file, inFile := there["redis_file"]
	text, inText := there["redis"]
	switch {
	case file != Pos{} && text != Pos{}:
		r.wrongAt(file, "cluster has redis and redis_file", "keep one of them")
	case !inFile && !inText:
		r.wrongAt(at, "cluster has no redis", "say where it is: redis: redis://127.0.0.1:6379, or redis_file: PATH for a URL with a password")
	}
	r.checkWay(there)
	if _, ok := there["gates"]; !ok {
		r.wrongAt(at, "cluster has no gates, so nothing is shared", "name those whose limit is one for all programs: gates: [reports]")
	}
}

// gateNames reads a list of names, or a mapping from names to terms of their own.
func (r *clusterReader) gateNames(v value) {
	if v.Kind == yaml.MappingNode {
		r.entries(v, "cluster.gates", func(name string, k, child *yaml.Node) {
			c := v.child(name, child)
			r.config.at[c.path] = posOf(k)
			own := newTermsReader()
			if r.given(c) {
				r.mapping(c, "cluster.gates.NAME", r.termKeys(&own))
			}
			r.names, r.own = append(r.names, value{k, c.path, name}), append(r.own, own)
		})
	} else {
		r.list(v, func(v value) {
			s, ok := r.text(v, "the name of a gate")
			switch {
			case !ok:
			case slices.ContainsFunc(r.names, func(n value) bool { return n.Value == s }):
				r.wrong(v.Node, fmt.Sprintf("the gate %s is named twice", shorten(s)), "take one of the two out")
			default:
				r.config.at["cluster.gates."+s] = posOf(v.Node)
				r.names, r.own = append(r.names, v), append(r.own, newTermsReader())
			}
		})
	}
	if (v.Kind == yaml.MappingNode || v.Kind == yaml.SequenceNode) && len(v.Content) == 0 {
		r.wrongValue(v, "name those whose limit is one for all programs: [reports], or leave cluster out", "is empty, so nothing is shared")
	}
}

// check gives the gates their terms, once all gates are known.
func (r *clusterReader) check() {
	if r.config.Cluster == nil {
		return
	}
	shares := false
	for i, v := range r.names {
		t := r.merged(r.own[i])
		shares = shares || t.WhenAway == cluster.Share
		if g := r.config.Gate(v.Value); g != nil {
			g.Terms = &t
			r.checkTerms(v, r.own[i], g)
		} else {
			r.unknownGate(v)
		}
	}
	if !shares && len(r.names) > 0 {
		r.checkUseless(r.terms, "share for no gate")
	}
}

// merged are the terms of a gate: its own, else those of the cluster.
func (r *clusterReader) merged(own termsReader) Terms {
	t := r.terms.Terms
	for name, take := range map[string]func(){
		"when_store_is_away": func() { t.WhenAway = own.WhenAway },
		"min_share":          func() { t.MinShare = own.MinShare },
		"withhold":           func() { t.Withhold = own.Withhold },
		"idle_hold":          func() { t.IdleHold = own.IdleHold },
	} {
		if _, ok := own.said[name]; ok {
			take()
		}
	}
	if t.WhenAway != cluster.Share {
		t.MinShare, t.Withhold = 0, 0 // they say something about shares
	}
	return t
}

func (r *clusterReader) unknownGate(v value) {
	if r.partial || len(r.gates.names) == 0 || slices.Contains(r.gates.names, v.Value) {
		return
	}
	remedy := "declare it under gates"
	if near := r.nearest(v.Value, r.gates.names); near != "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	r.wrong(v.Node, fmt.Sprintf("there is no gate %s", shorten(v.Value)), remedy)
}

// checkTerms finds terms of one gate that contradict each other or its limit.
func (r *clusterReader) checkTerms(name value, own termsReader, g *Gate) {
	if g.Terms.WhenAway != cluster.Share {
		r.checkUseless(own, PolicyWord(g.Terms.WhenAway)+" for gate "+shorten(g.Name))
	}
	if hold := g.Terms.Withhold; hold > 0 && hold < r.config.Cluster.Lease {
		r.wrongValue(r.said(own, "withhold"), fmt.Sprintf("write at least %s, or leave it out", FormatDuration(r.config.Cluster.Lease)),
			"is %s, below the lease of %s: a share would be over before it begins", FormatDuration(hold), FormatDuration(r.config.Cluster.Lease))
		g.Terms.Withhold = 0
	}
	if g.Terms.MinShare > g.MaxInFlight && !g.Closed {
		r.wrong(r.said(own, "min_share").Node, fmt.Sprintf("min_share is %d, above max_in_flight %d of gate %s", g.Terms.MinShare, g.MaxInFlight, shorten(g.Name)),
			fmt.Sprintf("write at most %d; the sum over all programs should stay below it", g.MaxInFlight))
	}
}

// said is where a term of a gate stands: with the gate, or with the cluster.
func (r *clusterReader) said(own termsReader, name string) value {
	if v, ok := own.said[name]; ok {
		return v
	}
	return r.terms.said[name]
}

// checkUseless finds what is said about shares where there are none; away is what
// when_store_is_away is.
func (r *clusterReader) checkUseless(t termsReader, away string) {
	for name, on := range map[string]bool{"min_share": t.MinShare > 0, "withhold": t.Withhold > 0} {
		if v, ok := t.said[name]; ok && on {
			r.wrongValue(v, "leave it out, or write when_store_is_away: share", "is given, but when_store_is_away is %s", away)
		}
	}
}

// clusterYAML is the cluster as a file has it. A password in the URL is left out.
func (c *Config) clusterYAML() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if c.Cluster.RedisFile != "" {
		add("redis_file: %s", quote(c.Cluster.RedisFile))
	} else {
		add("redis: %s", quote(c.Cluster.Redis.String()))
	}
	if c.Cluster.TLS != nil {
		add("tls: %s", c.Cluster.TLS)
	}
	if s := c.Cluster.Sentinel; s.PasswordFile != "" {
		if s.Username != "" {
			add("sentinel_username: %s", quote(s.Username))
		}
		add("sentinel_password_file: %s", quote(s.PasswordFile))
	}
	add("name: %s", quote(c.Cluster.Name))
	if c.Cluster.Host != "" {
		add("host: %s", quote(c.Cluster.Host))
	}
	add("lease: %s", FormatDuration(c.Cluster.Lease))
	var gates []string
	for _, g := range c.Gates {
		if g.Terms != nil {
			gates = append(gates, quote(g.Name)+": {"+termsYAML(*g.Terms)+"}")
		}
	}
	add("gates: {%s}", strings.Join(gates, ", "))
	return strings.Join(parts, ", ")
}

func termsYAML(t Terms) string {
	parts := []string{"when_store_is_away: " + PolicyWord(t.WhenAway)}
	if t.MinShare > 0 {
		parts = append(parts, fmt.Sprintf("min_share: %d", t.MinShare))
	}
	if t.Withhold > 0 {
		parts = append(parts, "withhold: "+FormatDuration(t.Withhold))
	}
	return strings.Join(append(parts, "idle_hold: "+FormatDuration(IdleHold(t))), ", ")
}

// IdleHold is how long a slot stays that nobody uses: what [Terms] say, as a time.
func IdleHold(t Terms) time.Duration { return max(0, t.IdleHold) }
