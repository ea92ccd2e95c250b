//go:build linux

package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// plan makes a hold of a worker.
func plan(worker int, from, to instant, cost int) hold {
	return hold{worker: worker, cost: cost, span: span{from, to}, how: done}
}

func TestOverlapFindsPlantedViolations(t *testing.T) {
	for _, c := range []struct {
		name       string
		holds      []hold
		bound      bound
		violations int
		most, over int
		above      time.Duration
	}{
		{"nobody", nil, always(1), 0, 0, 0, 0},
		{"one after the other", []hold{plan(0, 0, 10, 1), plan(1, 10, 20, 1)}, always(1), 0, 1, 0, 0},
		{"a nanosecond too early", []hold{plan(0, 0, 10, 1), plan(1, 9, 20, 1)}, always(1), 1, 2, 1, 1},
		{"one inside the other", []hold{plan(0, 0, 100, 1), plan(1, 40, 60, 1)}, always(1), 1, 2, 1, 20},
		{"three at two", []hold{plan(0, 0, 30, 1), plan(1, 10, 30, 1), plan(2, 20, 30, 1)}, always(2), 1, 3, 1, 10},
		{"cost counts", []hold{plan(0, 0, 30, 3), plan(1, 10, 20, 2)}, always(4), 1, 5, 1, 10},
		{"a limit that rises in time", []hold{plan(0, 0, 30, 1), plan(1, 10, 20, 1)}, always(1).then(5, 2), 0, 2, 0, 0},
		{"a limit that rises too late", []hold{plan(0, 0, 30, 1), plan(1, 10, 20, 1)}, always(1).then(15, 2), 1, 2, 1, 5},
		{"a limit that falls and is not followed", []hold{plan(0, 0, 30, 1), plan(1, 0, 20, 1)}, always(2).then(10, 1), 1, 2, 1, 10},
		{"a limit that falls and is", []hold{plan(0, 0, 30, 1), plan(1, 0, 10, 1)}, always(2).then(10, 1), 0, 2, 0, 0},
		{"closed", []hold{plan(0, 5, 6, 1)}, always(1).then(4, 0), 1, 1, 1, 1},
		{"more within a span", []hold{plan(0, 0, 30, 1), plan(1, 10, 20, 1)}, always(1).raised(span{8, 25}, 1), 0, 2, 0, 0},
		{"more, and then longer", []hold{plan(0, 0, 30, 1), plan(1, 10, 20, 1)}, always(1).raised(span{8, 15}, 1), 1, 2, 1, 5},
		{"the end comes before the change and the beginning", []hold{plan(0, 0, 10, 1), plan(1, 10, 20, 1)}, always(1).then(10, 1), 0, 1, 0, 0},
	} {
		o := overlapOf(c.holds, c.bound)
		if o.violations != c.violations || o.most != c.most || o.over != c.over || o.above != c.above {
			t.Errorf("%s: %+v, want %d violations, most %d, over %d, above for %v", c.name, o, c.violations, c.most, c.over, c.above)
		}
	}
}

// The sweep against a count at every nanosecond.
func TestOverlapAgainstCounting(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var holds []hold
		for range 12 {
			from := instant(random.IntN(40))
			holds = append(holds, plan(random.IntN(3), from, from+1+instant(random.IntN(10)), 1+random.IntN(3)))
		}
		b := always(1+random.IntN(6)).then(instant(10+random.IntN(10)), random.IntN(6))
		b = b.raised(span{instant(random.IntN(20)), instant(20 + random.IntN(20))}, random.IntN(3))
		most, over, above := 0, 0, 0
		for at := range instant(60) {
			held, limit := 0, 0
			for _, h := range holds {
				if h.holds(at) {
					held += h.cost
				}
			}
			for _, s := range b {
				if s.from <= at {
					limit = s.units
				}
			}
			most, over = max(most, held), max(over, held-limit)
			if held > limit {
				above++
			}
		}
		o := overlapOf(holds, b)
		if o.most != most || o.over != over || int(o.above) != above || (o.violations > 0) != (over > 0) {
			t.Fatalf("seed %d: %+v, want most %d, over %d, above for %d", seed, o, most, over, above)
		}
	}
}

func TestFullAgain(t *testing.T) {
	holds := []hold{plan(0, 0, 100, 1), plan(1, 0, 20, 1), plan(2, 50, 90, 1), plan(0, 60, 70, 1)}
	for _, c := range []struct {
		limit, without int
		after          instant
		want           time.Duration
		ok             bool
	}{
		{2, 1, 20, 30, true},
		{3, 1, 20, 40, true},
		{4, 1, 20, 0, false},
		{2, -1, 0, 0, true},
		{3, 2, 20, 0, false},
	} {
		if got, ok := fullAgain(holds, c.limit, c.without, c.after); got != c.want || ok != c.ok {
			t.Errorf("fullAgain(limit %d, without %d, after %d) = %d, %t, want %d, %t", c.limit, c.without, c.after, got, ok, c.want, c.ok)
		}
	}
}

func TestHeldBy(t *testing.T) {
	holds := []hold{plan(0, 0, 10, 1), plan(0, 5, 15, 3), plan(1, 0, 20, 7)}
	for at, want := range map[instant]int{0: 1, 5: 4, 10: 3, 15: 0} {
		if got := heldBy(holds, 0, at); got != want {
			t.Errorf("at %d: %d, want %d", at, got, want)
		}
	}
}
