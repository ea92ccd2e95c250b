package main

import (
	"context"
	"net/http"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"example.com/forebay"
)

// The benchmarks here are single rows of the tables, for `go test -bench` and a
// profiler; the comparison is made by `go run . gate`.

// benchLoop runs a row's loop; b.Loop would stand inside what is measured.
func benchLoop(b *testing.B, l loop) {
	b.ReportAllocs()
	l(b.N)
}

func BenchmarkPair(b *testing.B) {
	gate := newGate(forebay.Config{MaxInFlight: pairLimit})
	tracked := newGate(forebay.Config{MaxInFlight: pairLimit, Track: true})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, row := range []struct {
		name string
		loop loop
	}{
		{"floor", atomicPairs()},
		{"forebay/acquire", acquirePairs(context.Background(), gate)},
		{"forebay/context", acquirePairs(ctx, gate)},
		{"forebay/try", tryPairs(gate)},
		{"forebay/track", acquirePairs(context.Background(), tracked)},
		{"clock", clockPairs},
		{"xsync/acquire", semaphorePairs(context.Background())},
		{"xsync/context", semaphorePairs(ctx)},
		{"xsync/try", semaphoreTryPairs()},
		{"channel", channelPairs()},
		{"mutex", mutexPairs()},
		{"failsafe/bulkhead", bulkheadPairs(context.Background())},
		{"failsafe/executor", executorPairs()},
		{"aegis", aegisPairs()},
	} {
		b.Run(row.name, func(b *testing.B) { benchLoop(b, row.loop) })
	}
}

func BenchmarkRefuse(b *testing.B) {
	lined, leave := fullLine()
	defer leave()
	full := fullGate(forebay.Config{})
	for _, row := range []struct {
		name string
		loop loop
	}{
		{"floor", adds()},
		{"forebay/gate", refusals(full)},
		{"forebay/try", tryRefusals(full)},
		{"forebay/line", refusals(lined)},
		{"xsync", semaphoreRefusals()},
		{"channel", channelRefusals()},
		{"failsafe/bulkhead", bulkheadRefusals()},
		{"failsafe/executor", executorRefusals()},
		{"aegis", aegisRefusals()},
	} {
		b.Run(row.name, func(b *testing.B) { benchLoop(b, row.loop) })
	}
}

func BenchmarkContended(b *testing.B) {
	for name, gate := range map[string]underGate{
		"forebay": gateUse(1), "xsync": semaphoreUse(1), "channel": channelUse(1),
		"mutex": mutexUse(), "failsafe": bulkheadUse(1),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(crowdSize / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					gate(func() { spin(shortHold) })
				}
			})
		})
	}
}

func BenchmarkExpire(b *testing.B) {
	gate := newGate(forebay.Config{MaxInFlight: 1, MaxWait: time.Nanosecond, MaxWaiting: 1})
	gate.TryAcquire(forebay.Call{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gate.Acquire(b.Context(), forebay.Call{}); err == nil {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	b.Run("bare", func(b *testing.B) { benchLoop(b, handled(nothing{}, http.StatusOK)) })
	for _, m := range middlewares(nothing{}) {
		b.Run(m.name, func(b *testing.B) { benchLoop(b, handled(m.handler, m.status)) })
	}
}

// BenchmarkCluster is our rows over Redis: pairs of so many callers, whose every
// slot comes from the ledger.
func BenchmarkCluster(b *testing.B) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		b.Skip(err)
	}
	b.Cleanup(bench.end)
	for _, callers := range []int{1, 16, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			f := clusterContender(ourUncached, returning).start(1, callers, roomy)
			defer f.close()
			b.SetParallelism((callers + processors - 1) / processors)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					f.use(0, func() {})
				}
			})
		})
	}
}
