package admit

import (
	"math"
	"testing"
	"time"
)

// The quick tail test agrees with the definition everywhere that it is used.
func TestPoissonTail(t *testing.T) {
	for _, mean := range []float64{0, 1e-9, 0.01, 0.05129, 0.0513, 0.1, 0.5, 1, 2, 5, 10, 40, 100, 300} {
		for k := 0; k < 500; k++ {
			want := naiveTail(mean, k)
			if mean == 0 {
				want = 0
				if k == 0 {
					want = 1
				}
			}
			if math.Abs(want-chance) < 1e-9 {
				continue // on the edge either answer is right
			}
			if got := poissonTailBelow(mean, k, chance); got != (want < chance) {
				t.Fatalf("mean %v, k %d: below %v, P = %v", mean, k, got, want)
			}
		}
	}
}

func TestPoissonTailHuge(t *testing.T) {
	for _, c := range []struct {
		mean  float64
		k     int
		below bool
	}{
		{1e6, 1_000_000, false}, {1e6, 1_001_600, false}, {1e6, 1_001_700, true}, {1e6, 2_000_000, true}, {1, 1 << 20, true},
	} {
		if got := poissonTailBelow(c.mean, c.k, chance); got != c.below {
			t.Errorf("mean %v, k %d: below = %v", c.mean, c.k, got)
		}
	}
}

// μ follows what the gate does while it is full, and forgets by departures.
func TestRateFollows(t *testing.T) {
	var r rate
	now := time.Unix(0, 0)
	r.advance(now, true)
	depart := func(n int, every time.Duration) {
		for range n {
			now = now.Add(every)
			r.depart(now)
			r.advance(now, true)
		}
	}
	depart(rateKnown-1, time.Second)
	if _, known := r.perSecond(); known {
		t.Error("known after too few departures")
	}
	depart(100, time.Second)
	if mu, _ := r.perSecond(); math.Abs(mu-1) > 0.05 {
		t.Errorf("μ = %v, want 1", mu)
	}
	depart(150, time.Second/10)
	if mu, _ := r.perSecond(); mu < 5 {
		t.Errorf("μ = %v after 150 departures at ten times the rate", mu)
	}
	// An idle hour counts nothing.
	r.advance(now, false)
	now = now.Add(time.Hour)
	r.advance(now, true)
	before, _ := r.perSecond()
	r.depart(now)
	if mu, _ := r.perSecond(); mu < before {
		t.Errorf("an idle hour lowered μ from %v to %v", before, mu)
	}
}
