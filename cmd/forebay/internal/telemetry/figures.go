package telemetry

import "github.com/prometheus/client_golang/prometheus"

// figures shows several metrics of one look, so that they fit together.
type figures[T any] struct {
	look func() T
	all  []figure[T]
}

// figure is one of them.
type figure[T any] struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	of     func(T) float64
	labels []string // values
}

func gauge[T any](name, help string, of func(T) float64) figure[T] {
	return figure[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, of, nil}
}

func counter[T any](name, help string, of func(T) float64) figure[T] {
	return figure[T]{prometheus.NewDesc(name, help, nil, nil), prometheus.CounterValue, of, nil}
}

// Describe sends what there can be.
func (f *figures[T]) Describe(ch chan<- *prometheus.Desc) {
	for _, one := range f.all {
		ch <- one.desc
	}
}

// Collect sends what there is.
func (f *figures[T]) Collect(ch chan<- prometheus.Metric) {
	seen := f.look()
	for _, one := range f.all {
		ch <- prometheus.MustNewConstMetric(one.desc, one.kind, one.of(seen), one.labels...)
	}
}
