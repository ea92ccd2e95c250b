package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Auto is what the metrics show of a limit that finds itself.
type Auto struct {
	Gate               string
	Centre             float64
	Phase              string // one of AutoPhases
	Elasticity, Unsure float64
	Overload           float64
	Took               time.Duration
	Rate               float64 // 0: not known
	Cap                int     // 0: not known
	Phases             uint64
	Moves              map[string]uint64 // by reason
	Moved              time.Time         // zero: it has not
}

// AutoPhases are the words for what is tried.
var AutoPhases = []string{"below", "above", "resting"}

// autos shows those limits at the moment of a scrape.
type autos struct {
	look                     func() []Auto
	gauges                   []autoGauge
	phase, phases, by, moved *prometheus.Desc
}

type autoGauge struct {
	desc *prometheus.Desc
	of   func(Auto) float64
}

// ShowAutos shows what look returns.
func (m *Metrics) ShowAutos(look func() []Auto) {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("forebay_adaptive_"+name, help, append([]string{"gate"}, labels...), nil)
	}
	m.registry.MustRegister(&autos{
		look: look,
		gauges: []autoGauge{
			{desc("centre", "The limit around which others are tried. What is in force is forebay_limit."),
				func(a Auto) float64 { return a.Centre }},
			{desc("elasticity", "Per cent more that are done for one per cent more that may run, by the last comparison. Well above 0: the limit rises."),
				func(a Auto) float64 { return a.Elasticity }},
			{desc("elasticity_error", "Standard error of forebay_adaptive_elasticity; 0: nothing was compared yet."),
				func(a Auto) float64 { return a.Unsure }},
			{desc("overload_ratio", "Calls that came over calls that were let in, in the last second; 1: as many."),
				func(a Auto) float64 { return a.Overload }},
			{desc("service_seconds", "How long calls take, without the line; 0: not known."),
				func(a Auto) float64 { return a.Took.Seconds() }},
			{desc("rate", "Calls that end in a second while the gate is full; 0: not known."),
				func(a Auto) float64 { return a.Rate }},
			{desc("deadline_cap", "The most that the deadline allows to run at that rate; 0: not known."),
				func(a Auto) float64 { return float64(a.Cap) }},
		},
		phase:  desc("phase", "1 for what is tried now: a limit below the centre, one above it, or none (resting).", "phase"),
		phases: desc("phases_total", "Phases that have taught something. It stands still while the gate is not full: then nothing is tried."),
		by:     desc("moves_total", "Moves of the centre, by why: climb, descend, settle, deadline, overloaded or unrelated.", "reason"),
		moved:  desc("last_move_timestamp_seconds", "When the centre has moved last, in seconds since 1970. Only of those that have."),
	})
}

// Describe sends what there can be.
func (s *autos) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range s.gauges {
		ch <- g.desc
	}
	ch <- s.phase
	ch <- s.phases
	ch <- s.by
	ch <- s.moved
}

// Collect sends what there is.
func (s *autos) Collect(ch chan<- prometheus.Metric) {
	for _, a := range s.look() {
		send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{a.Gate}, labels...)...)
		}
		for _, g := range s.gauges {
			send(g.desc, prometheus.GaugeValue, g.of(a))
		}
		for _, phase := range AutoPhases {
			is := 0.0
			if phase == a.Phase {
				is = 1
			}
			send(s.phase, prometheus.GaugeValue, is, phase)
		}
		send(s.phases, prometheus.CounterValue, float64(a.Phases))
		for reason, n := range a.Moves {
			send(s.by, prometheus.CounterValue, float64(n), reason)
		}
		if !a.Moved.IsZero() {
			send(s.moved, prometheus.GaugeValue, seconds(a.Moved))
		}
	}
}
