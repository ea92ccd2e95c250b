//go:build linux

package ops_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// printed is what a verb prints about a running Forebay.
func printed(t *testing.T, f *forebay, verb string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, verb, "--admin", f.admin).Output()
	if err != nil {
		t.Fatalf("forebay %s: %v", verb, err)
	}
	return string(out)
}

// TestAlertsOfARunningForebay: Prometheus takes the rules, and the expressions of the
// dashboard too.
func TestAlertsOfARunningForebay(t *testing.T) {
	promtool := need(t, "promtool", "prometheus")
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	f := serve(t, behindProxy(t, upstream.URL))
	alerts := printed(t, f, "alerts")
	if !strings.Contains(alerts, `gate="all"`) {
		t.Errorf("the rules do not name the gate that runs:\n%s", alerts)
	}
	promCheck(t, promtool, alerts)

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(printed(t, f, "dashboards")), &dashboard); err != nil {
		t.Fatal(err)
	}
	rules := "groups:\n- name: panels\n  rules:\n"
	filled := strings.NewReplacer("$__rate_interval", "1m", "$gate", ".*")
	for i, p := range dashboard.Panels {
		for k, target := range p.Targets {
			expr, _ := json.Marshal(filled.Replace(target.Expr)) // JSON is YAML
			rules += fmt.Sprintf("  - record: panel:%d:%d\n    expr: %s\n", i, k, expr)
		}
	}
	promCheck(t, promtool, rules)
}

func promCheck(t *testing.T, promtool, rules string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rules.yml")
	writeFile(t, file, rules)
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
		t.Errorf("promtool: %v\n%s\n%s", err, out, rules)
	}
}

var patienceOfRule = regexp.MustCompile(`(?m)^(\s+for:) .*$`)

// TestPrometheusRaisesAnAlert: the real Prometheus scrapes us, and raises the alert of a
// gate that somebody has closed. The rules are as printed, but for their patience.
func TestPrometheusRaisesAnAlert(t *testing.T) {
	prometheus := need(t, "prometheus", "prometheus")
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	f := serve(t, behindProxy(t, upstream.URL))
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "rules.yml"), patienceOfRule.ReplaceAllString(printed(t, f, "alerts"), "$1 0s"))
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [rules.yml]\n"+
		"scrape_configs:\n- job_name: forebay\n  static_configs: [{targets: [%q]}]\n", f.admin))
	p := start(t, exec.Command(prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.level=info"))
	address := ""
	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	until(t, "Prometheus listens", func() bool {
		for _, line := range p.said() {
			if m := listening.FindStringSubmatch(line); m != nil {
				address = m[1]
			}
		}
		return address != ""
	})
	raised := func() string { return get(t, "http://"+address+"/api/v1/alerts").body }
	until(t, "Prometheus has scraped a gate that is well", func() bool {
		return strings.Contains(get(t, "http://"+address+"/api/v1/query?query=forebay_limit").body, `"gate":"all"`)
	})
	if got := raised(); strings.Contains(got, "ForebayClosed") {
		t.Errorf("an alert before anything is wrong: %s", got)
	}
	if out, err := exec.CommandContext(t.Context(), program, "set", "all.max_in_flight", "closed", "--why", "a test", "--admin", f.admin).CombinedOutput(); err != nil {
		t.Fatalf("forebay set: %v\n%s", err, out)
	}
	until(t, "the alert of a closed gate", func() bool {
		got := raised()
		return strings.Contains(got, `"alertname":"ForebayClosed"`) && strings.Contains(got, `"state":"firing"`)
	})
}
