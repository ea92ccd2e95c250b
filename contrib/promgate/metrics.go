package promgate

import (
	"reflect"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay"
)

// waitBuckets reach from "did not wait at all" to the longest patience that
// makes sense. Calls that never stood in line have waited exactly 0 and get a
// bucket of their own: the others are those that did wait. From there 100 µs, the
// cost of a handover, to 30 s, what clients and proxies in front commonly allow.
var waitBuckets = []float64{
	0, .0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
}

// holdBuckets are for work: from a cache hit to a report that takes minutes.
var holdBuckets = []float64{
	.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300,
}

func newDecided() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "forebay_decisions_total",
		Help: "Calls by what the gate decided. Each call gets exactly one decision; refusals are rejected_*.",
	}, []string{"gate", "route", "lane", "decision"})
}

func newWait() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "forebay_wait_seconds",
		Help:    `Time that calls spent in line until their decision. le="0": those that did not stand in line.`,
		Buckets: waitBuckets,
	}, []string{"gate", "decision"})
}

func newHold() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "forebay_hold_seconds",
		Help:    "Time that leases were held. Only gates that track.",
		Buckets: holdBuckets,
	}, []string{"gate"})
}

// gateMetric is a metric that is read from a gate at scrape time.
type gateMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*picture) float64
	only func(*picture) bool // nil: always
}

// picture is what a gate shows at one instant, and its recent peaks.
type picture struct {
	forebay.Stats
	inFlightPeak, waitingPeak int64
}

func gauge(name, help string, read func(*picture) float64) gateMetric {
	return gateMetric{
		desc: prometheus.NewDesc(name, help, []string{"gate"}, nil),
		kind: prometheus.GaugeValue, read: read,
	}
}

func counter(name, help string, read func(*picture) uint64) gateMetric {
	return gateMetric{
		desc: prometheus.NewDesc(name, help, []string{"gate"}, nil),
		kind: prometheus.CounterValue, read: func(p *picture) float64 { return float64(read(p)) },
	}
}

// gateMetrics are those of every watched gate. What [forebay.Stats] counts by
// decision is not among them: that a call is accepted can be taken back in it,
// when the caller leaves in that very instant, and counters must not go down.
func gateMetrics() []gateMetric {
	oldest := gauge("forebay_oldest_lease_seconds",
		"Age of the lease that is held longest; 0: none is. Only gates that track.", oldestSeconds)
	oldest.only = func(p *picture) bool { return p.Tracks }
	return []gateMetric{
		gauge("forebay_in_flight", "Units that run now.",
			func(p *picture) float64 { return float64(p.InUse) }),
		gauge("forebay_in_flight_peak", "Most units that ran at once in the last minute or since the last scrape, whichever is longer.",
			func(p *picture) float64 { return float64(p.inFlightPeak) }),
		gauge("forebay_still_running", "Calls that still run though their callers were told that time is up. They keep their slots until they have ended.",
			func(p *picture) float64 { return float64(p.StillRunning) }),
		gauge("forebay_limit", "Units that may run at once; 0: the gate is closed.",
			func(p *picture) float64 { return float64(p.Capacity) }),
		gauge("forebay_waiting", "Calls in line now.",
			func(p *picture) float64 { return float64(p.Waiting) }),
		gauge("forebay_waiting_peak", "Most calls that stood in line at once in the last minute or since the last scrape, whichever is longer.",
			func(p *picture) float64 { return float64(p.waitingPeak) }),
		oldest,
		counter("forebay_leases_granted_total", "Leases given.",
			func(p *picture) uint64 { return p.Granted }),
		counter("forebay_leases_released_total", "Leases given back.",
			func(p *picture) uint64 { return p.Released }),
		gauge("forebay_callers", "Callers with calls here that are told apart, where there is a bound for each.",
			func(p *picture) float64 { return float64(p.Callers) }),
		counter("forebay_callers_beyond_total", "Calls that shared one bound since too many callers had calls here.",
			func(p *picture) uint64 { return p.CallersBeyond }),
		counter("forebay_overdue_leases_total", "Leases that were held for longer than MaxHold; they are not taken away.",
			func(p *picture) uint64 { return p.Overdue }),
		counter("forebay_stale_releases_total", "Releases of leases that had been given back already: harmless, and unless meant a bug in the caller.",
			func(p *picture) uint64 { return p.StaleReleases }),
		counter("forebay_observer_panics_total", "Panics of observers, contained; their events are missing from the other metrics.",
			func(p *picture) uint64 { return p.ObserverPanics }),
		counter("forebay_limiter_panics_total", "Panics of the limiter, contained; the limit stayed as it was.",
			func(p *picture) uint64 { return p.LimiterPanics }),
	}
}

// laneMetric is a metric of each lane of a gate.
type laneMetric struct {
	desc *prometheus.Desc
	read func(forebay.LaneStats) float64
}

// laneMetrics are read at scrape time, of gates that have lanes. What was decided is in
// forebay_decisions_total by lane.
func laneMetrics() []laneMetric {
	gauge := func(name, help string, read func(forebay.LaneStats) float64) laneMetric {
		return laneMetric{prometheus.NewDesc(name, help, []string{"gate", "lane"}, nil), read}
	}
	return []laneMetric{
		gauge("forebay_lane_in_flight", "Units of a lane that run now. The lane is empty for calls without one.",
			func(l forebay.LaneStats) float64 { return float64(l.InUse) }),
		gauge("forebay_lane_waiting", "Calls of a lane in line now. The lane is empty for calls without one.",
			func(l forebay.LaneStats) float64 { return float64(l.Waiting) }),
	}
}

func oldestSeconds(p *picture) float64 {
	if p.OldestHolder == nil {
		return 0
	}
	return p.OldestHolder.Held.Seconds()
}

// newBuildInfo returns the one metric that says which version runs.
func newBuildInfo() prometheus.Metric {
	desc := prometheus.NewDesc("forebay_build_info", "1, with the version of the library and of Go.",
		nil, prometheus.Labels{"version": version(), "goversion": runtime.Version()})
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1)
}

// version returns the version of the library in this program, "unknown" if the
// build does not say.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	library := reflect.TypeFor[forebay.Gate]().PkgPath()
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == library && m.Version != "" {
			return m.Version
		}
	}
	return "unknown"
}
