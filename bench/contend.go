package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
	"golang.org/x/sync/semaphore"
)

const (
	crowdSize  = 64
	shortHold  = time.Microsecond
	holdAlone  = "the hold alone"
	oursQueued = "forebay Acquire"

	perOp    = "ns"
	shareMin = "smallest ÷ largest share"
)

// underGate does one thing with a slot of a gate.
type underGate func(work func())

func contendSection(e effort) (*section, error) {
	measured := func(name string, k kind, gate underGate) row {
		r := row{name: name, kind: k, measure: func() figures { return contend(e.contended, crowdSize, gate) }}
		if k == rival {
			r.against = oursQueued
		}
		return r
	}
	noGate := func(work func()) { work() }
	return &section{
		name: "contend", title: "64 goroutines, one slot, 1 µs holds", base: holdAlone,
		about: "64 goroutines on two processors want one slot for a busy microsecond each, again and again. Time per operation, as a multiple of the hold measured alone in the same round, and how evenly the goroutines were served.",
		columns: []column{
			{name: perOp, ratio: "x hold"}, {name: shareMin, more: true},
		},
		rows: []row{
			{name: holdAlone, kind: yardstick, measure: func() figures { return contend(e.contended/2, 1, noGate) }},
			measured(oursQueued, ours, gateUse(1)),
			measured(xSync, rival, semaphoreUse(1)),
			measured(aChannel, rival, channelUse(1)),
			measured(aMutex, rival, mutexUse()),
			measured(bulkheadRow, rival, bulkheadUse(1)),
		},
		targets: []target{
			{what: "time per operation ÷ hold, 64 goroutines", limit: 2, of: quotient(oursQueued, holdAlone, perOp)},
		},
		notes: []string{
			"A first-in-first-out hand-over costs a wake-up for each hold. The mutex lets whoever runs already go first, which is faster; its shares show the price.",
		},
	}, nil
}

// contend lets so many goroutines use the gate for a span.
func contend(span time.Duration, goroutines int, gate underGate) figures {
	work := func() { spin(shortHold) }
	counts, took := crowd(goroutines, span, func(int) { gate(work) })
	return figures{perOp: float64(took.Nanoseconds()) / float64(sum(counts)), shareMin: evenness(counts)}
}

// The phases of a crowd. The warm-up is not counted: while goroutines are still
// being started, those that run have the gate to themselves.
const (
	warmingUp = iota
	counting
	over
)

// crowd calls do on so many goroutines, and returns how often each did so within
// the span, and how long that really was.
func crowd(goroutines int, span time.Duration, do func(worker int)) ([]int, time.Duration) {
	return crowdAround(goroutines, span, do, func() {}, func() {})
}

// crowdAround is crowd, and looks at something just before and just after the span.
func crowdAround(goroutines int, span time.Duration, do func(worker int), before, after func()) ([]int, time.Duration) {
	var phase atomic.Int32
	counts := make([]int, goroutines)
	var wg sync.WaitGroup
	for i := range counts {
		wg.Go(func() {
			for {
				do(i)
				switch phase.Load() {
				case counting:
					counts[i]++
				case over:
					return
				}
			}
		})
	}
	time.Sleep(span / 4)
	before()
	began := time.Now()
	phase.Store(counting)
	time.Sleep(span)
	phase.Store(over)
	took := time.Since(began)
	after()
	wg.Wait()
	return counts, took
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// evenness is the smallest count over the largest.
func evenness(counts []int) float64 {
	return float64(slices.Min(counts)) / float64(slices.Max(counts))
}

// spin keeps the processor busy.
func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

func gateUse(limit int) underGate {
	g := newGate(forebay.Config{MaxInFlight: limit, MaxWait: longPatience, MaxWaiting: 2 * crowdSize})
	return func(work func()) {
		lease, err := g.Acquire(context.Background(), forebay.Call{})
		if err != nil {
			panic(err)
		}
		work()
		lease.Release()
	}
}

func semaphoreUse(limit int64) underGate {
	sem := semaphore.NewWeighted(limit)
	return func(work func()) {
		if err := sem.Acquire(context.Background(), 1); err != nil {
			panic(err)
		}
		work()
		sem.Release(1)
	}
}

func channelUse(limit int) underGate {
	slots := make(chan struct{}, limit)
	return func(work func()) {
		slots <- struct{}{}
		work()
		<-slots
	}
}

func mutexUse() underGate {
	mu := new(sync.Mutex)
	return func(work func()) {
		mu.Lock()
		work()
		mu.Unlock()
	}
}

func bulkheadUse(limit int) underGate {
	b := newBulkhead[any](limit, longPatience)
	return func(work func()) {
		if err := b.AcquirePermitWithMaxWait(context.Background(), longPatience); err != nil {
			panic(err)
		}
		work()
		b.ReleasePermit()
	}
}
