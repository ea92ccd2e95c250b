package forebay

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/forebay/internal/feed"
)

func TestStatsOverTheCluster(t *testing.T) {
	s := &source{}
	gs, err := NewGates(Config{Name: "orders", MaxInFlight: 8, Cluster: s}, Config{Name: "local", MaxInFlight: 2})
	if err != nil {
		t.Fatal(err)
	}
	s.Renew(time.Now().Add(time.Hour))
	s.Lend(3, nil)
	take(t, gs.Get("orders"), 2)

	// Nothing is known of the others yet.
	st, _ := gs.Stats("orders")
	if st.Capacity != 8 || st.InUse != 2 || st.Available != 6 || *st.Local != (Local{Slots: 3, Available: 1, InUse: 2}) || st.Cluster.Epoch != 0 {
		t.Errorf("%+v, local %+v", st, st.Local)
	}
	s.stats = feed.Stats{
		Mode: "normal", Epoch: 7, Age: 1500 * time.Millisecond, Limit: 20, InUse: 11, Held: 15, Waiting: 4, Learning: time.Second,
		Instances: []feed.Instance{{ID: "a", Host: "shop-1", Self: true, Held: 3, InUse: 2, Lease: 2 * time.Second, Seen: time.Millisecond, Oldest: time.Minute, Limit: 8}},
	}
	st, _ = gs.Stats("orders")
	if st.Capacity != 20 || st.InUse != 11 || st.Available != 9 || st.Waiting != 4 || st.Local.InUse != 2 || st.Accepted != 1 {
		t.Errorf("%+v", st)
	}
	text, err := json.Marshal(st.Cluster)
	if want := `{"mode":"normal","epoch":7,"age_ms":1500,"limit":20,"overridden":false,"held":15,"in_use":11,"over":0,"waiting":4,` +
		`"reclaimed":0,"lost":0,"lapses":0,"exchanges":0,"failures":0,"learning_ms":1000,"instances":[{"id":"a","host":"shop-1",` +
		`"self":true,"held":3,"in_use":2,"waiting":0,"lease_ms":2000,"seen_ms":1,"oldest_ms":60000,"limit":8}]}`; err != nil || string(text) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text, want)
	}
	s.stats.Limit = 10 // lowered below what runs
	if st, _ = gs.Stats("orders"); st.Available != 0 {
		t.Errorf("%+v", st)
	}

	// The gate itself speaks of this process, and one without a cluster of nothing else.
	if st := gs.Get("orders").Stats(); st.Capacity != 8 || st.InUse != 2 || st.Local != nil || st.Cluster != nil {
		t.Errorf("%+v", st)
	}
	if st, ok := gs.Stats("local"); !ok || st.Local != nil || st.Cluster != nil || st.Capacity != 2 {
		t.Errorf("%+v", st)
	}
	if _, ok := gs.Get("local").ClusterStats(); ok {
		t.Error("a gate without a cluster has its stats")
	}
}

// TestOP08NoLimitIsGuessed is OP-08: however many processors there are, a gate without a
// limit is an error and not a guess, and CPULimit goes by those in force when it is called,
// is never 0 and remembers nothing.
func TestOP08NoLimitIsGuessed(t *testing.T) {
	cpus := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cpus)
	for _, n := range []int{1, 64, 2} { // 1 is also what half a processor is
		runtime.GOMAXPROCS(n)
		if _, err := New(Config{Name: "g"}); err == nil || !strings.Contains(err.Error(), "MaxInFlight is 0") {
			t.Errorf("on %d processors a gate without a limit: %v", n, err)
		}
		for perCPU, want := range map[float64]int{0.5: max(1, n/2), 1: n, 4: 4 * n} {
			if got := CPULimit(perCPU); got != want {
				t.Errorf("CPULimit(%v) on %d processors = %d, want %d", perCPU, n, got, want)
			}
		}
	}
}

func TestCPULimit(t *testing.T) {
	cpus := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(cpus)
	for perCPU, want := range map[float64]int{1: 4, 1.6: 6, 0.3: 1, 1e-9: 1, 1e9: maxUnits, math.Inf(1): maxUnits} {
		if got := CPULimit(perCPU); got != want {
			t.Errorf("CPULimit(%v) = %d, want %d", perCPU, got, want)
		}
	}
	runtime.GOMAXPROCS(3)
	if got := CPULimit(2); got != 6 {
		t.Errorf("CPULimit(2) on 3 CPUs = %d", got)
	}
	for _, wrong := range []float64{0, -1, math.NaN()} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("CPULimit(%v) does not panic", wrong)
				}
			}()
			CPULimit(wrong)
		}()
	}
}
