package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"github.com/failsafe-go/failsafe-go"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	"golang.org/x/sync/semaphore"
)

// pairLimit is far from what two goroutines can hold: nobody ever waits.
const pairLimit = 64

// Names of rows that the targets speak of.
const (
	floorPair   = "two bare atomics"
	ourAcquire  = "forebay Acquire"
	ourTry      = "forebay TryAcquire"
	ourTrack    = "forebay Acquire, Track"
	ourLanes    = "forebay Acquire, Track, lanes, fairness"
	ourProbe    = "forebay Acquire, adaptive.Probe"
	ourCtx      = "forebay Acquire, context with cancel"
	twoReads    = "2 x time.Now"
	xSync       = "x/sync Acquire"
	xSyncTry    = "x/sync TryAcquire"
	xSyncCtx    = "x/sync Acquire, context with cancel"
	aChannel    = "buffered channel"
	aMutex      = "sync.Mutex"
	bulkheadRow = "failsafe bulkhead"
	executorRow = "failsafe executor"
	aegisRow    = "aegis bbr"
)

// trackSlack is what a tracked pair may cost over a bare pair and two clock
// reads: the notes about the holder, a few stores and swaps.
const trackSlack = 1.25

func pairSection(e effort) (*section, error) {
	bare, tracked := newGate(forebay.Config{MaxInFlight: pairLimit}), newGate(forebay.Config{MaxInFlight: pairLimit, Track: true})
	ctx, cancel := context.WithCancel(context.Background())
	measured := func(name string, k kind, against string, l loop) row {
		return row{name: name, kind: k, against: against, measure: aloneAndTogether(e, l)}
	}
	return &section{
		name: "pair", title: "Acquire and release, nobody waits", base: floorPair,
		about: "One acquire and its release with room to spare, on one goroutine and on two at once (wall time over all operations). The floor is an atomic add and an atomic subtract on one word.",
		columns: []column{
			{name: seqNS, ratio: "x floor"}, {name: parNS, ratio: "x floor"}, {name: allocs}, {name: bytesOf},
		},
		rows: []row{
			measured(floorPair, yardstick, "", atomicPairs()),
			measured(ourAcquire, ours, "", acquirePairs(context.Background(), bare)),
			measured(ourCtx, ours, "", acquirePairs(ctx, bare)),
			measured(ourTry, ours, "", tryPairs(bare)),
			measured(ourTrack, ours, "", acquirePairs(context.Background(), tracked)),
			measured(ourLanes, ours, "", callsInLanes()),
			measured(ourProbe, ours, "", acquirePairs(context.Background(), probed())),
			measured(twoReads, yardstick, "", clockPairs),
			measured(xSync, rival, ourAcquire, semaphorePairs(context.Background())),
			measured(xSyncCtx, rival, ourCtx, semaphorePairs(ctx)),
			measured(xSyncTry, rival, ourTry, semaphoreTryPairs()),
			measured(aChannel, rival, ourTry, channelPairs()),
			measured(aMutex, yardstick, "", mutexPairs()),
			measured(bulkheadRow, rival, ourAcquire, bulkheadPairs(context.Background())),
			measured(executorRow, rival, ourAcquire, executorPairs()),
			measured(aegisRow, rival, ourAcquire, aegisPairs()),
		},
		rounds:  e.loopRounds,
		targets: pairTargets(),
		notes: []string{
			"aegis limits by CPU use and latency and not by number, and reads the clock twice; the channel and the mutex know neither context nor refusal.",
		},
		close: cancel,
	}, nil
}

func pairTargets() []target {
	tracked := func(m round) float64 {
		return m.at(ourTrack, seqNS) / (m.at(ourAcquire, seqNS) + m.at(twoReads, seqNS))
	}
	return []target{
		{what: "forebay Acquire ÷ x/sync Acquire, one goroutine", limit: 0.8, of: quotient(ourAcquire, xSync, seqNS)},
		{what: "forebay Acquire ÷ x/sync Acquire, two goroutines", limit: 0.8, of: quotient(ourAcquire, xSync, parNS)},
		{what: "forebay Acquire ÷ two bare atomics", limit: 2, aim: true, of: quotient(ourAcquire, floorPair, seqNS)},
		{what: "forebay Acquire with Track ÷ (forebay Acquire + two clock reads)", limit: trackSlack, of: tracked},
		noAllocation(ourAcquire, allocs),
		noAllocation(ourTry, allocs),
		{what: "forebay Acquire with lanes and fairness ÷ forebay Acquire with Track", limit: 2, of: quotient(ourLanes, ourTrack, seqNS)},
		{what: "forebay Acquire with adaptive.Probe ÷ forebay Acquire with Track", limit: 1.5, aim: true, of: quotient(ourProbe, ourTrack, seqNS)},
		noAllocation(ourTrack, allocs),
		noAllocation(ourLanes, allocs),
		noAllocation(ourProbe, allocs),
	}
}

func atomicPairs() loop {
	word := new(atomic.Int64)
	return func(n int) {
		for range n {
			word.Add(1)
			word.Add(-1)
		}
	}
}

func acquirePairs(ctx context.Context, g *forebay.Gate) loop {
	return func(n int) {
		for range n {
			lease, err := g.Acquire(ctx, forebay.Call{})
			if err != nil {
				panic(err)
			}
			lease.Release()
		}
	}
}

// probed is a gate whose limit finds itself.
func probed() *forebay.Gate {
	p, err := adaptive.NewProbe(adaptive.ProbeConfig{Max: pairLimit})
	if err != nil {
		panic(err)
	}
	return newGate(forebay.Config{MaxInFlight: pairLimit, Limiter: p})
}

// callsInLanes is acquirePairs through a gate with three lanes and fair callers, by one
// of them.
func callsInLanes() loop {
	g := newGate(forebay.Config{
		MaxInFlight: pairLimit, Track: true, PerCaller: forebay.PerCaller{Fair: true},
		Lanes: []forebay.Lane{{Name: "orders", Rank: 1, Reserved: 2}, {Name: "reports", Rank: 2, Share: .2}, {Name: "export", Rank: 3, MaxShare: .5}},
	})
	call := forebay.Call{Lane: "reports", Caller: "10.0.0.1"}
	return func(n int) {
		for range n {
			lease, err := g.Acquire(context.Background(), call)
			if err != nil {
				panic(err)
			}
			lease.Release()
		}
	}
}

func tryPairs(g *forebay.Gate) loop {
	return func(n int) {
		for range n {
			lease, ok := g.TryAcquire(forebay.Call{})
			if !ok {
				panic("bench: refused")
			}
			lease.Release()
		}
	}
}

// clockPairs reads the clock as often as a tracked lease does.
func clockPairs(n int) {
	for range n {
		began := time.Now()
		if time.Now().Before(began) {
			panic("bench: the clock runs backwards")
		}
	}
}

func semaphorePairs(ctx context.Context) loop {
	sem := semaphore.NewWeighted(pairLimit)
	return func(n int) {
		for range n {
			if err := sem.Acquire(ctx, 1); err != nil {
				panic(err)
			}
			sem.Release(1)
		}
	}
}

func semaphoreTryPairs() loop {
	sem := semaphore.NewWeighted(pairLimit)
	return func(n int) {
		for range n {
			if !sem.TryAcquire(1) {
				panic("bench: refused")
			}
			sem.Release(1)
		}
	}
}

func channelPairs() loop {
	slots := make(chan struct{}, pairLimit)
	return func(n int) {
		for range n {
			slots <- struct{}{}
			<-slots
		}
	}
}

func mutexPairs() loop {
	mu, passed := new(sync.Mutex), 0
	return func(n int) {
		for range n {
			mu.Lock()
			passed++
			mu.Unlock()
		}
	}
}

func bulkheadPairs(ctx context.Context) loop {
	b := newBulkhead[any](pairLimit, 0)
	return func(n int) {
		for range n {
			if err := b.AcquirePermit(ctx); err != nil {
				panic(err)
			}
			b.ReleasePermit()
		}
	}
}

func executorPairs() loop {
	ex := failsafe.With[any](newBulkhead[any](pairLimit, 0))
	nothing := func() error { return nil }
	return func(n int) {
		for range n {
			if err := ex.Run(nothing); err != nil {
				panic(err)
			}
		}
	}
}

func aegisPairs() loop {
	l := bbr.NewLimiter()
	return func(n int) {
		for range n {
			done, err := l.Allow()
			if err != nil {
				panic(err)
			}
			done(aegisDone)
		}
	}
}
