package check

import (
	"path/filepath"
	"slices"
	"testing"

	"example.com/forebay/cmd/forebay/internal/config"
)

// TestShopsLanes: the worked example of docs/priorities.md is sound, and leads requests as
// it says.
func TestShopsLanes(t *testing.T) {
	c, err := config.Load(filepath.Join("..", "..", "..", "..", "examples", "shop", "forebay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if findings := Check(c); Worst(findings) < Unknown {
		t.Errorf("said is %v", findings)
	}
	for request, want := range map[string]string{
		"GET /admin/info": "operators", "POST /api/orders": "order-intake", "GET /api/orders/7": "order-intake",
		"GET /reports/revenue": "reporting", "GET /REPORTS/revenue": "", "GET /": "", "GET /health": "",
	} {
		e, err := Explain(c, request)
		if err != nil || e.Lane != want {
			t.Errorf("%s is of lane %q, want %q (%v)", request, e.Lane, want, err)
		}
	}
	e, _ := Explain(c, "GET /REPORTS/revenue")
	if !slices.Contains(e.Why, "read in another way, the path is one of /reports/ as well, which changes nothing") {
		t.Errorf("why: %q", e.Why)
	}
}
