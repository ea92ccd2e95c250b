package cluster

import (
	"math"
	"testing"
)

// replyText returns a reply as the script packs it, with other values in some places.
func replyText(other map[int]int64) string {
	var p packed
	p.list(replyParts)
	for place, n := range []int64{5, 7, 4, 9, 1, 0, 10, 0, -1, 0, 3, 3, 1, 2, 5, 0, 0, 0, 0, 800} {
		if o, ok := other[place]; ok {
			n = o
		}
		p.int(n)
	}
	p.list(0)
	return string(p)
}

// TestImpossibleReply: figures that no ledger has said that keeps its rules are not
// believed, whatever is kept there.
func TestImpossibleReply(t *testing.T) {
	r, err := ParseReply(replyText(nil))
	if err != nil || r.Epoch != 5 || r.Granted-r.Returned != 3 || r.Limit != 10 || r.Instances != 2 || r.Clock != 800 {
		t.Fatalf("it is %+v, %v", r, err)
	}
	for name, place := range map[string]int{
		"Epoch": 0, "Granted": 1, "Returned": 2, "Heard": 3, "Queued": 4, "Lost": 5, "Limit": 6,
		"Held": 10, "InUse": 11, "Waiting": 12, "Instances": 13, "Share": 14, "Learning": 16,
	} {
		if r, err := ParseReply(replyText(map[int]int64{place: -1})); err == nil {
			t.Errorf("%s of -1 is believed: %+v", name, r)
		}
	}
	for name, place := range map[string]int{"Epoch": 0, "Granted": 1, "Returned": 2, "Heard": 3, "Limit": 6, "Share": 14} {
		if r, err := ParseReply(replyText(map[int]int64{place: math.MaxInt64})); err == nil {
			t.Errorf("%s of %d is believed: %+v", name, int64(math.MaxInt64), r)
		}
	}
	for what, other := range map[string]map[int]int64{
		"no epoch": {0: 0}, "more held than there can be": {1: 5 + maxUnits}, "more returned than granted": {2: 8},
	} {
		if r, err := ParseReply(replyText(other)); err == nil {
			t.Errorf("%s is believed: %+v", what, r)
		}
	}
}

func TestImpossibleNews(t *testing.T) {
	for _, text := range []string{"n 9223372036854775807", "l 1048576", "n -1", "g 5 -7 -", "n 3 4"} {
		if n, err := ParseNews(text); err == nil {
			t.Errorf("%q is believed: %+v", text, n)
		}
	}
	if n, err := ParseNews("l 1048575"); err != nil || n.Count != maxUnits {
		t.Errorf("it is %+v, %v", n, err)
	}
}
