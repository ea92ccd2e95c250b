//go:build linux

package ops_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/forebay/cluster"
	"example.com/forebay/forebaytest/redistest"
)

// sharing is the configuration of the page with what it says about a cluster.
func sharing(t *testing.T, upstream string) string {
	t.Helper()
	for _, b := range blocks(t, "yaml") {
		if strings.HasPrefix(b, "cluster:") {
			return behindProxy(t, upstream) + b
		}
	}
	t.Fatal("docs/operations.md has no block about a cluster")
	return ""
}

// directives are the lines for redis.conf on the page; those for replicas are the last.
func directives(t *testing.T) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(blocks(t, "redis")[0]), "\n")
}

// pageRedis is a Redis as the page says, with the user of the page alone.
func pageRedis(t *testing.T, lines []string) *redistest.Server {
	t.Helper()
	s := redistest.Start(t, redistest.Config{Directives: lines})
	addUser(t, s)
	return s
}

func addUser(t *testing.T, s *redistest.Server) {
	t.Helper()
	user := strings.Fields(strings.ReplaceAll(blocks(t, "acl")[0], ">PASSWORD", ">s3cret"))
	s.Must(append([]string{"ACL", "SETUSER"}, user[1:]...)...)
}

// file writes a configuration, and beside it the address of its Redis.
func file(t *testing.T, config, redis string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "redis.url"), redis+"\n")
	writeFile(t, filepath.Join(dir, "forebay.yaml"), config)
	return filepath.Join(dir, "forebay.yaml")
}

// joined starts Forebay and waits until its gate has slots from the cluster, which a
// Redis that was started a moment ago does not lend yet.
func joined(t *testing.T, config string) *forebay {
	t.Helper()
	f := serving(t, exec.Command(program, "serve", "-c", config))
	until(t, "it has joined the cluster", func() bool {
		return strings.Contains(f.metrics(t), `forebay_cluster_mode{gate="all",mode="normal"} 1`)
	})
	return f
}

// TestPageCluster: with the Redis, the rights and the configuration of the page check has
// nothing to say, two programs share the limit, and status shows them.
func TestPageCluster(t *testing.T) {
	for _, right := range cluster.Rights("shop") {
		if !slices.Contains(strings.Fields(blocks(t, "acl")[0]), right) {
			t.Errorf("the page lacks the right %s", right)
		}
	}
	redis := pageRedis(t, directives(t)[:3])
	b := newBackend(t)
	config := file(t, strings.Replace(sharing(t, b.URL), "max_in_flight: 12", "max_in_flight: 1", 1), redis.URLFor("forebay", "s3cret"))
	findings, code := checked(t, config)
	if code != 0 || slices.ContainsFunc(findings, isWarning) || !slices.Contains(findings, "ok cluster_store") {
		t.Errorf("check ends with %d: %v", code, findings)
	}
	first := joined(t, config)
	second := joined(t, config)
	empty := b.fill(t, "http://"+first.listen)
	if a := get(t, "http://"+second.listen+"/"); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "rejected_timeout") {
		t.Errorf("the other program, with the limit used up: %d %s", a.status, a.body)
	}
	until(t, "status shows both programs, and that all is used up", func() bool {
		out, err := exec.Command(program, "status", "--cluster", "--admin", second.admin).CombinedOutput()
		return saturated(err) && strings.Count(string(out), "all") == 3 && strings.Contains(string(out), "normal")
	})
	empty()
	if log := redis.Log(); strings.Contains(log, "NOPERM") {
		t.Error(log)
	}
	for _, p := range []*forebay{first, second} {
		for _, line := range p.said() {
			if strings.Contains(line, "s3cret") {
				t.Errorf("the password is in the log: %s", line)
			}
		}
	}
}

// saturated reports whether a program ended with 3.
func saturated(err error) bool {
	exit, ok := err.(*exec.ExitError)
	return ok && exit.ExitCode() == 3
}

// TestPageReplicas: the last lines are what check wants of a primary with replicas.
func TestPageReplicas(t *testing.T) {
	lines := directives(t)
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	for _, c := range []struct {
		lines []string
		want  bool
	}{{lines[:3], true}, {lines, false}} {
		r := redistest.StartReplicated(t, redistest.ReplicatedConfig{Config: redistest.Config{Directives: c.lines}, Sentinels: -1})
		addUser(t, r.Servers[0])
		findings, _ := checked(t, file(t, sharing(t, upstream.URL), r.Servers[0].URLFor("forebay", "s3cret")))
		if got := slices.Contains(findings, "warning cluster_failover"); got != c.want {
			t.Errorf("with %q check finds %v", c.lines, findings)
		}
	}
}

// TestPageCheck: what the page says that check says.
func TestPageCheck(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	redis := pageRedis(t, directives(t)[:3])
	config := file(t, sharing(t, upstream.URL), redis.URLFor("forebay", "s3cret"))
	finds := func(want string, code int) {
		t.Helper()
		if findings, got := checked(t, config); !slices.Contains(findings, want) || got != code {
			t.Errorf("check ends with %d and finds %v; want %d and %s", got, findings, code, want)
		}
	}
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		redis.Config("maxmemory-policy", policy)
		finds("warning cluster_eviction", 0)
	}
	redis.Config("maxmemory-policy", "noeviction")
	for right, want := range map[string]string{
		"evalsha": "error cluster_rights", "hset": "error cluster_rights", "publish": "error cluster_rights", "subscribe": "error cluster_rights",
		"info": "warning cluster_rights", "pubsub": "warning cluster_rights",
	} {
		redis.Must("ACL", "SETUSER", "forebay", "-"+right)
		finds(want, map[bool]int{true: 1, false: 0}[strings.HasPrefix(want, "error")])
		addUser(t, redis)
	}
	other := strings.Replace(sharing(t, upstream.URL), "max_in_flight: 12", "max_in_flight: 8", 1)
	joined(t, file(t, other, redis.URLFor("forebay", "s3cret")))
	finds("warning cluster_limits", 0)
	writeFile(t, filepath.Join(filepath.Dir(config), "redis.url"), redis.URLFor("forebay", "wrong")+"\n")
	finds("error cluster_store", 1)
	writeFile(t, filepath.Join(filepath.Dir(config), "redis.url"), redis.URLFor("forebay", "s3cret")+"\n")
	redis.Kill()
	finds("unknown cluster_store", 0)
	out, err := exec.Command(program, "check", "--offline", config).CombinedOutput()
	if err != nil || strings.Contains(string(out), "cluster_store") {
		t.Errorf("check --offline: %v\n%s", err, out)
	}
}

// TestPageClusterReload: what the page says that a reload refuses of a cluster, and what
// it takes.
func TestPageClusterReload(t *testing.T) {
	redis := pageRedis(t, directives(t)[:3])
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	text := sharing(t, upstream.URL)
	config := file(t, text, redis.URLFor("forebay", "s3cret"))
	f := joined(t, config)
	for _, c := range []struct {
		old, new string
		status   int
	}{
		{"name: shop", "name: other", http.StatusUnprocessableEntity},
		{"name: shop", "name: shop\n  lease: 3s", http.StatusUnprocessableEntity},
		{"name: shop", "name: shop\n  host: web1", http.StatusUnprocessableEntity},
		{"redis_file: redis.url", "redis: redis://127.0.0.1:1", http.StatusUnprocessableEntity},
		{"when_store_is_away: share", "when_store_is_away: open\n  #", http.StatusUnprocessableEntity}, // with min_share
		{"min_share: 1", "min_share: 2", http.StatusOK},
		{"min_share: 1", "withhold: 1m", http.StatusOK},
		{"min_share: 1", "idle_hold: 0", http.StatusOK},
	} {
		writeFile(t, config, replace(t, text, c.old, c.new))
		res, err := http.Post("http://"+f.admin+"/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s: reload answers %d, want %d", c.new, res.StatusCode, c.status)
		}
	}
	if a := get(t, fmt.Sprintf("http://%s/stats/all", f.admin)); !strings.Contains(a.body, `"cluster":{"mode":"normal"`) {
		t.Errorf("after the reloads: %s", a.body)
	}
}

// TestPageSentinelsAndTLS: the keys of the page for a Redis behind Sentinels, each with a
// password of its own, that show certificates of a private authority and want one.
func TestPageSentinelsAndTLS(t *testing.T) {
	keys := ""
	for _, b := range blocks(t, "yaml") {
		if strings.Contains(b, "sentinel_password_file") {
			keys = b
		}
	}
	r := redistest.StartReplicated(t, redistest.ReplicatedConfig{
		Config: redistest.Config{TLS: true, Directives: directives(t)}, SentinelPassword: "s3same",
	})
	addUser(t, r.Servers[0])
	r.Servers[0].Must("ACL", "SETUSER", "forebay", "+role") // as the page says
	b := newBackend(t)
	text := replace(t, sharing(t, b.URL), "  redis_file: redis.url            # redis://forebay:PASSWORD@10.0.0.5:6379 in one line\n", "")
	config := file(t, text+strings.TrimPrefix(keys, "cluster:\n"), replace(t, r.SentinelURL(), "://", "://forebay:s3cret@"))
	dir := filepath.Dir(config)
	writeFile(t, filepath.Join(dir, "sentinel.password"), "s3same\n")
	authority, err := os.ReadFile(r.Servers[0].CertificateFile())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "redis-ca.pem"), string(authority))
	caller := r.Servers[0].TLS().Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(caller.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "forebay.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caller.Certificate[0]})))
	writeFile(t, filepath.Join(dir, "forebay.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	if findings, code := checked(t, config); code != 0 || !slices.Contains(findings, "ok cluster_store") {
		t.Errorf("check ends with %d: %v", code, findings)
	}
	f := joined(t, config)
	writeFile(t, filepath.Join(dir, "sentinel.password"), "another\n")
	res, err := http.Post("http://"+f.admin+"/reload", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a reload with another password answers %d", res.StatusCode)
	}
	if findings, code := checked(t, config); code != 1 || !slices.Contains(findings, "error cluster_store") {
		t.Errorf("with a wrong password of the Sentinels check ends with %d: %v", code, findings)
	}
	for _, line := range f.said() {
		if strings.Contains(line, "s3same") {
			t.Errorf("the password is in the log: %s", line)
		}
	}
}
