package config

import (
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"example.com/forebay"
)

// counter counts decisions.
type counter struct {
	mu   sync.Mutex // guards seen
	seen map[string]int
}

func (c *counter) Observe(e forebay.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Kind == forebay.EventDecided {
		c.seen[e.Route+" "+e.Decision.String()]++
	}
}

func TestBuild(t *testing.T) {
	c := mustParse(t, contract)
	seen := counter{seen: map[string]int{}}
	gates, groups, err := c.Build(&seen)
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[string][]string{
		"/reports/7": {"reports"}, "/export/x": {"orders", "reports"}, "/health": nil, "/admin/": {"ops"}, "/x": {"orders"},
	} {
		p := groups.Lookup(httptest.NewRequest("GET", request, nil))
		if len(p.Gates) != len(want) {
			t.Errorf("%s passes %d gates, want %v", request, len(p.Gates), want)
			continue
		}
		for i, g := range p.Gates {
			if g.Name() != want[i] || g != gates.Get(want[i]) {
				t.Errorf("%s passes %s, want %v", request, g.Name(), want)
			}
		}
	}
	h := groups.Wrap(forebay.NewHealth())
	for _, path := range []string{"/health", "/reports/7"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	if seen.seen["/health exempt"] != 1 || seen.seen["GET /reports/ accepted"] != 1 {
		t.Errorf("seen: %v", seen.seen)
	}
}

func TestGroupsWithoutAGate(t *testing.T) {
	c := mustParse(t, small)
	if _, err := c.Groups(func(string) *forebay.Gate { return nil }); err == nil {
		t.Error("groups are made around a gate that is not there")
	}
}

// TestApply: a running gate takes over what changed and keeps who runs.
func TestApply(t *testing.T) {
	c := mustParse(t, contract)
	gates, _, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	gate := gates.Get("reports")
	lease, ok := gate.TryAcquire(forebay.Call{})
	if !ok {
		t.Fatal("no slot")
	}
	defer lease.Release()
	g := *c.Gate("reports")
	g.MaxInFlight, g.MaxWait = 7, 200*time.Millisecond
	if err := g.Apply(gate); err != nil {
		t.Fatal(err)
	}
	if s := gate.Stats(); s.Capacity != 7 || s.InUse != 1 || gate.Config().MaxWait != g.MaxWait {
		t.Errorf("%+v, max_wait %v", s, gate.Config().MaxWait)
	}
	g.Closed, g.MaxInFlight = true, 1
	for range 2 { // the second one changes nothing
		if err := g.Apply(gate); err != nil {
			t.Fatal(err)
		}
		if s := gate.Stats(); s.Capacity != 0 || s.InUse != 1 {
			t.Errorf("closed: %+v", s)
		}
	}
	g.Closed, g.MaxInFlight = false, 3
	if err := g.Apply(gate); err != nil || gate.Stats().Capacity != 3 {
		t.Errorf("opened again: %+v, %v", gate.Stats(), err)
	}
	g.MaxInFlight = 0
	if err := g.Apply(gate); err == nil {
		t.Error("a limit of 0 is applied")
	}
}
