package burst

import (
	"math"
	"testing"
	"time"
)

func all(classes []Class, seed uint64, length time.Duration) (calls []arrival) {
	a := newArrivals(classes, seed, length)
	for _, more := a.peek(); more; _, more = a.peek() {
		calls = append(calls, a.pop())
	}
	return calls
}

func TestSameSeedSameCalls(t *testing.T) {
	one, two, other := all(Shop(500), 7, 10*time.Second), all(Shop(500), 7, 10*time.Second), all(Shop(500), 8, 10*time.Second)
	if len(one) != len(two) || one[0] == other[0] {
		t.Fatalf("%d calls and %d; the first with another seed %v", len(one), len(two), other[0])
	}
	for i := range one {
		if one[i] != two[i] {
			t.Fatalf("call %d: %v and %v", i, one[i], two[i])
		}
		if i > 0 && one[i].due < one[i-1].due {
			t.Fatalf("call %d is due before the one before", i)
		}
	}
}

// More of one class leaves the others as they are.
func TestClassesAreDrawnApart(t *testing.T) {
	few, many := Shop(500), Shop(500)
	many[1].Rate *= 4
	orders := func(calls []arrival) (o []arrival) {
		for _, c := range calls {
			if c.class == 0 {
				o = append(o, c)
			}
		}
		return o
	}
	a, b := orders(all(few, 1, 5*time.Second)), orders(all(many, 1, 5*time.Second))
	if len(a) != len(b) || a[len(a)-1] != b[len(b)-1] {
		t.Errorf("%d orders and %d", len(a), len(b))
	}
}

// Poisson: as many as the rate says, and in each tenth of a second as many more or
// fewer as its root.
func TestArrivalsArePoisson(t *testing.T) {
	const rate, seconds = 200, 100
	bins := make([]float64, seconds*10)
	for _, c := range all([]Class{{Rate: rate, Next: get("/")}}, 3, seconds*time.Second) {
		bins[c.due/(100*time.Millisecond)]++
	}
	sum, squares := 0.0, 0.0
	for _, n := range bins {
		sum += n
		squares += n * n
	}
	mean := sum / float64(len(bins))
	variance := squares/float64(len(bins)) - mean*mean
	if math.Abs(mean-rate/10) > 0.5 || math.Abs(variance/mean-1) > 0.2 {
		t.Errorf("mean %.2f, variance %.2f; want both %d", mean, variance, rate/10)
	}
}

func TestComeBackInOrder(t *testing.T) {
	a := newArrivals([]Class{{Rate: 1e-9, Next: get("/")}}, 1, time.Second)
	for _, due := range []time.Duration{3 * time.Second, 2 * time.Second, time.Hour} {
		a.comeBack(arrival{due: due, again: true})
	}
	first, second := a.pop(), a.pop()
	if _, more := a.peek(); first.due != 2*time.Second || second.due != 3*time.Second || more {
		t.Errorf("%v, %v, more %v; want 2 s, 3 s, and the one of an hour left out", first, second, more)
	}
}
