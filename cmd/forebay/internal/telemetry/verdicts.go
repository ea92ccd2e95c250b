package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay/cmd/forebay/internal/verdict"
)

// verdicts shows what is wrong with gates at the moment of a scrape.
type verdicts struct {
	seen                    *verdict.Recorder
	verdict, waiting, early *prometheus.Desc
}

// ShowVerdicts shows what the recorder says.
func (m *Metrics) ShowVerdicts(seen *verdict.Recorder) {
	m.registry.MustRegister(&verdicts{
		seen: seen,
		verdict: prometheus.NewDesc("forebay_verdict",
			"1 for each verdict that is up, with what is wrong with the gate; docs/runbook.md says what to do. None of a gate that is well.", []string{"gate", "verdict"}, nil),
		waiting: prometheus.NewDesc("forebay_waits_long",
			"1 if the slowest twentieth of the calls has waited for half of max_wait or more nearly all of the last 10 s: the early warning.", []string{"gate"}, nil),
		early: prometheus.NewDesc("forebay_early_retries_total",
			"Requests that came back before the Retry-After that they were given was over.", []string{"gate"}, nil),
	})
}

// Describe sends what there can be.
func (v *verdicts) Describe(ch chan<- *prometheus.Desc) {
	ch <- v.verdict
	ch <- v.waiting
	ch <- v.early
}

// Collect sends what there is.
func (v *verdicts) Collect(ch chan<- prometheus.Metric) {
	for _, one := range v.seen.Verdicts() {
		ch <- prometheus.MustNewConstMetric(v.verdict, prometheus.GaugeValue, 1, one.Gate, one.Verdict)
	}
	long := map[string]float64{}
	for _, gate := range v.seen.WaitLong() {
		long[gate] = 1
	}
	for gate, n := range v.seen.EarlyRetries() {
		ch <- prometheus.MustNewConstMetric(v.waiting, prometheus.GaugeValue, long[gate], gate)
		ch <- prometheus.MustNewConstMetric(v.early, prometheus.CounterValue, float64(n), gate)
	}
}
