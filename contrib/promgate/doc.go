// Package promgate shows gates to Prometheus.
//
// A [Collector] is both: a [forebay.Observer], which counts what gates decide,
// and a prometheus.Collector, which at each scrape asks the gates what they show.
//
//	m := promgate.New(promgate.Config{})
//	g, err := forebay.New(forebay.Config{
//		Name: "reports", MaxInFlight: 12, MaxWait: 100 * time.Millisecond,
//		Observers: []forebay.Observer{m},
//	})
//	…
//	err = m.Watch(g)
//	prometheus.MustRegister(m)
//
// # What it promises
//
// Everything is safe for concurrent use. Observing an event takes no lock and
// allocates nothing once its gate and route are known. Counters never go down.
// All gauges of one gate in one scrape are of the same instant (one call of
// [forebay.Gate.Stats]). Events come after the fact, so counters may be behind
// the gauges by the calls that are being reported at that moment.
//
// The number of series is bounded whatever callers send: gate and route are the
// only labels with open values, and both are cut off, see [Config.MaxRoutes].
// Request ids, addresses and paths are never labels.
//
// # What it does not do
//
// It serves nothing (promhttp does), starts no goroutine and keeps no timer.
package promgate
