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
	refused := prometheus.NewDesc("forebay_connections_refused_total", "Connections that were turned away: there were too many in all (max), or of one address (per_address).", []string{"reason"}, nil)
	m.registry.MustRegister(&figures[Connections]{counts, []figure[Connections]{
		gauge("forebay_connections", "Connections of clients that are open, idle ones included.",
			func(c Connections) float64 { return float64(c.Open) }),
		counter("forebay_connections_evicted_total", "Connections that asked for nothing and were closed to make room for others.",
			func(c Connections) float64 { return float64(c.Evicted) }),
		{refused, prometheus.CounterValue, func(c Connections) float64 { return float64(c.RefusedMax) }, []string{"max"}},
		{refused, prometheus.CounterValue, func(c Connections) float64 { return float64(c.RefusedAddress) }, []string{"per_address"}},
	}})
}
