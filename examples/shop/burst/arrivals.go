package burst

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// arrival is a call that is due.
type arrival struct {
	due   time.Duration // since the start
	class int
	Request
	again bool // it was refused before
}

// arrivals draws the calls of a plan in the order of their moments, and takes in
// those that come back. It does not know the time.
type arrivals struct {
	classes []Class
	rnd     []*rand.Rand
	next    []time.Duration // of each class
	length  time.Duration
	back    returns
}

func newArrivals(classes []Class, seed uint64, length time.Duration) *arrivals {
	a := &arrivals{classes: classes, length: length}
	for i := range classes {
		// A class draws from a sequence of its own: more reports do not change
		// which orders are asked for.
		a.rnd = append(a.rnd, rand.New(rand.NewPCG(seed, uint64(i))))
		a.next = append(a.next, a.gap(i))
	}
	return a
}

func (a *arrivals) gap(class int) time.Duration {
	return time.Duration(a.rnd[class].ExpFloat64() / a.classes[class].Rate * float64(time.Second))
}

// first is the class whose call is due first, -1 when there are no more.
func (a *arrivals) first() int {
	first := -1
	for i, due := range a.next {
		if due < a.length && (first < 0 || due < a.next[first]) {
			first = i
		}
	}
	return first
}

// peek returns when the next call is due, false when none is.
func (a *arrivals) peek() (due time.Duration, ok bool) {
	first := a.first()
	if first >= 0 {
		due, ok = a.next[first], true
	}
	if len(a.back) > 0 && (!ok || a.back[0].due < due) {
		due, ok = a.back[0].due, true
	}
	return due, ok
}

// pop takes the next call; there must be one.
func (a *arrivals) pop() arrival {
	first := a.first()
	if len(a.back) > 0 && (first < 0 || a.back[0].due < a.next[first]) {
		return heap.Pop(&a.back).(arrival)
	}
	next := arrival{due: a.next[first], class: first, Request: a.classes[first].Next(a.rnd[first])}
	a.next[first] += a.gap(first)
	return next
}

// comeBack takes in a refused call, unless it would be back too late to matter.
func (a *arrivals) comeBack(c arrival) {
	if c.due < a.length+linger {
		heap.Push(&a.back, c)
	}
}

// returns is a heap by moment.
type returns []arrival

func (r returns) Len() int           { return len(r) }
func (r returns) Less(i, j int) bool { return r[i].due < r[j].due }
func (r returns) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }

// Push appends; for package heap.
func (r *returns) Push(x any) { *r = append(*r, x.(arrival)) }

// Pop takes the last; for package heap.
func (r *returns) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
