package check

import (
	"errors"
	"strings"
	"testing"
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
  gates: {reports: {}}
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
		{"cluster_open", "reports: {}", "reports: {when_store_is_away: open}", Warning, 10, "each program lets in 4 calls by itself, and pool db has 20"},
		{"cluster_open", "gates: {reports: {}}", "when_store_is_away: open\n  gates: [reports]", Warning, 10, "open for gate reports"},
		{"cluster_lease", "reports: {}", "reports: {when_store_is_away: closed}", Warning, 10, "lent again after 3.2s (1.6 times cluster.lease 2s)"},
		{"cluster_withhold", "reports: {}", "reports: {withhold: 1s}", Warning, 10, "below cluster.lease 2s"},
		{"cluster_withhold", "reports: {}", "reports: {withhold: 10s}", Warning, 10, "below timeouts.upstream_response 30s"},
		{"cluster_withhold", "reports: {}", "reports: {withhold: 1h}", Warning, 10, "write at most 2m"},
		{"cluster_password", "redis://", "redis://:s3cret@", Warning, 9, "redis_file: PATH here"},
		{"cluster_network", "redis://127.0.0.1", "redis://10.0.0.5", Unknown, 9, "10.0.0.5:6379 is reached without TLS"},
		{"cluster_network", "redis://127.0.0.1:6379", "rediss://10.0.0.5?skip_verify=true", Warning, 9, "takes whoever answers at 10.0.0.5:6379"},
		// A call that does not wait in line waits for the cluster.
		{"timeout_chain", "max_wait: 100ms", "max_wait: 0", OK, 2, "the cluster's answer 50ms (gate reports) + timeouts.upstream_response 30s = 30.05s"},
		{"timeout_chain", "gates: {reports: {}}", "gates: [orders]", OK, 2, "gates.reports.max_wait 100ms"},
	} {
		c.check(t, Check(parse(t, c.applied(t, shared))))
	}
}

// TestClusterRulesHoldTheirTongue: the neighbours of what a rule is about.
func TestClusterRulesHoldTheirTongue(t *testing.T) {
	for _, c := range []change{
		{rule: "cluster_open", old: ", max_wait: 100ms, pool: db", new: "", say: "open without a pool"},
		{rule: "cluster_lease", old: "reports: {}}", new: "reports: {when_store_is_away: closed}}\n  lease: 20s"},
		{rule: "cluster_withhold", old: "reports: {}", new: "reports: {withhold: 30s}"},
		{rule: "cluster_withhold", old: "reports: {}", new: "reports: {withhold: 2m}"},
		{rule: "cluster_password", old: "redis://", new: "redis://me@"},
		{rule: "cluster_network", old: "redis://127.0.0.1:6379", new: "unix:///run/redis.sock"},
		{rule: "cluster_network", old: "redis://127.0.0.1:6379", new: "rediss://10.0.0.5:6380"},
		{rule: "cluster_network", old: "127.0.0.1:6379", new: "localhost"},
	} {
		text := c.applied(t, shared)
		if c.rule == "cluster_open" {
			text = strings.Replace(text, "reports: {}", "reports: {when_store_is_away: open}", 1)
		}
		if found := only(Check(parse(t, text)), c.rule); len(found) > 0 {
			t.Errorf("%q: said is %v", c.new, found)
		}
	}
}

// fine is a Redis as it should be, with two programs as the file wants them.
func fine() Store {
	return Store{Name: "Redis 7.0.15", Evicts: "noeviction", Gates: map[string][]Seen{"reports": {{"web1", 4}, {"web2", 4}}}}
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
		{change{"cluster_version", "", "", Error, 9, "Redis 5.0.0 cannot keep the limits: 6.2 can"}, func(s *Store) { s.Name, s.TooOld = "Redis 5.0.0", "6.2 can" }},
		{change{"cluster_rights", "", "", Error, 9, "lacks rights: +evalsha +info"}, func(s *Store) { s.Missing = []string{"+evalsha", "+info"} }},
		{change{"cluster_limits", "", "", Warning, 6, "is 4 here, and elsewhere: web3 8; the lowest"}, func(s *Store) { s.Gates["reports"] = append(s.Gates["reports"], Seen{"web3", 8}) }},
		{change{"cluster_min_share", "reports: {}", "reports: {min_share: 3}", Warning, 10, "min_share 3 of gate reports times 2 programs is 6, above max_in_flight 4"}, func(*Store) {}},
		{change{"cluster_min_share", "gates: {reports: {}}", "min_share: 3\n  gates: [reports]", Warning, 10, "times 2 programs is 6"}, func(*Store) {}},
		{change{"cluster_min_share", "max_in_flight: 4", "max_in_flight: 1", Warning, 10, "leaves none of 2 programs a share"}, func(*Store) {}},
	} {
		text := shared
		if c.old != "" {
			text = c.applied(t, shared)
		}
		s := fine()
		c.with(&s)
		c.check(t, CheckStore(parse(t, text), s, nil))
	}
	conf := parse(t, strings.Replace(shared, "reports: {}", "reports: {min_share: 2}", 1))
	if found := CheckStore(conf, fine(), nil); len(found) != 1 {
		t.Errorf("of a good store is said: %v", found)
	}
}

// TestStoreIsAway: then nothing is known, and nothing is wrong.
func TestStoreIsAway(t *testing.T) {
	found := CheckStore(parse(t, shared), Store{}, errors.New("connection refused"))
	if len(found) != 1 || found[0].Severity != Unknown || !strings.Contains(found[0].Text, "Redis cannot be asked (connection refused)") {
		t.Errorf("said is %v", found)
	}
}
