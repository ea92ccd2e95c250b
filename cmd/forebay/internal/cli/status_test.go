package cli

import (
	"strings"
	"testing"

	"example.com/forebay"
)

// TestStatusHasLanes: a gate's lanes stand below it, that of calls without one last.
func TestStatusHasLanes(t *testing.T) {
	var b strings.Builder
	err := printStats(&b, []forebay.Stats{
		{Name: "orders", Capacity: 12, InUse: 3, Waiting: 1, Accepted: 70, RejectedShed: 2, Lanes: []forebay.LaneStats{
			{Name: "order-intake", InUse: 2, Waiting: 1, Granted: 60}, {InUse: 1, Granted: 10, Refused: 2},
		}},
		{Name: "ops", Capacity: 2},
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
