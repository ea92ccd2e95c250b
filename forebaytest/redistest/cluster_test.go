package redistest

import (
	"strconv"
	"strings"
	"testing"
)

func TestMove(t *testing.T) {
	k := StartCluster(t, ClusterConfig{})
	const key = "forebay:{reports}"
	from := k.Owner(key)
	to := k.Nodes[0]
	if to == from {
		to = k.Nodes[1]
	}
	from.Must("SET", key, "value")
	moved := "MOVED " + strconv.Itoa(k.Slot(key)) + " "
	if _, err := to.Do("GET", key); err == nil || err.Error() != moved+from.Addr() {
		t.Errorf("before: %v, want %s%s", err, moved, from.Addr())
	}
	k.Move(key, to, func() {
		if _, err := from.Do("GET", key); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
			t.Errorf("midway: %v, want ASK", err)
		}
	})
	if got := to.Must("GET", key); got != "value" {
		t.Errorf("after: %v, want the value", got)
	}
	if _, err := from.Do("GET", key); err == nil || err.Error() != moved+to.Addr() {
		t.Errorf("after: %v, want %s%s", err, moved, to.Addr())
	}
	if k.Owner(key) != to {
		t.Errorf("the owner is %s, want %s", k.Owner(key).Addr(), to.Addr())
	}
}
