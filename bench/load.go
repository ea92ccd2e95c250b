package main

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// answerBy is when a caller gives up: later answers are worth nothing to it.
const answerBy = 500 * time.Millisecond

// window is the time in which goodput is counted, from the start of a load on.
type window struct{ from, to time.Duration }

// part returns how much of the work between two moments lies within the window.
// Counting parts, and not ends, keeps the batches at the window's edges out of
// the figure.
func (w window) part(began, ended time.Duration) float64 {
	if ended <= began {
		return 0
	}
	return max(0, float64(min(ended, w.to)-max(began, w.from))) / float64(ended-began)
}

// arrivals returns when callers come: a Poisson process at a rate, given how
// many come in all. Left free, their number alone would move the goodput of a
// run at capacity by two per cent.
func arrivals(seed uint64, rate float64, span time.Duration) []time.Duration {
	random := rand.New(rand.NewPCG(seed, 2))
	all := make([]time.Duration, int(rate*span.Seconds()+0.5))
	for i := range all {
		all[i] = time.Duration(random.Float64() * float64(span))
	}
	slices.Sort(all)
	return all
}

// visit is one caller at one gate, and the response writer of its answer.
type visit struct {
	discard
	arrived, left time.Time
	began, ended  time.Time // of the work
	served        bool
}

// good reports whether the caller got what it came for while it was there.
func (v *visit) good() bool {
	return v.served && v.status == http.StatusOK && v.left.Sub(v.arrived) <= answerBy
}

// front is a gate before a backend of its own under load.
type front struct {
	name    string
	backend *backend
	handler http.Handler

	mu     sync.Mutex // guards visits
	visits []*visit
}

// receive brings one caller to the gate and returns when it was answered.
func (f *front) receive(r *http.Request) {
	v := &visit{discard: *newDiscard(), arrived: time.Now()}
	f.handler.ServeHTTP(v, r)
	v.left = time.Now()
	f.mu.Lock()
	f.visits = append(f.visits, v)
	f.mu.Unlock()
}

// drive brings the same callers to every front at the same moments, whether or
// not the earlier ones were answered. It returns when it began, and the capacity
// of a backend without a gate in the same window.
func drive(fronts []*front, times []time.Duration, w window) (began time.Time, possible float64) {
	r := newRequest()
	var wg sync.WaitGroup
	began = time.Now()
	wg.Go(func() { possible = capacity(began, w) })
	for _, at := range times {
		if ahead := at - time.Since(began); ahead > 0 {
			time.Sleep(ahead)
		}
		for _, f := range fronts {
			wg.Go(func() { f.receive(r) })
		}
	}
	time.Sleep(answerBy) // whoever can still be answered in time is
	for _, f := range fronts {
		close(f.backend.stop)
	}
	wg.Wait()
	return began, possible
}

// figures sums up what a front did in the window of a load that began then, over
// what the capacity would have allowed.
func (f *front) figures(began time.Time, w window, capacity float64) figures {
	var good float64
	var refused, answered []time.Duration
	for _, v := range f.visits {
		took := v.left.Sub(v.arrived)
		switch {
		case v.status != http.StatusOK:
			refused = append(refused, took)
		case v.good():
			good += w.part(v.began.Sub(began), v.ended.Sub(began))
			answered = append(answered, took)
		}
	}
	result := figures{
		goodput:  good / (capacity * (w.to - w.from).Seconds()),
		mostSeen: float64(f.backend.most.Load()),
	}
	if len(refused) > 0 {
		result[refusedIn] = millis(quantile(refused, 0.5))
	}
	if len(answered) > 0 {
		result[answerIn] = millis(quantile(answered, 0.99))
	}
	return result
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
