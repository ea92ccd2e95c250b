package cluster

import (
	"slices"
	"testing"
)

// TestHoldingAre: what the ledger says is ours is, also what we had before, and what we
// gave back in a message that it never heard.
func TestHoldingAre(t *testing.T) {
	h := holding{}
	h.add([]Slot{{Number: 1, Fence: 10}, {Number: 2, Fence: 20}, {Number: 3, Fence: 30}})
	h.lend()
	h.back([]Slot{{Number: 2, Fence: 20}})
	h.told()
	h.are([]Slot{{Number: 1, Fence: 10}, {Number: 2, Fence: 20}, {Number: 4, Fence: 40}})
	if got, want := h.held(), []Slot{{Number: 1, Fence: 10}, {Number: 2, Fence: 20}, {Number: 4, Fence: 40}}; !slices.Equal(got, want) {
		t.Errorf("held are %v, want %v", got, want)
	}
	if got := h.lend(); len(got) != 3 {
		t.Errorf("%v are to be lent, want all of them", got)
	}
	holding(nil).are([]Slot{{Number: 1, Fence: 10}})
}
