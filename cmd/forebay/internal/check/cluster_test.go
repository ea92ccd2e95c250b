package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/forebay/cluster"
)

// shared is a file with a cluster, about which nothing bad is to be said.
const shared = `upstream: http://127.0.0.1:8000
front_timeout: 60s
trusted_proxies: [127.0.0.1]
pools: {db: 20}
gates:
  reports: {max_in_flight: 4, max_wait: 100ms, pool: db}
  orders: {max_in_flight: 12, pool: db}
cluster:
  redis: redis://127.0.0.1:6379
  gates: {reports: {min_share: 1}}
routes:
  - {match: GET /reports/, gate: reports}
  - {match: /, gate: orders}
`

func TestQuietCluster(t *testing.T) {
	findings := Check(parse(t, shared))
	if w := Worst(findings); w != Unknown {
		t.Errorf("the worst is %v, want unknown: %v", w, findings)
	}
	for _, f := range findings {
		if strings.HasPrefix(f.Rule, "cluster") {
			t.Errorf("said is %v", f)
		}
	}
}

// change is one thing that is otherwise in a file, and what is said of it.
type change struct {
	rule     string
	old, new string
	severity Severity
	line     int
	say      string
}

func (c change) applied(t *testing.T, text string) string {
	t.Helper()
	changed := strings.Replace(text, c.old, c.new, 1)
	if changed == text {
		t.Fatalf("%s: %q is not in the file", c.rule, c.old)
	}
	return changed
}

func (c change) check(t *testing.T, findings []Finding) {
	t.Helper()
	found := only(findings, c.rule)
	if len(found) != 1 || found[0].Severity != c.severity || found[0].Pos.Line != c.line || !strings.Contains(found[0].Text, c.say) {
		t.Errorf("%s, %q: %v; want one %v in line %d with %q", c.rule, c.new, found, c.severity, c.line, c.say)
	}
}

func TestClusterRules(t *testing.T) {
	for _, c := range []change{
		{"cluster_open", "reports: {min_share: 1}", "reports: {when_store_is_away: open}", Warning, 10, "each program lets in 4 calls by itself, and pool db has 20"},
		{"cluster_open", "gates: {reports: {min_share: 1}}", "when_store_is_away: open\n  gates: [reports]", Warning, 10, "open for gate reports"},
		{"cluster_lease", "reports: {min_share: 1}", "reports: {when_store_is_away: closed}", Warning, 10, "lent again after 3.2s (1.6 times cluster.lease 2s)"},
		{"cluster_start", "{min_share: 1}", "{}", Warning, 10, "lets in min_share 0: nobody; write min_share: 1"},
		{"cluster_withhold", "reports: {min_share: 1}", "reports: {withhold: 10s}", Warning, 10, "below timeouts.upstream_response 30s"},
		{"cluster_withhold", "reports: {min_share: 1}", "reports: {withhold: 1h}", Warning, 10, "write at most 2m"},
		{"cluster_password", "redis://", "redis://:s3cret@", Warning, 9, "redis_file: PATH here"},
		{"cluster_network", "redis://127.0.0.1", "redis://10.0.0.5", Unknown, 9, "10.0.0.5:6379 is reached without TLS"},
		{"cluster_network", "redis://127.0.0.1:6379", "rediss://10.0.0.5?skip_verify=true", Warning, 9, "takes whoever answers at 10.0.0.5:6379"},
		// A call that does not wait in line waits for the cluster.
		{"timeout_chain", "max_wait: 100ms", "max_wait: 0", OK, 2, "the cluster's answer 50ms (gate reports) + timeouts.upstream_response 30s = 30.05s"},
		{"timeout_chain", "gates: {reports: {min_share: 1}}", "gates: [orders]", OK, 2, "gates.reports.max_wait 100ms"},
	} {
		c.check(t, Check(parse(t, c.applied(t, shared))))
	}
}

// TestClusterRulesHoldTheirTongue: the neighbours of what a rule is about.
func TestClusterRulesHoldTheirTongue(t *testing.T) {
	for _, c := range []change{
		{rule: "cluster_open", old: ", max_wait: 100ms, pool: db", new: "", say: "open without a pool"},
		{rule: "cluster_lease", old: "reports: {min_share: 1}}", new: "reports: {when_store_is_away: closed}}\n  lease: 20s"},
		{rule: "cluster_withhold", old: "reports: {min_share: 1}", new: "reports: {withhold: 30s}"},
		{rule: "cluster_withhold", old: "reports: {min_share: 1}", new: "reports: {withhold: 2m}"},
		{rule: "cluster_password", old: "redis://", new: "redis://me@"},
		{rule: "cluster_network", old: "redis://127.0.0.1:6379", new: "unix:///run/redis.sock"},
		{rule: "cluster_network", old: "redis://127.0.0.1:6379", new: "rediss://10.0.0.5:6380"},
		{rule: "cluster_network", old: "127.0.0.1:6379", new: "localhost"},
	} {
		text := c.applied(t, shared)
		if c.rule == "cluster_open" {
			text = strings.Replace(text, "reports: {min_share: 1}", "reports: {when_store_is_away: open}", 1)
		}
		if found := only(Check(parse(t, text)), c.rule); len(found) > 0 {
			t.Errorf("%q: said is %v", c.new, found)
		}
	}
}

// fine is a Redis as it should be, with two programs as the file wants them.
func fine() Store {
	return Store{
		Inspection: cluster.Inspection{Server: "Redis 7.0.15", Evicts: "noeviction"},
		Gates:      map[string]cluster.State{"reports": {Members: []cluster.Member{{Host: "web1", Limit: 4}, {Host: "web2", Limit: 4}}}},
	}
}

func TestStoreRules(t *testing.T) {
	for _, c := range []struct {
		change
		with func(*Store)
	}{
		{change{"cluster_store", "", "", OK, 9, "Redis 7.0.15 answers"}, func(*Store) {}},
		{change{"cluster_eviction", "", "", Warning, 9, "maxmemory-policy allkeys-lru"}, func(s *Store) { s.Evicts = "allkeys-lru" }},
		{change{"cluster_eviction", "", "", Warning, 9, "maxmemory-policy volatile-ttl"}, func(s *Store) { s.Evicts = "volatile-ttl" }},
		{change{"cluster_eviction", "", "", Unknown, 9, "should be noeviction"}, func(s *Store) { s.Evicts = "" }},
		{change{"cluster_version", "", "", Error, 9, "Redis 5.0.0 cannot keep the limits: 6.2 can"}, func(s *Store) { s.Server, s.TooOld = "Redis 5.0.0", "6.2 can" }},
		{change{"cluster_rights", "", "", Error, 9, "lacks the rights +evalsha +hset;"}, func(s *Store) { s.Missing = []string{"+evalsha", "+hset"} }},
		{change{"cluster_rights", "", "", Warning, 9, "lacks the right +info; without it a replica"}, func(s *Store) { s.Missing, s.Anonymous = []string{"+info"}, true }},
		{change{"cluster_identity", "", "", Warning, 9, "does not say which server it is"}, func(s *Store) { s.Anonymous = true }},
		{change{"cluster_failover", "", "", Warning, 9, "Redis 7.0.15: it has 1 replica"}, func(s *Store) { s.Failover = "it has 1 replica" }},
		{change{"cluster_limits", "", "", Warning, 6, "is 4 here, and elsewhere: web1 8; the lowest"}, func(s *Store) { s.Gates["reports"].Members[0].Limit = 8 }},
		{change{"cluster_min_share", "min_share: 1", "min_share: 3", Warning, 10, "min_share 3 of gate reports times 2 programs is 6, above max_in_flight 4"}, func(*Store) {}},
		{change{"cluster_min_share", "gates: {reports: {min_share: 1}}", "min_share: 3\n  gates: [reports]", Warning, 10, "times 2 programs is 6"}, func(*Store) {}},
		{change{"cluster_min_share", "min_share: 1", "min_share: 0", Warning, 10, "leaves none of 5 programs a share"}, func(s *Store) {
			s.Gates["reports"] = cluster.State{Members: slices.Repeat([]cluster.Member{{Host: "web", Limit: 4}}, 5)}
		}},
	} {
		text := shared
		if c.old != "" {
			text = c.applied(t, shared)
		}
		s := fine()
		c.with(&s)
		c.check(t, CheckStore(parse(t, text), s, nil))
	}
	conf := parse(t, strings.Replace(shared, "min_share: 1", "min_share: 2", 1))
	if found := CheckStore(conf, fine(), nil); len(found) != 1 {
		t.Errorf("of a good store is said: %v", found)
	}
	empty := fine()
	empty.Gates = nil
	if found := CheckStore(conf, empty, nil); len(found) != 1 {
		t.Errorf("of a store that nobody uses yet is said: %v", found)
	}
}

// TestStoreIsAway: then nothing is known, and nothing is wrong; but who is refused will
// be refused again.
func TestStoreIsAway(t *testing.T) {
	found := CheckStore(parse(t, shared), Store{}, errors.New("connection refused"))
	if len(found) != 1 || found[0].Severity != Unknown || !strings.Contains(found[0].Text, "Redis cannot be asked (connection refused)") {
		t.Errorf("said is %v", found)
	}
	found = CheckStore(parse(t, shared), Store{}, fmt.Errorf("%w: wrong password", cluster.ErrSetup))
	if len(found) != 1 || found[0].Severity != Error || !strings.Contains(found[0].Text, "wrong password") {
		t.Errorf("said is %v", found)
	}
}
