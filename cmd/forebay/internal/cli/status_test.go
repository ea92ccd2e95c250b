package cli

import (
	"strings"
	"testing"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
)

// TestStatusHasLanes: a gate's lanes stand below it, that of calls without one last.
func TestStatusHasLanes(t *testing.T) {
	var b strings.Builder
	err := printStats(&b, []gateStatus{
		{Stats: forebay.Stats{Name: "orders", Capacity: 12, InUse: 3, Waiting: 1, Accepted: 70, RejectedShed: 2, Lanes: []forebay.LaneStats{
			{Name: "order-intake", InUse: 2, Waiting: 1, Granted: 60}, {InUse: 1, Granted: 10, Refused: 2},
		}}},
		{Stats: forebay.Stats{Name: "ops", Capacity: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"gate in flight limit waiting accepted refused left",
		"orders 3 12 1 70 2 0", "orders: order-intake 2 1 60 0", "orders: no lane 1 0 10 2", "ops 0 2 0 0 0 0",
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("printed:\n%s", b.String())
	}
}

// TestStatusSaysWhyALimitIs: one that finds itself, unless it was set by hand.
func TestStatusSaysWhyALimitIs(t *testing.T) {
	for want, g := range map[string]gateStatus{
		"12":             {Stats: forebay.Stats{Capacity: 12}},
		"12 auto, climb": {Stats: forebay.Stats{Capacity: 12}, Auto: &admin.Auto{Reason: "climb"}},
		"3":              {Stats: forebay.Stats{Capacity: 3}, Auto: &admin.Auto{Reason: "climb", SetTo: 3}},
		"closed":         {Auto: &admin.Auto{Reason: "climb"}},
		"12 draining":    {Stats: forebay.Stats{Capacity: 12, Draining: true}, Auto: &admin.Auto{Reason: "climb"}},
	} {
		if got := g.limit(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
