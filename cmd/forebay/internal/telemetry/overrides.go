package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Override is what the metrics show of a limit that was set by hand.
type Override struct {
	Gate  string
	Limit int       // 0: closed
	Since time.Time // zero: it was set at another program of the cluster
	Until time.Time // zero: until it is taken back
}

// overrides shows those in force at the moment of a scrape.
type overrides struct {
	look                func() []Override
	limit, since, until *prometheus.Desc
}

// ShowOverrides shows what look returns.
func (m *Metrics) ShowOverrides(look func() []Override) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"gate"}, nil) }
	m.registry.MustRegister(&overrides{
		look:  look,
		limit: desc("forebay_override_limit", "The limit that was set by hand; 0: closed. Only of gates of which it was."),
		since: desc("forebay_override_since_timestamp_seconds", "When it was set, in seconds since 1970. Only of those that were set at this program."),
		until: desc("forebay_override_until_timestamp_seconds", "When it ends by itself, in seconds since 1970; 0: when somebody takes it back."),
	})
}

// Describe sends what there can be.
func (o *overrides) Describe(ch chan<- *prometheus.Desc) {
	ch <- o.limit
	ch <- o.since
	ch <- o.until
}

// Collect sends what there is.
func (o *overrides) Collect(ch chan<- prometheus.Metric) {
	for _, one := range o.look() {
		send := func(desc *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, one.Gate)
		}
		send(o.limit, float64(one.Limit))
		if !one.Since.IsZero() {
			send(o.since, seconds(one.Since))
		}
		until := 0.0
		if !one.Until.IsZero() {
			until = seconds(one.Until)
		}
		send(o.until, until)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
