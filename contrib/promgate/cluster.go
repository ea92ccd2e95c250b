package promgate

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay"
	"example.com/forebay/cluster"
)

// modes are how a clustered gate can go on, in the words of [forebay.ClusterStats].
var modes = []string{"normal", "learning", "joining", "share", "open", "closed"}

// exchangeBuckets reach from a round trip within a machine to what is given up.
var exchangeBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25,
}

// clusterMetric is a metric of a gate whose slots come from a cluster.
type clusterMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(*forebay.ClusterStats) float64
}

// clusterMetrics are read at scrape time. Those over all programs are the same from
// each of them, and so to be taken once and not added up.
func clusterMetrics() []clusterMetric {
	metric := func(kind prometheus.ValueType) func(name, help string, read func(*forebay.ClusterStats) float64) clusterMetric {
		return func(name, help string, read func(*forebay.ClusterStats) float64) clusterMetric {
			return clusterMetric{prometheus.NewDesc(name, help, []string{"gate"}, nil), kind, read}
		}
	}
	gauge, counter := metric(prometheus.GaugeValue), metric(prometheus.CounterValue)
	return []clusterMetric{
		gauge("forebay_cluster_limit", "Units that may run at once over all instances; 0: closed. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Limit) }),
		gauge("forebay_cluster_held", "Units that are lent to all instances. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Held) }),
		gauge("forebay_cluster_held_here", "Units that are lent to this instance.",
			func(c *forebay.ClusterStats) float64 { return float64(here(c).Held) }),
		gauge("forebay_cluster_in_use", "Units that run over all instances, as they last said. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.InUse) }),
		gauge("forebay_cluster_waiting", "Calls in line over all instances, as they last said. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Waiting) }),
		gauge("forebay_cluster_over", "Units that are lent above the limit, after it was lowered. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Over) }),
		gauge("forebay_cluster_instances", "Instances that share the limit. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(len(c.Instances)) }),
		gauge("forebay_cluster_epoch", "Number of the store's state; another one: the state was lost. 0: none was heard of yet.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Epoch) }),
		gauge("forebay_cluster_learning_seconds", "Time until the store lends again after its state was lost; 0: it lends.",
			func(c *forebay.ClusterStats) float64 { return float64(c.LearningMS) / 1000 }),
		counter("forebay_cluster_exchanges_total", "Exchanges of this instance with the store.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Exchanges) }),
		counter("forebay_cluster_failures_total", "Exchanges of this instance with the store that failed, or took too long.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Failures) }),
		counter("forebay_cluster_reclaimed_total", "Units taken back from instances that died, in this epoch. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Reclaimed) }),
		counter("forebay_cluster_lost_total", "Units that instances held and the store knew nothing of, in this epoch. The same from each.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Lost) }),
		counter("forebay_cluster_lapses_total", "How often the lease of this instance ended with slots lent to it.",
			func(c *forebay.ClusterStats) float64 { return float64(c.Lapses) }),
	}
}

// here is the part of the program that is asked.
func here(c *forebay.ClusterStats) (part forebay.ClusterPart) {
	for _, p := range c.Instances {
		if p.Self {
			part = p
		}
	}
	return part
}

func newMode() *prometheus.Desc {
	return prometheus.NewDesc("forebay_cluster_mode",
		"1 for how the gate goes on at this instance: normal; learning: the store has lost its state and lends nothing for a while; joining: it has not answered yet; share, open, closed: it is away, and that is the policy.",
		[]string{"gate", "mode"}, nil)
}

func newExchanges() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "forebay_cluster_exchange_seconds",
		Help:    "Time of one exchange with the store, those that failed included. Only of a store that is given to Exchanges.",
		Buckets: exchangeBuckets,
	}, []string{"gate"})
}

// collectCluster sends what there is of a gate whose slots come from a cluster.
func (c *Collector) collectCluster(ch chan<- prometheus.Metric, gate string, st *forebay.ClusterStats) {
	for _, m := range c.clustered {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(st), gate)
	}
	for _, mode := range modes {
		on := 0.0
		if st.Mode == mode {
			on = 1
		}
		ch <- prometheus.MustNewConstMetric(c.mode, prometheus.GaugeValue, on, gate, mode)
	}
}

// Exchanges returns the store with its exchanges measured: give that to the cluster.
func (c *Collector) Exchanges(s cluster.Store) cluster.Store { return measured{s, c} }

// measured is a store whose exchanges are measured.
type measured struct {
	cluster.Store
	collector *Collector
}

// Exchange measures that of the store.
func (m measured) Exchange(ctx context.Context, r *cluster.Request) (cluster.Reply, error) {
	began := time.Now()
	rep, err := m.Store.Exchange(ctx, r)
	m.collector.gates.get(gateOf(r.Key)).exchange().Observe(time.Since(began).Seconds())
	return rep, err
}

// gateOf returns the gate's name in the key of its ledger.
func gateOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	return strings.TrimSuffix(rest, "}")
}
