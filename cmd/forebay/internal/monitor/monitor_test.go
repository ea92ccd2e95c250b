package monitor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

var some = []Gate{{Name: "orders"}, {Name: "reports/x", MaxWait: 100 * time.Millisecond}, {Name: "shared", MaxWait: time.Second, Shared: true}}

// readRule is a rule as it is in the file.
type readRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// readPanel is a panel as it is in the file.
type readPanel struct {
	ID                 int
	Title, Description string
	GridPos            struct{ H, W, X, Y int }
	Targets            []struct{ Expr string }
}

// read returns the rules of a file, by name, and in order.
func read(t *testing.T, gates []Gate) (byName map[string][]readRule) {
	t.Helper()
	text, err := Alerts(gates)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []readRule
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	byName = map[string][]readRule{}
	for _, g := range file.Groups {
		if len(g.Rules) == 0 {
			t.Errorf("the group %s is empty", g.Name)
		}
		for _, r := range g.Rules {
			byName[r.Alert] = append(byName[r.Alert], r)
		}
	}
	return byName
}

// TestAlertsFitTheGates: each patience has its rule, and the cluster only where there is
// one.
func TestAlertsFitTheGates(t *testing.T) {
	all := read(t, some)
	waits := all["ForebayWaitsLong"]
	if len(waits) != 2 || !strings.Contains(waits[0].Expr, `{gate="reports/x"}[5m]))) > 0.05`) || !strings.Contains(waits[1].Expr, `> 0.5`) {
		t.Errorf("rules of waiting: %+v", waits)
	}
	if len(all["ForebayStoreAway"]) != 1 {
		t.Error("a gate is shared, and nothing says that its store is away")
	}
	alone := read(t, some[:1])
	if len(alone["ForebayWaitsLong"])+len(alone["ForebayStoreAway"]) != 0 || len(alone["ForebayVerdict"]) != 1 {
		t.Errorf("rules of a gate that lets nobody wait: %+v", alone)
	}
}

var (
	metricName = regexp.MustCompile(`\b(forebay|http_server)_[a-z_]+`)
	suffix     = regexp.MustCompile(`_(bucket|count|sum)$`)
)

// TestOnlyMetricsThatThereAre: rules and pictures name none that is not scraped, and each
// alert is in the runbook.
func TestOnlyMetricsThatThereAre(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "..", "docs")
	known, err := os.ReadFile(filepath.Join(docs, "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join(docs, "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(expr string) {
		t.Helper()
		for _, name := range metricName.FindAllString(expr, -1) {
			if !strings.Contains(string(known), "`"+suffix.ReplaceAllString(name, "")+"`") {
				t.Errorf("%s is in no scrape: %s", name, expr)
			}
		}
	}
	for name, all := range read(t, some) {
		if !strings.Contains(string(runbook), "\n### "+name+"\n") {
			t.Errorf("%s is not in the runbook", name)
		}
		for _, r := range all {
			check(r.Expr)
			if r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["runbook"] != "docs/runbook.md#"+strings.ToLower(name) {
				t.Errorf("%+v", r)
			}
		}
	}
	for _, p := range pictures(true) {
		for _, e := range p.exprs {
			check(e[1])
		}
	}
}

// TestDashboardIsWhole: each panel has a place of its own, and something to show.
func TestDashboardIsWhole(t *testing.T) {
	for shared, gates := range map[bool][]Gate{true: some, false: some[:1]} {
		text, err := Dashboard(gates)
		if err != nil {
			t.Fatal(err)
		}
		var d struct{ Panels []readPanel }
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "forebay_cluster_") != shared {
			t.Errorf("shared is %v, and the cluster's panels are not as that", shared)
		}
		taken := map[any]string{}
		for i, p := range d.Panels {
			if other := taken[p.GridPos]; other != "" || p.GridPos.X < 0 || p.GridPos.Y < 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s stands at %+v, with %q", p.Title, p.GridPos, other)
			}
			taken[p.GridPos] = p.Title
			if p.ID != i+1 || p.Title == "" || p.Description == "" || len(p.Targets) == 0 || p.Targets[0].Expr == "" {
				t.Errorf("panel %+v", p)
			}
		}
	}
}
