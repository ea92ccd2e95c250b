package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/forebay/contrib/promgate"
)

//go:generate go test -count=1 -run ^TestMetricsDoc$ -update .

// Metrics is what a scrape of the program reads. Make one with [NewMetrics]; it is
// safe for concurrent use and has nothing to close.
type Metrics struct {
	// Gates observes the gates, and shows those that it watches.
	Gates *promgate.Collector
	// Requests measures what clients see.
	Requests *Requests

	registry   *prometheus.Registry
	reloaded   prometheus.Gauge
	reloadedAt prometheus.Gauge
}

// NewMetrics returns the metrics of a program that has just read its configuration
// and writes to the given log. The registry is its own, so two programs can run in
// one process.
func NewMetrics(l *Log) *Metrics {
	m := &Metrics{
		Gates: promgate.New(promgate.Config{}), Requests: newRequests(),
		registry: prometheus.NewRegistry(),
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "forebay_config_last_reload_successful",
			Help: "1 if the configuration was last read without a mistake; 0: it was not, and the one before is in force.",
		}),
		reloadedAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "forebay_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was read, in seconds since 1970.",
		}),
	}
	m.registry.MustRegister(
		m.Gates, m.Requests.took, m.reloaded, m.reloadedAt, newLogCollector(l),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.Reloaded(true, l.began)
	return m
}

// Reloaded notes that the configuration was read, with or without success.
func (m *Metrics) Reloaded(ok bool, at time.Time) {
	if !ok {
		m.reloaded.Set(0)
		return
	}
	m.reloaded.Set(1)
	m.reloadedAt.Set(seconds(at))
}

// Handler returns the handler that a scrape asks. A metric that cannot be read does
// not hide the others.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// logCollector shows what a log left out.
type logCollector struct {
	log             *Log
	leftOut, failed *prometheus.Desc
}

func newLogCollector(l *Log) *logCollector {
	return &logCollector{
		log: l,
		leftOut: prometheus.NewDesc("forebay_log_left_out_total",
			"Log lines that were not written: of more than ten a second, or because the destination was too slow. The gate is empty for calls that passed none and for the program's own lines.",
			[]string{"gate"}, nil),
		failed: prometheus.NewDesc("forebay_log_errors_total",
			"Log lines that the destination refused, a full disk for instance. They count as left out too.", nil, nil),
	}
}

// Describe sends what there can be.
func (c *logCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.leftOut
	ch <- c.failed
}

// Collect sends what there is.
func (c *logCollector) Collect(ch chan<- prometheus.Metric) {
	byGate := map[string]uint64{"": 0} // from the start, so that the first has an increase
	c.log.paces.each(func(p *pace) { byGate[p.of.gate] += p.total.Load() })
	for gate, n := range byGate {
		ch <- prometheus.MustNewConstMetric(c.leftOut, prometheus.CounterValue, float64(n), gate)
	}
	ch <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(c.log.failed.Load()))
}
