//go:build linux

package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is docs/operations.md.
func page(t *testing.T) string { return readFile(t, "docs", "operations.md") }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks returns the blocks of the page in one language.
func blocks(t *testing.T, language string) (found []string) {
	t.Helper()
	for _, m := range fence.FindAllStringSubmatch(page(t), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("docs/operations.md has no block of %s", language)
	}
	return found
}

// configurations returns the blocks that are files of Forebay.
func configurations(t *testing.T) (found []string) {
	for _, b := range blocks(t, "yaml") {
		if strings.HasPrefix(b, "listen:") {
			found = append(found, b)
		}
	}
	if len(found) != 2 {
		t.Fatalf("docs/operations.md has %d configurations, want that behind a proxy and that of a container", len(found))
	}
	return found
}

// behindProxy is the configuration of the page, on free ports and before this upstream.
func behindProxy(t *testing.T, upstream string) string {
	t.Helper()
	c := replace(t, configurations(t)[0], "listen: 127.0.0.1:8080", "listen: 127.0.0.1:0")
	c = replace(t, c, "admin: 127.0.0.1:8081", "admin: 127.0.0.1:0")
	return replace(t, c, "upstream: http://127.0.0.1:8000", "upstream: "+upstream)
}

func TestPageConfigurations(t *testing.T) {
	for i, c := range configurations(t) {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "forebay.yaml"), c)
		writeFile(t, filepath.Join(dir, "admin.token"), "made-for-the-test-0123456789\n")
		findings, code := checked(t, filepath.Join(dir, "forebay.yaml"))
		if code != 0 {
			t.Errorf("configuration %d: check ends with %d: %v", i+1, code, findings)
		}
		if i == 0 && (!slices.Contains(findings, "ok timeout_chain") || slices.ContainsFunc(findings, isWarning)) {
			t.Errorf("behind a proxy: %v; want the timeout chain proven and no warning", findings)
		}
	}
}

func isWarning(finding string) bool { return strings.HasPrefix(finding, "warning") }

// checked returns what check finds in a file, as "severity rule".
func checked(t *testing.T, file string) (findings []string, code int) {
	t.Helper()
	cmd := exec.Command(program, "check", "--json", file)
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	var said struct {
		Findings []struct{ Severity, Rule string }
		Problems []any
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("check --json %s: %v\n%s", filepath.Base(file), err, out)
	}
	for _, f := range said.Findings {
		findings = append(findings, f.Severity+" "+f.Rule)
	}
	if len(said.Problems) > 0 {
		t.Errorf("%s: %v", filepath.Base(file), said.Problems)
	}
	return findings, cmd.ProcessState.ExitCode()
}

// The commands of the page do what it says, one after the other.
func TestPageCommands(t *testing.T) {
	need(t, "curl", "curl")
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	f := serve(t, behindProxy(t, upstream.URL))
	shell := strings.Join(blocks(t, "sh"), "")
	for _, command := range strings.Split(strings.TrimSpace(shell), "\n") {
		line := strings.ReplaceAll(command, "127.0.0.1:8081", f.admin)
		line = strings.ReplaceAll(line, "curl -f", "curl -sS -f")
		line = regexp.MustCompile(`^forebay `).ReplaceAllLiteralString(line, `"$FOREBAY" `)
		line = strings.ReplaceAll(line, "forebay.yaml", f.cmd.Args[3])
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Env = append(cmd.Environ(), "FOREBAY="+program)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		if strings.Contains(command, "-X PUT") {
			f.logged(t, "the override with its reason", func(l map[string]any) bool {
				return l["msg"] == "limit overridden" && l["limit"] == 4.0 && l["why"] == "failover of the database"
			})
		}
	}
	if m := f.metrics(t); !strings.Contains(m, `forebay_limit{gate="all"} 12`) {
		t.Error("after the commands of the page the limit is not as configured")
	}
}

// A refusal has the fields that the page shows, and no other.
func TestPageLogLine(t *testing.T) {
	hold := newBackend(t)
	f := serve(t, strings.Replace(behindProxy(t, hold.URL), "max_in_flight: 12", "max_in_flight: 1", 1))
	defer hold.fill(t, "http://"+f.listen)()
	get(t, "http://"+f.listen+"/")
	line := f.logged(t, "a refusal", func(l map[string]any) bool { return l["decision"] == "rejected_timeout" })
	var shown map[string]any
	if err := json.Unmarshal([]byte(blocks(t, "json")[0]), &shown); err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(line)), slices.Sorted(maps.Keys(shown))
	if !slices.Equal(got, want) {
		t.Errorf("a line has %v, the page shows %v", got, want)
	}
	for key := range shown {
		if !strings.Contains(page(t), "`"+key+"`") && key != "time" && key != "level" && key != "msg" {
			t.Errorf("the page does not explain %s", key)
		}
	}
}

var (
	metricNamed = regexp.MustCompile(`\b(forebay|go)_[a-z0-9_]+[a-z0-9]\b`)
	labelNamed  = regexp.MustCompile(`by \((\w+)\)|[{,](\w+)[=!]`)
)

// Every metric and label on the page is one that is scraped.
func TestPageMetrics(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	f := serve(t, behindProxy(t, upstream.URL))
	get(t, "http://"+f.listen+"/")
	scrape := f.metrics(t)
	for _, name := range metricNamed.FindAllString(page(t), -1) {
		if name == "forebay_log_left_out_total" || strings.HasPrefix(name, "forebay_cluster_") { // not of every program
			if !strings.Contains(readFile(t, "docs", "metrics.md"), "`"+name+"`") {
				t.Errorf("%s is on the page and not in docs/metrics.md", name)
			}
			continue
		}
		if !strings.Contains(scrape, "\n# TYPE "+name+" ") {
			t.Errorf("%s is on the page and not in the scrape", name)
		}
	}
	for _, m := range labelNamed.FindAllStringSubmatch(blocks(t, "promql")[0], -1) {
		if m[2] == "mode" { // of forebay_cluster_mode alone, which docs/metrics.md has
			continue
		}
		if label := m[1] + m[2]; !regexp.MustCompile(`forebay_decisions_total\{[^}]*\b` + label + `="`).MatchString(scrape) {
			t.Errorf("forebay_decisions_total has no label %s", label)
		}
	}
}

// The alerts are rules that Prometheus takes.
func TestPageAlerts(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	file := filepath.Join(t.TempDir(), "alerts.yaml")
	writeFile(t, file, blocks(t, "promql")[0])
	if out, err := exec.CommandContext(context.Background(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// What the page tells the one who is woken up apart: each is produced, and is on it.
func TestPageAnswers(t *testing.T) {
	b := newBackend(t)
	f := serve(t, strings.Replace(behindProxy(t, b.URL), "max_in_flight: 12", "max_in_flight: 1", 1))
	away := serve(t, behindProxy(t, closedURL()))
	late := serve(t, behindProxy(t, b.URL)+"timeouts: {upstream_response: 50ms, still_running: 0}\n")
	empty := b.fill(t, "http://"+f.listen)
	for _, x := range []struct{ url, shown string }{
		{f.listen + "/", "503, `Proxy-Status: forebay; error=connection_limit_reached`"},
		{away.listen + "/", "502, `Proxy-Status: forebay; error=connection_refused`"},
		{late.listen + "/slow", "504, `Proxy-Status: forebay; error=http_response_timeout`"},
	} {
		a := get(t, "http://"+x.url)
		said, _, _ := strings.Cut(a.header.Get("Proxy-Status"), "; details")
		if got := fmt.Sprintf("%d, `Proxy-Status: %s`", a.status, said); got != x.shown || !strings.Contains(page(t), x.shown) {
			t.Errorf("got %s; want %s, and that on the page", got, x.shown)
		}
	}
	empty()
	res, err := http.Post("http://"+f.admin+"/drain", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if a := get(t, "http://"+f.listen+"/"); a.status != 503 || !strings.Contains(a.body, `"rejected_draining"`) {
		t.Errorf("while draining: %d, %s", a.status, a.body)
	}
}

// closedURL is where nothing listens: a port that this process has given back.
func closedURL() string {
	s := httptest.NewServer(nil)
	s.Close()
	return s.URL
}

// A reload refuses what the page says needs a restart, and takes the rest.
func TestPageReload(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	config := behindProxy(t, upstream.URL)
	f := serve(t, config)
	reload := func(config string) (status int) {
		t.Helper()
		writeFile(t, f.cmd.Args[3], config)
		res, err := http.Post("http://"+f.admin+"/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, other := range []string{
		strings.Replace(config, "listen: 127.0.0.1:0", "listen: 127.0.0.1:1", 1),
		strings.Replace(config, "admin: 127.0.0.1:0", "admin: 127.0.0.1:1", 1),
		config + "timeouts: {read_header: 6s}\n",
		config + "timeouts: {idle: 76s}\n",
	} {
		if status := reload(other); status != http.StatusUnprocessableEntity {
			t.Errorf("reload answers %d, want 422, for\n%s", status, other)
		}
	}
	if status := reload(strings.Replace(config, "max_in_flight: 12", "max_in_flight: 13", 1)); status != http.StatusOK {
		t.Errorf("another limit: reload answers %d", status)
	}
	if m := f.metrics(t); !strings.Contains(m, `forebay_limit{gate="all"} 13`) {
		t.Error("another limit is not in force after the reload")
	}
}
