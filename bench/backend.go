package main

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	backendSlots = 20
	serviceTime  = 50 * time.Millisecond
	// slowing is what 20 requests over the 20 add to the time of each.
	slowing = 0.5
)

// backend works on 20 requests at a time and lets the others wait inside it,
// where nobody sees them. The more there are, the longer each takes, as when they
// fight for memory, locks and caches. It works on when the caller has left: it
// does not know.
type backend struct {
	slots  chan struct{}
	stop   chan struct{} // closed when the measurement is over
	inside atomic.Int64
	most   atomic.Int64 // that were inside at once
}

func newBackend() *backend {
	return &backend{slots: make(chan struct{}, backendSlots), stop: make(chan struct{})}
}

// work does one request's work, and says when. False if the measurement ended
// before it was done.
func (b *backend) work() (began, ended time.Time, ok bool) {
	b.enter()
	defer b.inside.Add(-1)
	select {
	case b.slots <- struct{}{}:
	case <-b.stop:
		return began, ended, false
	}
	defer func() { <-b.slots }()
	began = time.Now()
	over := max(0, b.inside.Load()-backendSlots)
	timer := time.NewTimer(time.Duration(float64(serviceTime) * (1 + slowing*float64(over)/backendSlots)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return began, time.Now(), true
	case <-b.stop:
		return began, ended, false
	}
}

func (b *backend) enter() {
	n := b.inside.Add(1)
	for {
		most := b.most.Load()
		if n <= most || b.most.CompareAndSwap(most, n) {
			return
		}
	}
}

// ServeHTTP works and tells the visit when.
func (b *backend) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	v := w.(*visit)
	v.began, v.ended, v.served = b.work()
}

// capacity measures how many requests a second the backend serves in a window
// when it always has 20 and never more, which is a little below 20 ÷ 50 ms: timers
// are late. It returns when the window is over.
func capacity(began time.Time, w window) float64 {
	b := newBackend()
	served := make([]float64, backendSlots)
	var wg sync.WaitGroup
	for i := range served {
		wg.Go(func() {
			for time.Since(began) < w.to {
				start := time.Since(began)
				b.work()
				served[i] += w.part(start, time.Since(began))
			}
		})
	}
	wg.Wait()
	total := 0.0
	for _, n := range served {
		total += n
	}
	return total / (w.to - w.from).Seconds()
}
