package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Connections is what the metrics show of clients' connections. They are no requests:
// an idle one has nothing to do with any gate.
type Connections struct {
	Open                       int
	Evicted                    uint64 // asked for nothing, and had to go for others
	RefusedMax, RefusedAddress uint64 // there were too many, in all or of one address
}

// ShowConnections shows what counts returns.
func (m *Metrics) ShowConnections(counts func() Connections) {
	m.registry.MustRegister(&connectionsCollector{
		counts:  counts,
		open:    prometheus.NewDesc("forebay_connections", "Connections of clients that are open, idle ones included.", nil, nil),
		evicted: prometheus.NewDesc("forebay_connections_evicted_total", "Connections that asked for nothing and were closed to make room for others.", nil, nil),
		refused: prometheus.NewDesc("forebay_connections_refused_total", "Connections that were turned away: there were too many in all (max), or of one address (per_address).", []string{"reason"}, nil),
	})
}

type connectionsCollector struct {
	counts                 func() Connections
	open, evicted, refused *prometheus.Desc
}

// Describe sends what there can be.
func (c *connectionsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.open
	ch <- c.evicted
	ch <- c.refused
}

// Collect sends what there is.
func (c *connectionsCollector) Collect(ch chan<- prometheus.Metric) {
	n := c.counts()
	ch <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(n.Open))
	ch <- prometheus.MustNewConstMetric(c.evicted, prometheus.CounterValue, float64(n.Evicted))
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(n.RefusedMax), "max")
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(n.RefusedAddress), "per_address")
}
