package main

import (
	"runtime"
	"sync"
	"time"
)

// loop does one thing n times. Each row has a loop of its own, without a closure
// inside: a call through one would cost as much as what is measured.
type loop func(n int)

// took runs the loop on so many goroutines, n times each, and returns how long
// that took.
func (l loop) took(goroutines, n int) time.Duration {
	if goroutines == 1 {
		began := time.Now()
		l(n)
		return time.Since(began)
	}
	var wg sync.WaitGroup
	began := time.Now()
	for range goroutines {
		wg.Go(func() { l(n) })
	}
	wg.Wait()
	return time.Since(began)
}

// enough returns how often the loop must run to last for about a slice.
func (l loop) enough(goroutines int, slice time.Duration) int {
	n := 64
	for {
		took := l.took(goroutines, n)
		if took >= slice/4 {
			return max(64, int(float64(n)*float64(slice)/float64(took)))
		}
		n *= 2
	}
}

// meter measures a loop in rounds; the first one finds out how often to run.
type meter struct {
	loop       loop
	goroutines int
	slice      time.Duration
	n          int
}

// cost is what one operation takes: wall time over all goroutines' operations,
// and what it allocates.
type cost struct{ ns, allocs, bytes float64 }

func (m *meter) measure() cost {
	if m.n == 0 {
		m.n = m.loop.enough(m.goroutines, m.slice)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := m.loop.took(m.goroutines, m.n)
	runtime.ReadMemStats(&after)
	ops := float64(m.n * m.goroutines)
	return cost{
		ns:     float64(took.Nanoseconds()) / ops,
		allocs: float64(after.Mallocs-before.Mallocs) / ops,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / ops,
	}
}

// The columns of rows that are loops.
const (
	seqNS   = "ns"
	parNS   = "ns, 2 goroutines"
	allocs  = "allocs"
	bytesOf = "B"
)

// alone measures a loop on one goroutine.
func alone(e effort, l loop) func() figures {
	m := &meter{loop: l, goroutines: 1, slice: e.slice}
	return func() figures {
		c := m.measure()
		return figures{seqNS: c.ns, allocs: c.allocs, bytesOf: c.bytes}
	}
}

// aloneAndTogether measures it on one goroutine and on two at the same time.
func aloneAndTogether(e effort, l loop) func() figures {
	one := alone(e, l)
	two := &meter{loop: l, goroutines: 2, slice: e.slice}
	return func() figures {
		f := one()
		f[parNS] = two.measure().ns
		return f
	}
}
