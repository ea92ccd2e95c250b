package main

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"

	"example.com/forebay"
	"golang.org/x/sync/semaphore"
)

const (
	expiringCrowd    = 256
	expiringPatience = 5 * time.Millisecond

	cpuNS     = "CPU, ns"
	bareTimer = "a bare timer"
	chiRow    = "chi throttle, as a handler"
)

func expireSection(e effort) (*section, error) {
	measured := func(name string, k kind, wait func()) row {
		r := row{name: name, kind: k, measure: func() figures { return expire(e.expiring, wait) }}
		if k == rival {
			r.against = oursQueued
		}
		return r
	}
	return &section{
		name: "expire", title: "A wait that expires", base: bareTimer,
		about: "256 goroutines wait 5 ms each in front of a gate that stays full, again and again, one after the other in time. Processor time of the whole process per wait, less what the process uses while nothing happens; the waker, the timers and the scheduler are in it, and in the allocations the start of the goroutines.",
		columns: []column{
			{name: cpuNS, ratio: "x timer"}, {name: allocs}, {name: bytesOf},
		},
		rows: []row{
			measured(bareTimer, yardstick, timerWait),
			measured(oursQueued, ours, gateWait()),
			measured("channel and timer", rival, channelWait()),
			measured("x/sync and context.WithTimeout", rival, semaphoreWait()),
			measured("failsafe bulkhead, max wait", rival, bulkheadWait()),
			measured(chiRow, rival, chiWait()),
		},
		targets: []target{
			{what: "processor time of an expired wait, µs", limit: 5, of: func(m round) float64 { return m.at(oursQueued, cpuNS) / 1000 }},
		},
		notes: []string{"chi has no gate outside a handler, so its row also writes a refusal."},
	}, nil
}

// expire lets the crowd wait for about a span and returns what a wait costs.
func expire(span time.Duration, wait func()) figures {
	runtime.GC()
	each := max(1, int(span/expiringPatience))
	idle := idleRate(span / 4)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, began := cpuTime(), time.Now()
	var wg sync.WaitGroup
	for i := range expiringCrowd {
		wg.Go(func() {
			// Spread over one patience, as callers come: waits that end together
			// share a wake-up.
			time.Sleep(expiringPatience * time.Duration(i) / expiringCrowd)
			for range each {
				wait()
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	used = cpuTime() - used - idle*float64(took)
	runtime.ReadMemStats(&after)
	n := float64(each * expiringCrowd)
	return figures{
		cpuNS:   used / n,
		allocs:  float64(after.Mallocs-before.Mallocs) / n,
		bytesOf: float64(after.TotalAlloc-before.TotalAlloc) / n,
	}
}

// idleRate is the processor time that the process uses, per time, while nothing
// happens in it.
func idleRate(span time.Duration) float64 {
	used, began := cpuTime(), time.Now()
	time.Sleep(span)
	return (cpuTime() - used) / float64(time.Since(began))
}

func timerWait() {
	timer := time.NewTimer(expiringPatience)
	<-timer.C
}

func gateWait() func() {
	g := fullGate(forebay.Config{MaxWait: expiringPatience, MaxWaiting: 2 * expiringCrowd})
	return func() {
		if _, err := g.Acquire(context.Background(), forebay.Call{}); err == nil {
			panic("bench: admitted")
		}
	}
}

func channelWait() func() {
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	return func() {
		timer := time.NewTimer(expiringPatience)
		defer timer.Stop()
		select {
		case slots <- struct{}{}:
			panic("bench: admitted")
		case <-timer.C:
		}
	}
}

func semaphoreWait() func() {
	sem := semaphore.NewWeighted(1)
	sem.TryAcquire(1)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), expiringPatience)
		defer cancel()
		if sem.Acquire(ctx, 1) == nil {
			panic("bench: admitted")
		}
	}
}

func bulkheadWait() func() {
	b := fullBulkhead[any](expiringPatience)
	return func() {
		if b.AcquirePermitWithMaxWait(context.Background(), expiringPatience) == nil {
			panic("bench: admitted")
		}
	}
}

func chiWait() func() {
	h := take(func(next http.Handler) http.Handler {
		return chiHandler(1, 2*expiringCrowd, expiringPatience, next)
	})
	r := newRequest()
	return func() {
		w := newDiscard()
		h.ServeHTTP(w, r)
		if w.status == http.StatusOK {
			panic("bench: admitted")
		}
	}
}
