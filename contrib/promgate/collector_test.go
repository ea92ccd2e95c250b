package promgate_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"example.com/forebay"
	"example.com/forebay/contrib/promgate"
)

// newGate returns a gate that the collector observes and watches.
func newGate(t *testing.T, m *promgate.Collector, c forebay.Config) *forebay.Gate {
	t.Helper()
	c.Observers = append(c.Observers, m)
	g, err := forebay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Watch(g); err != nil {
		t.Fatal(err)
	}
	return g
}

// hold acquires a lease that must be given.
func hold(t *testing.T, g *forebay.Gate, call forebay.Call) forebay.Lease {
	t.Helper()
	lease, err := g.Acquire(context.Background(), call)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// The lanes of a gate show, that of calls without one too, and those of no other gate.
func TestLanes(t *testing.T) {
	m := promgate.New(promgate.Config{})
	g := newGate(t, m, forebay.Config{Name: "shared", MaxInFlight: 3, Lanes: []forebay.Lane{{Name: "top", Rank: 1}, {Name: "low", Rank: 2}}})
	newGate(t, m, forebay.Config{Name: "plain", MaxInFlight: 1})
	hold(t, g, forebay.Call{Lane: "top", Cost: 2})
	hold(t, g, forebay.Call{Lane: "unheard of"})
	all := gather(t, m)
	for lane, want := range map[string]float64{"top": 2, "low": 0, "": 1} {
		wantValue(t, all, want, "forebay_lane_in_flight", "gate", "shared", "lane", lane)
		wantValue(t, all, 0, "forebay_lane_waiting", "gate", "shared", "lane", lane)
	}
	if got := len(all["forebay_lane_in_flight"]); got != 3 {
		t.Errorf("%d series, want those of one gate", got)
	}
}

// gather scrapes the collector by a registry that checks everything.
func gather(t *testing.T, m *promgate.Collector) map[string][]*dto.Metric {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]*dto.Metric{}
	for _, f := range families {
		byName[f.GetName()] = f.GetMetric()
	}
	return byName
}

// value returns the sum of the metrics of that name that have all given labels.
func value(all map[string][]*dto.Metric, name string, labels ...string) (sum float64) {
	for _, m := range all[name] {
		if matches(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

func matches(m *dto.Metric, labels []string) bool {
	for i := 0; i < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

func wantValue(t *testing.T, all map[string][]*dto.Metric, want float64, name string, labels ...string) {
	t.Helper()
	if got := value(all, name, labels...); got != want {
		t.Errorf("%s%v = %v, want %v", name, labels, got, want)
	}
}

func TestCollectorShowsGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promgate.New(promgate.Config{})
		g := newGate(t, m, forebay.Config{Name: "reports", MaxInFlight: 4, MaxWait: time.Second, Track: true, MaxHold: 5 * time.Second})
		first := hold(t, g, forebay.Call{Route: "/a", Cost: 2})
		time.Sleep(7 * time.Second)
		second := hold(t, g, forebay.Call{Route: "/a"})
		second.Release()
		second.Release()
		first = first.TimedOut()
		const want = `
# HELP forebay_in_flight Units that run now.
# TYPE forebay_in_flight gauge
forebay_in_flight{gate="reports"} 2
# HELP forebay_in_flight_peak Most units that ran at once in the last minute or since the last scrape, whichever is longer.
# TYPE forebay_in_flight_peak gauge
forebay_in_flight_peak{gate="reports"} 3
# HELP forebay_leases_granted_total Leases given.
# TYPE forebay_leases_granted_total counter
forebay_leases_granted_total{gate="reports"} 2
# HELP forebay_leases_released_total Leases given back.
# TYPE forebay_leases_released_total counter
forebay_leases_released_total{gate="reports"} 1
# HELP forebay_limit Units that may run at once; 0: the gate is closed.
# TYPE forebay_limit gauge
forebay_limit{gate="reports"} 4
# HELP forebay_limiter_panics_total Panics of the limiter, contained; the limit stayed as it was.
# TYPE forebay_limiter_panics_total counter
forebay_limiter_panics_total{gate="reports"} 0
# HELP forebay_observer_panics_total Panics of observers, contained; their events are missing from the other metrics.
# TYPE forebay_observer_panics_total counter
forebay_observer_panics_total{gate="reports"} 0
# HELP forebay_oldest_lease_seconds Age of the lease that is held longest; 0: none is. Only gates that track.
# TYPE forebay_oldest_lease_seconds gauge
forebay_oldest_lease_seconds{gate="reports"} 7
# HELP forebay_overdue_leases_total Leases that were held for longer than MaxHold; they are not taken away.
# TYPE forebay_overdue_leases_total counter
forebay_overdue_leases_total{gate="reports"} 1
# HELP forebay_stale_releases_total Releases of leases that had been given back already: harmless, and unless meant a bug in the caller.
# TYPE forebay_stale_releases_total counter
forebay_stale_releases_total{gate="reports"} 1
# HELP forebay_still_running Calls that still run though their callers were told that time is up. They keep their slots until they have ended.
# TYPE forebay_still_running gauge
forebay_still_running{gate="reports"} 1
# HELP forebay_waiting Calls in line now.
# TYPE forebay_waiting gauge
forebay_waiting{gate="reports"} 0
`
		err := testutil.CollectAndCompare(m, strings.NewReader(want),
			"forebay_in_flight", "forebay_in_flight_peak", "forebay_limit", "forebay_waiting", "forebay_oldest_lease_seconds",
			"forebay_leases_granted_total", "forebay_leases_released_total", "forebay_overdue_leases_total",
			"forebay_stale_releases_total", "forebay_observer_panics_total", "forebay_limiter_panics_total", "forebay_still_running")
		if err != nil {
			t.Error(err)
		}
		first.Release()
		all := gather(t, m)
		wantValue(t, all, 0, "forebay_still_running")
		wantValue(t, all, 2, "forebay_hold_seconds", "gate", "reports") // one of them held for no time at all
		wantValue(t, all, 0, "forebay_oldest_lease_seconds")
		wantValue(t, all, 1, "forebay_build_info")
		if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
	})
}

func TestCollectorOmitsWhatIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promgate.New(promgate.Config{})
		g := newGate(t, m, forebay.Config{Name: "bare", MaxInFlight: 1})
		hold(t, g, forebay.Call{}).Release()
		all := gather(t, m)
		for _, name := range []string{"forebay_hold_seconds", "forebay_oldest_lease_seconds"} {
			if got := all[name]; got != nil {
				t.Errorf("%s of a gate that does not track: %v", name, got)
			}
		}
		c := g.Config()
		c.Track = true
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		if got := len(gather(t, m)["forebay_oldest_lease_seconds"]); got != 1 {
			t.Errorf("%d series of forebay_oldest_lease_seconds once the gate tracks, want 1", got)
		}
		hold(t, g, forebay.Call{}).Release() // held for no time at all, and measured
		wantValue(t, gather(t, m), 1, "forebay_hold_seconds")
	})
}

// A counter that is born with refusals in it shows no increase.
func TestCountersBeginAtZero(t *testing.T) {
	m := promgate.New(promgate.Config{})
	g := newGate(t, m, forebay.Config{Name: "orders", MaxInFlight: 1})
	hold(t, g, forebay.Call{Route: "/o"}).Release()
	const want = `
# HELP forebay_decisions_total Calls by what the gate decided. Each call gets exactly one decision; refusals are rejected_*.
# TYPE forebay_decisions_total counter
forebay_decisions_total{decision="accepted",gate="orders",lane="",route="/o"} 1
forebay_decisions_total{decision="canceled",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="exempt",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_busy",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_caller",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_deadline",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_draining",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_shed",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_store",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_timeout",gate="orders",lane="",route="/o"} 0
forebay_decisions_total{decision="rejected_too_large",gate="orders",lane="",route="/o"} 0
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "forebay_decisions_total"); err != nil {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	m := promgate.New(promgate.Config{})
	g := newGate(t, m, forebay.Config{Name: "a", MaxInFlight: 1})
	if err := m.Watch(g, g); err != nil {
		t.Errorf("watching again: %v", err)
	}
	twin, _ := forebay.New(forebay.Config{Name: "a", MaxInFlight: 1})
	other, _ := forebay.New(forebay.Config{Name: "b", MaxInFlight: 1})
	err := m.Watch(other, twin, nil)
	if err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), "gate 2 ") {
		t.Errorf("a twin and nil: error %v, want one that names both", err)
	}
	if got := len(gather(t, m)["forebay_limit"]); got != 1 {
		t.Errorf("%d gates watched after an error, want 1", got)
	}
	m.Unwatch(g)
	if err := m.Watch(twin); err != nil {
		t.Errorf("after Unwatch: %v", err)
	}
	hold(t, g, forebay.Call{}).Release() // its events still count
	wantValue(t, gather(t, m), 1, "forebay_decisions_total", "gate", "a")
}
