package main

import (
	"context"
	"runtime"
	"sync/atomic"

	"example.com/forebay"
	"github.com/failsafe-go/failsafe-go"
	"golang.org/x/sync/semaphore"
)

const (
	oneAdd      = "one atomic add"
	refuseFull  = "forebay Acquire, full gate"
	refuseTry   = "forebay TryAcquire, full gate"
	refuseLine  = "forebay Acquire, full line"
	refuseTimes = 5 // atomic adds: what "a few nanoseconds" is taken to mean
)

func refuseSection(e effort) (*section, error) {
	full := fullGate(forebay.Config{})
	lined, leave := fullLine()
	measured := func(name string, k kind, against string, l loop) row {
		return row{name: name, kind: k, against: against, measure: alone(e, l)}
	}
	return &section{
		name: "refuse", title: "Refusing", base: oneAdd,
		about:   "What it takes to learn that there is no room: a full gate that lets nobody wait, and one whose line is full as well. Every refusal of forebay is counted by its reason; the others count nothing.",
		columns: []column{{name: seqNS, ratio: "x one add"}, {name: allocs}, {name: bytesOf}},
		rows: []row{
			measured(oneAdd, yardstick, "", adds()),
			measured(refuseFull, ours, "", refusals(full)),
			measured(refuseTry, ours, "", tryRefusals(full)),
			measured(refuseLine, ours, "", refusals(lined)),
			measured(aChannel, rival, refuseTry, channelRefusals()),
			measured(xSyncTry, rival, refuseTry, semaphoreRefusals()),
			measured(bulkheadRow, rival, refuseTry, bulkheadRefusals()),
			measured(executorRow, rival, refuseFull, executorRefusals()),
			measured(aegisRow, rival, refuseFull, aegisRefusals()),
		},
		rounds: e.loopRounds,
		targets: []target{
			{what: "refusal by a full gate ÷ one atomic add", limit: refuseTimes, of: quotient(refuseFull, oneAdd, seqNS)},
			{what: "refusal by a full line ÷ one atomic add", limit: refuseTimes, of: quotient(refuseLine, oneAdd, seqNS)},
			noAllocation(refuseFull, allocs),
			noAllocation(refuseTry, allocs),
			noAllocation(refuseLine, allocs),
		},
		notes: []string{
			"\"A few nanoseconds\" is judged as at most 5 atomic adds, so that the bound means the same on every machine.",
			"aegis refuses only while it believes that the processor is busy; here it is told so.",
		},
		close: leave,
	}, nil
}

// fullLine returns a full gate with a full line of one, and what ends the wait.
func fullLine() (*forebay.Gate, func()) {
	g := fullGate(forebay.Config{MaxWait: longPatience, MaxWaiting: 1})
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = g.Acquire(ctx, forebay.Call{}) // it ends by leaving: the slot is never given back
	}()
	for g.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	return g, func() { cancel(); <-left }
}

func adds() loop {
	word := new(atomic.Int64)
	return func(n int) {
		for range n {
			word.Add(1)
		}
	}
}

func refusals(g *forebay.Gate) loop {
	return func(n int) {
		for range n {
			if _, err := g.Acquire(context.Background(), forebay.Call{}); err == nil {
				panic("bench: admitted")
			}
		}
	}
}

func tryRefusals(g *forebay.Gate) loop {
	return func(n int) {
		for range n {
			if _, ok := g.TryAcquire(forebay.Call{}); ok {
				panic("bench: admitted")
			}
		}
	}
}

func channelRefusals() loop {
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	return func(n int) {
		for range n {
			select {
			case slots <- struct{}{}:
				panic("bench: admitted")
			default:
			}
		}
	}
}

func semaphoreRefusals() loop {
	sem := semaphore.NewWeighted(1)
	sem.TryAcquire(1)
	return func(n int) {
		for range n {
			if sem.TryAcquire(1) {
				panic("bench: admitted")
			}
		}
	}
}

func bulkheadRefusals() loop {
	b := fullBulkhead[any](0)
	return func(n int) {
		for range n {
			if b.TryAcquirePermit() {
				panic("bench: admitted")
			}
		}
	}
}

func executorRefusals() loop {
	ex := failsafe.With[any](fullBulkhead[any](0))
	nothing := func() error { return nil }
	return func(n int) {
		for range n {
			if ex.Run(nothing) == nil {
				panic("bench: admitted")
			}
		}
	}
}

func aegisRefusals() loop {
	l := sheddingBBR()
	return func(n int) {
		for range n {
			if _, err := l.Allow(); err == nil {
				panic("bench: admitted")
			}
		}
	}
}
