package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/forebaytest"
)

// ledger is a store in memory that several servers of a test share, and knows how many
// of them have it open.
type ledger struct {
	*forebaytest.Store
	open atomic.Int64

	mu   sync.Mutex // guards ways
	ways []path     // of the servers, in order
}

func newLedger() *ledger { return &ledger{Store: forebaytest.NewStore(1)} }

// path is one server's way to the ledger.
type path struct {
	*forebaytest.Store
	ledger *ledger
}

func (p path) Close() { p.ledger.open.Add(-1) }

func (l *ledger) openStore(config.Cluster) (Store, error) {
	l.open.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ways = append(l.ways, path{l.Path(), l})
	return l.ways[len(l.ways)-1], nil
}

// several runs so many servers with one configuration, before one backend and with one
// ledger.
func (l *ledger) several(t *testing.T, n int, text string) []*rig {
	t.Helper()
	noLeaks(t)
	b := newBackend(t)
	var all []*rig
	for range n {
		all = append(all, startWith(t, "", text, b, l.openStore))
	}
	return all
}

// stats is what the admin port says of a gate.
func (r *rig) stats(gate string) (st forebay.Stats) {
	r.Helper()
	got := r.ask("GET", "/stats/"+gate, "")
	if err := json.Unmarshal([]byte(got.body), &st); err != nil || got.status != http.StatusOK {
		r.Fatalf("/stats/%s: %d %s %v", gate, got.status, got.body, err)
	}
	return st
}

// statsAre waits until the admin port says so of a gate.
func (r *rig) statsAre(gate, what string, holds func(forebay.Stats) bool) {
	r.Helper()
	eventually(r, what, func() bool { return holds(r.stats(gate)) })
}

// runs waits until the backend has so many requests.
func (b *backend) runs(t testing.TB, n int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d run at the backend", n), func() bool { return b.running.Load() == n })
}

const sharing = `
cluster: {redis: redis://127.0.0.1, gates: [a]}
gates:
  a: {max_in_flight: 5, max_wait: 60s, max_waiting: 100}
  b: {max_in_flight: 2}
routes:
  - {match: /, gate: a}
  - {match: /b/, gate: b}
`

// TestClusterOneLimit: the limit is one for both programs, the line too, and both tell the
// same of it.
func TestClusterOneLimit(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	b := rigs[0].backend
	first, second := rigs[0].call(3, "/hold"), rigs[1].call(3, "/hold")
	b.runs(t, 5)
	for i, r := range rigs {
		r.statsAre("a", "both programs say that five run and one waits", func(st forebay.Stats) bool {
			return st.Capacity == 5 && st.InUse == 5 && st.Waiting == 1 && st.Available == 0
		})
		st := r.stats("a")
		if st.Local == nil || st.Cluster == nil || len(st.Cluster.Instances) != 2 || st.Cluster.Mode != "normal" || st.Cluster.Epoch == 0 {
			t.Fatalf("program %d says %+v, %+v", i, st.Local, st.Cluster)
		}
		if other := r.stats("b"); other.Local != nil || other.Cluster != nil || other.Capacity != 2 {
			t.Errorf("program %d says of a gate that is its own: %+v", i, other)
		}
	}
	if mine, its := rigs[0].stats("a").Local, rigs[1].stats("a").Local; mine.InUse+its.InUse != 5 || mine.Waiting+its.Waiting != 1 {
		t.Errorf("the parts are %+v and %+v", mine, its)
	}
	if got := rigs[1].scrape(`forebay_cluster_held{gate="a"}`); got != "5" {
		t.Errorf("forebay_cluster_held = %q, want 5", got)
	}
	if got := rigs[1].scrape(`forebay_cluster_mode{gate="a",mode="normal"}`); got != "1" {
		t.Errorf("forebay_cluster_mode = %q, want 1", got)
	}
	if got := rigs[1].scrape(`forebay_cluster_exchange_seconds_count{gate="a"}`); got == "" || got == "0" {
		t.Errorf("forebay_cluster_exchange_seconds_count = %q", got)
	}
	rigs[0].letGo(6)
	first.want(3, http.StatusOK)
	second.want(3, http.StatusOK)
	if most := b.most.Load(); most != 5 {
		t.Errorf("%d ran at once, want 5", most)
	}
}

// TestClusterExitGivesBack: who goes in order leaves nothing behind: the slots are the
// others' at once, not when a lease has ended.
func TestClusterExitGivesBack(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	first := rigs[0].call(5, "/hold")
	rigs[0].backend.runs(t, 5)
	second := rigs[1].call(5, "/hold")
	rigs[1].gateIs("a", 0, 5)
	rigs[0].cancel()
	rigs[0].letGo(5)
	first.want(5, http.StatusOK)
	if code := rigs[0].exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	rigs[1].gateIs("a", 5, 0)
	if st := rigs[1].stats("a").Cluster; st.Reclaimed != 0 || len(st.Instances) != 1 {
		t.Errorf("%+v; want nothing reclaimed, and one instance", st)
	}
	rigs[1].letGo(5)
	second.want(5, http.StatusOK)
	if n := l.open.Load(); n != 1 {
		t.Errorf("%d stores are open, want that of the program that runs", n)
	}
}

// TestClusterReloadKeepsGates is CF-04 for a cluster: a reload that does not touch a gate
// gives back nothing and asks for nothing.
func TestClusterReloadKeepsGates(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	held := rigs[0].call(5, "/hold")
	rigs[0].backend.runs(t, 5)
	inLine := rigs[0].call(1, "/hold")
	g := rigs[0].gateIs("a", 5, 1)
	epoch := rigs[0].stats("a").Cluster.Epoch
	for i := range 5 {
		rigs[0].reload(strings.Replace(sharing, "b: {max_in_flight: 2}", fmt.Sprintf("b: {max_in_flight: %d}", 3+i), 1))
	}
	if again, _ := rigs[0].gate("a"); again != g || l.open.Load() != 2 {
		t.Errorf("another gate, or another store: %d are open, want 2", l.open.Load())
	}
	rigs[0].reload(strings.Replace(sharing, "max_wait: 60s", "max_wait: 50s", 1))
	rigs[0].gateIs("a", 5, 1)
	if st := rigs[1].stats("a"); st.InUse != 5 || st.Cluster.Epoch != epoch || len(st.Cluster.Instances) != 2 {
		t.Errorf("%+v", st.Cluster)
	}
	rigs[0].letGo(6)
	held.want(5, http.StatusOK)
	inLine.want(1, http.StatusOK)
}

// TestClusterReloadLimit is RC-17: of two limits the lower one is in force, as long as
// both are configured.
func TestClusterReloadLimit(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	rigs[1].statsAre("a", "both are there", func(st forebay.Stats) bool { return st.Cluster != nil && len(st.Cluster.Instances) == 2 })
	for _, step := range []struct{ first, second, want string }{
		{"8", "5", "5"}, {"8", "8", "8"}, {"3", "8", "3"}, {"closed", "8", "0"}, {"5", "5", "5"},
	} {
		for i, limit := range []string{step.first, step.second} {
			rigs[i].reload(strings.Replace(sharing, "a: {max_in_flight: 5", "a: {max_in_flight: "+limit, 1))
		}
		for _, r := range rigs {
			r.statsAre("a", fmt.Sprintf("with %s and %s the limit is %s", step.first, step.second, step.want), func(st forebay.Stats) bool {
				return fmt.Sprint(st.Capacity) == step.want && !st.Cluster.Overridden
			})
		}
	}
}

// TestClusterReloadTerms: they change in place; what makes it another cluster is refused,
// by name, and nothing of a password is said.
func TestClusterReloadTerms(t *testing.T) {
	l := newLedger()
	r := l.several(t, 1, sharing)[0]
	g, _ := r.gate("a")
	r.reload(strings.Replace(sharing, "gates: [a]", "gates: {a: {when_store_is_away: closed}}", 1))
	if again, _ := r.gate("a"); again != g {
		t.Error("other terms make another gate")
	}
	for change, want := range map[string]string{
		"redis: redis://127.0.0.2":                                                     "cluster.redis is redis://127.0.0.2, and a reload cannot change it from redis://127.0.0.1; stop all programs",
		"redis: 'redis://me:s3cret@127.0.0.1'":                                         "cluster.redis is redis://me:PASSWORD@127.0.0.1, and",
		"redis: redis://127.0.0.1, name: other":                                        "cluster.name is other, and a reload cannot change it from forebay; stop all programs",
		"redis: redis://127.0.0.1, lease: 3s":                                          "cluster.lease is 3s, and a reload cannot change it from 2s; restart the program",
		"redis: redis://127.0.0.1, host: web1":                                         "cluster.host is web1, and a reload cannot change it from that of the machine; restart",
		"redis: 'rediss://127.0.0.1', tls: {ca_file: ../config/testdata/redis-ca.pem}": "cluster.tls names other files",
		"redis: 'redis://127.0.0.1?master_set=m', sentinel_username: me, sentinel_password_file: ../config/testdata/admin.token": "cluster.sentinel_username is me, and a reload cannot change it from the default user; restart",
		"redis: 'redis://127.0.0.1?master_set=m', sentinel_password_file: ../config/testdata/admin.token":                        "cluster.sentinel_password_file has another password, and a reload cannot change that; restart",
	} {
		r.write(strings.Replace(sharing, "redis: redis://127.0.0.1", change, 1))
		err := r.Reload(r.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", change, err, want)
		}
	}
	if again, _ := r.gate("a"); again != g || l.open.Load() != 1 {
		t.Error("a reload that failed has changed something")
	}
	l.ways[0].SetFaults(forebaytest.Faults{Err: fmt.Errorf("cut off")})
	r.statsAre("a", "it is closed while the store is away", func(st forebay.Stats) bool { return st.Cluster.Mode == "closed" })
	r.reload(strings.Replace(sharing, "gates: [a]", "gates: [a], when_store_is_away: open", 1))
	r.statsAre("a", "it is open", func(st forebay.Stats) bool { return st.Cluster.Mode == "open" })
}

// TestClusterReloadJoinsAndLeaves: a gate that joins the cluster, or leaves it, is another
// one; those who run and wait in the old one are served, and no member is left behind.
func TestClusterReloadJoinsAndLeaves(t *testing.T) {
	l := newLedger()
	alone := strings.Replace(sharing, "cluster: {redis: redis://127.0.0.1, gates: [a]}", "", 1)
	rigs := l.several(t, 2, sharing)
	r := rigs[0]
	r.statsAre("a", "both are there", func(st forebay.Stats) bool { return len(st.Cluster.Instances) == 2 })
	old := r.call(6, "/hold")
	g := r.gateIs("a", 5, 1)
	r.reload(alone)
	if st := r.stats("a"); st.Cluster != nil || st.Capacity != 5 || st.InUse != 0 {
		t.Errorf("out of the cluster: %+v", st)
	}
	fresh := r.call(1, "/hold")
	r.gateIs("a", 1, 0)
	eventually(t, "the line of the old gate goes on", func() bool {
		select {
		case r.backend.letGo <- struct{}{}:
		default:
		}
		st := g.Stats()
		return st.Calls == 0 && st.Waiting == 0
	})
	old.want(6, http.StatusOK)
	rigs[1].statsAre("a", "it is a member no more", func(st forebay.Stats) bool {
		return len(st.Cluster.Instances) == 1 && st.Cluster.Held == 0 && st.Cluster.Reclaimed == 0
	})
	eventually(t, "its store is closed", func() bool { return l.open.Load() == 1 })
	r.reload(sharing)
	r.statsAre("a", "it is back", func(st forebay.Stats) bool { return st.Cluster != nil && len(st.Cluster.Instances) == 2 })
	if l.open.Load() != 2 {
		t.Errorf("%d stores are open, want 2", l.open.Load())
	}
	select {
	case r.backend.letGo <- struct{}{}:
	default: // it was let go with the others
	}
	fresh.want(1, http.StatusOK)
}

// TestClusterReloadTakesAGate: one that is no longer there is no member, and one that is
// there again is.
func TestClusterReloadTakesAGate(t *testing.T) {
	const two = `
cluster: {redis: redis://127.0.0.1, gates: %s}
gates: {a: {max_in_flight: 5, max_wait: 60s, max_waiting: 100}, c: {max_in_flight: 5}}
routes: [{match: /, gate: %s}]
`
	l := newLedger()
	rigs := l.several(t, 2, fmt.Sprintf(two, "[a, c]", "a"))
	r := rigs[0]
	held := r.call(5, "/hold")
	r.backend.runs(t, 5)
	inLine := r.call(1, "/hold")
	r.gateIs("a", 5, 1)
	r.reload(strings.Replace(fmt.Sprintf(two, "[c]", "c"), "a: {max_in_flight: 5, max_wait: 60s, max_waiting: 100}, ", "", 1))
	rigs[1].statsAre("a", "what runs is still counted", func(st forebay.Stats) bool { return st.InUse == 5 })
	r.letGo(6)
	held.want(5, http.StatusOK)
	inLine.want(1, http.StatusOK)
	rigs[1].statsAre("a", "it is a member no more", func(st forebay.Stats) bool { return len(st.Cluster.Instances) == 1 })
	r.reload(fmt.Sprintf(two, "[a, c]", "a"))
	rigs[1].statsAre("a", "it is back", func(st forebay.Stats) bool { return len(st.Cluster.Instances) == 2 })
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("status %d, want 200", got.status)
	}
}

// TestClusterReloadTakesAGateOutForGood: the gate that comes back is this program's own,
// although calls of the one before, which is about to leave the cluster, still run.
func TestClusterReloadTakesAGateOutForGood(t *testing.T) {
	const one = `
cluster: {redis: redis://127.0.0.1, gates: [%s]}
gates: {%s: {max_in_flight: 5}, c: {max_in_flight: 5}}
routes: [{match: /, gate: %s}]
`
	r := newLedger().several(t, 1, fmt.Sprintf(one, "a, c", "a", "a"))[0]
	held := r.call(1, "/hold")
	r.backend.runs(t, 1)
	r.reload(fmt.Sprintf(one, "c", "other", "other"))
	r.reload(fmt.Sprintf(one, "c", "a", "a"))
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("status %d %s, want 200", got.status, got.body)
	}
	if st := r.stats("a"); st.Cluster != nil || st.Capacity != 5 {
		t.Errorf("%+v", st)
	}
	r.letGo(1)
	held.want(1, http.StatusOK)
}

// TestClusterClosed: a gate that one program is configured to close is closed for all.
func TestClusterClosed(t *testing.T) {
	l := newLedger()
	b := newBackend(t)
	open := startWith(t, "", sharing, b, l.openStore)
	open.statsAre("a", "it is open", func(st forebay.Stats) bool { return st.Capacity == 5 && st.Cluster.Epoch != 0 })
	shut := startWith(t, "", strings.Replace(sharing, "a: {max_in_flight: 5", "a: {max_in_flight: closed", 1), b, l.openStore)
	for _, r := range []*rig{open, shut} {
		r.limitIs("a", 0)
		if got := r.get("/x"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_busy") {
			t.Errorf("status %d %s, want 503 rejected_busy", got.status, got.body)
		}
	}
	shut.exit()
	open.limitIs("a", 5)
}

// TestClusterOverride: a limit set by hand at one program is in force at all, is shown by
// all, and ends for all, whoever ends it.
func TestClusterOverride(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	set := func(body string) {
		t.Helper()
		if got := rigs[0].ask("PUT", "/gates/a/max_in_flight", body); got.status != http.StatusOK || !strings.Contains(got.body, `"was":5`) {
			t.Errorf("PUT: %d %s", got.status, got.body)
		}
	}
	limits := func(n int) {
		t.Helper()
		for _, r := range rigs {
			r.limitIs("a", n)
			r.statsAre("a", fmt.Sprintf("the limit is %d", n), func(st forebay.Stats) bool { return st.Capacity == n })
		}
	}
	set(`{"max_in_flight":2,"why":"a test"}`)
	limits(2)
	if got := rigs[0].ask("GET", "/gates/a/max_in_flight", ""); !strings.Contains(got.body, `"why":"a test"`) || !strings.Contains(got.body, `"limit":2`) {
		t.Errorf("where it was set: %s", got.body)
	}
	if got := rigs[1].ask("GET", "/gates/a/max_in_flight", ""); !strings.Contains(got.body, "set at another program") || !strings.Contains(got.body, `"max_in_flight":5`) {
		t.Errorf("elsewhere: %s", got.body)
	}
	if got := rigs[1].ask("DELETE", "/gates/a/max_in_flight", ""); got.status != http.StatusOK {
		t.Errorf("DELETE elsewhere: %d %s", got.status, got.body)
	}
	limits(5)
	for _, r := range rigs {
		if got := r.Overrides(); len(got) != 0 {
			t.Errorf("overrides: %v, want none", got)
		}
	}
	set(`{"max_in_flight":"closed"}`)
	limits(0)
	set(`{"max_in_flight":3,"for":"1s"}`)
	limits(5) // by itself
	set(`{"max_in_flight":4}`)
	limits(4)
	rigs[0].reload(sharing)
	limits(5)
	rigs[0].logged(`"msg":"limit as configured again"`, `"was_set_to":4`, `"by":"reload"`)
}

// TestClusterOverrideOutlivesItsSetter: it ends although who has set it is gone.
func TestClusterOverrideOutlivesItsSetter(t *testing.T) {
	l := newLedger()
	rigs := l.several(t, 2, sharing)
	if err := rigs[0].SetOverride("a", 2, 2*time.Second, admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	rigs[1].limitIs("a", 2)
	rigs[0].exit()
	rigs[1].limitIs("a", 5)
}

// TestClusterHealthAndLog: while the store is away the gate is degraded and says why, and
// the log has a line for each change and none for requests.
func TestClusterHealthAndLog(t *testing.T) {
	noLeaks(t)
	l := newLedger()
	way := path{l.Path(), l}
	r := startWith(t, "", strings.Replace(sharing, "gates: [a]", "gates: [a], when_store_is_away: closed, lease: 500ms", 1), newBackend(t),
		func(config.Cluster) (Store, error) { return way, nil })
	r.statsAre("a", "it has joined", func(st forebay.Stats) bool { return st.Cluster.Mode == "normal" })
	way.SetFaults(forebaytest.Faults{Err: fmt.Errorf("connection refused")})
	health := func() forebay.Report {
		var rep forebay.Report
		if err := json.Unmarshal([]byte(r.ask("GET", "/health", "").body), &rep); err != nil {
			t.Fatal(err)
		}
		return rep
	}
	eventually(t, "the gate is closed", func() bool { return strings.Contains(health().Gates[0].Why, "lets nobody in") })
	rep := health()
	if rep.Status != "degraded" || rep.Gates[0].Status != "degraded" || !strings.Contains(rep.Gates[0].Why, "connection refused") || rep.Gates[1].Status != "ok" {
		t.Errorf("health: %+v", rep)
	}
	for range 50 {
		if got := r.get("/x"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"reason":"rejected_store"`) {
			t.Fatalf("status %d %s, want 503 rejected_store", got.status, got.body)
		}
	}
	if got := r.scrape(`forebay_cluster_mode{gate="a",mode="closed"}`); got != "1" {
		t.Errorf("forebay_cluster_mode closed = %q, want 1", got)
	}
	if got := r.scrape(`forebay_decisions_total{decision="rejected_store",gate="a",lane="",route="/"}`); got != "50" {
		t.Errorf("rejected_store = %q, want 50", got)
	}
	way.SetFaults(forebaytest.Faults{})
	r.logged(`"msg":"the cluster's store is back"`)
	eventually(t, "it is well", func() bool { return health().Gates[0].Why == "" })
	if got := r.get("/x"); got.status != http.StatusOK {
		t.Errorf("after it is back: status %d", got.status)
	}
	text, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"msg":"the cluster's store is away"`); n != 1 {
		t.Errorf("%d lines say that the store went away, want one", n)
	}
	if n := strings.Count(string(text), `"gate":"a","mode":`); n > 5 {
		t.Errorf("%d lines about the cluster:\n%s", n, text)
	}
}

// TestClusterStoreIsNone: what the configuration asks for and cannot be had is said.
func TestClusterStoreIsNone(t *testing.T) {
	cfg, err := config.Parse("", []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n"+sharing))
	if err != nil {
		t.Fatal(err)
	}
	noLeaks(t)
	_, err = New(Options{
		Load:      func() (*config.Config, error) { return cfg, nil },
		OpenStore: func(config.Cluster) (Store, error) { return nil, fmt.Errorf("no such store") },
	})
	if err == nil || !strings.Contains(err.Error(), "no such store") {
		t.Errorf("New: %v", err)
	}
}
