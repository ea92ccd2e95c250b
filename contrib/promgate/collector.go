package promgate

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay"
)

// Config says how a [Collector] counts. The zero value is the safe default.
type Config struct {
	// MaxRoutes is how many routes of each gate get a label of their own; those
	// that come later are counted as "other". 0 means 1000, far more than a router
	// has patterns and what a Prometheus takes without harm; half or twice of it
	// makes no difference but to a program that gives raw paths as routes. Below 0
	// every route is "other".
	MaxRoutes int
}

const (
	defaultMaxRoutes = 1000
	// maxGates bounds the label gate for programs that make gates as they go, one
	// for each customer say. Watched gates are the program's word and not cut off.
	maxGates = 1000
)

// Collector counts the events of gates and shows them, and what watched gates
// are like, to Prometheus. Make one with [New]; it is safe for concurrent use and
// has nothing to close. Give it to the gates as an observer, tell it the gates
// with [Collector.Watch], and register it once.
type Collector struct {
	maxRoutes int
	gates     *table[gateSeries]

	decided   *prometheus.CounterVec
	wait      *prometheus.HistogramVec
	hold      *prometheus.HistogramVec
	metrics   []gateMetric
	lanes     []laneMetric
	clustered []clusterMetric
	mode      *prometheus.Desc
	exchanges *prometheus.HistogramVec
	buildInfo prometheus.Metric

	mu      sync.Mutex // guards what follows
	watched []watched
}

// watched is a gate with the peaks that its events have shown.
type watched struct {
	gate   *forebay.Gate
	series *gateSeries
}

var (
	_ forebay.Observer     = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// New returns a collector that has seen no event and watches no gate.
func New(config Config) *Collector {
	c := &Collector{
		maxRoutes: config.MaxRoutes,
		decided:   newDecided(), wait: newWait(), hold: newHold(),
		metrics: gateMetrics(), lanes: laneMetrics(), buildInfo: newBuildInfo(),
		clustered: clusterMetrics(), mode: newMode(), exchanges: newExchanges(),
	}
	if c.maxRoutes == 0 {
		c.maxRoutes = defaultMaxRoutes
	}
	c.gates = newTable(maxGates, c.newGateSeries)
	return c
}

// Watch makes the collector show what the gates are like at each scrape. It
// keeps them until [Collector.Unwatch]. To watch a gate again changes nothing; two
// gates of one name cannot be told apart in metrics and are an error, and so is a
// nil gate. On error nothing has changed, and the error names every mistake.
func (c *Collector) Watch(gates ...*forebay.Gate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := slices.Clone(c.watched)
	var errs []error
	for i, g := range gates {
		if g == nil {
			errs = append(errs, fmt.Errorf("promgate: gate %d to watch is nil; leave it out", i))
			continue
		}
		at := slices.IndexFunc(next, func(w watched) bool { return w.gate.Name() == g.Name() })
		switch {
		case at < 0:
			next = append(next, watched{g, c.gates.keep(g.Name())})
		case next[at].gate != g:
			errs = append(errs, fmt.Errorf("promgate: another gate named %q is watched; every gate needs its own name", g.Name()))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.watched = next
	for _, w := range next {
		w.series.tracks.Store(w.gate.Stats().Tracks)
	}
	return nil
}

// Unwatch ends the watch of gates that are gone. What was counted of their
// events stays, since counters never go down.
func (c *Collector) Unwatch(gates ...*forebay.Gate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched = slices.DeleteFunc(slices.Clone(c.watched), func(w watched) bool {
		return slices.Contains(gates, w.gate)
	})
}

// Describe sends what there can be. It is prometheus.Collector's method.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.buildInfo.Desc()
	for _, m := range c.metrics {
		ch <- m.desc
	}
	for _, m := range c.lanes {
		ch <- m.desc
	}
	for _, m := range c.clustered {
		ch <- m.desc
	}
	ch <- c.mode
	c.decided.Describe(ch)
	c.wait.Describe(ch)
	c.hold.Describe(ch)
	c.exchanges.Describe(ch)
}

// Collect sends what there is. It is prometheus.Collector's method.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	c.mu.Lock()
	all := c.watched // never changed, only replaced
	c.mu.Unlock()
	ch <- c.buildInfo
	over := overClusters(all)
	for i, w := range all {
		p := w.look(now)
		for _, m := range c.metrics {
			if m.only == nil || m.only(p) {
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.read(p), p.Name)
			}
		}
		for _, l := range p.Lanes {
			for _, m := range c.lanes {
				ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.read(l), p.Name, l.Name)
			}
		}
		if over[i] != nil {
			c.collectCluster(ch, p.Name, over[i])
		}
	}
	c.decided.Collect(ch)
	c.wait.Collect(ch)
	c.hold.Collect(ch)
	c.exchanges.Collect(ch)
}

// overClusters asks all gates at once what they are like over their clusters: each may
// ask a store, which takes a moment. Nil: a gate has none.
func overClusters(all []watched) []*forebay.ClusterStats {
	over := make([]*forebay.ClusterStats, len(all))
	var asked sync.WaitGroup
	for i, w := range all {
		if w.gate.Config().Cluster == nil {
			continue
		}
		asked.Go(func() {
			if st, ok := w.gate.ClusterStats(); ok {
				over[i] = &st
			}
		})
	}
	asked.Wait()
	return over
}

// look asks the gate once for what it shows.
func (w watched) look(now time.Time) *picture {
	w.series.peaks.turn(now)
	p := &picture{Stats: w.gate.Stats()}
	w.series.tracks.Store(p.Tracks)
	p.inFlightPeak, p.waitingPeak = w.series.peaks.read(&p.Stats)
	return p
}
