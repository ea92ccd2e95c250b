package adaptive

import (
	"testing"
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// AD-03: in an hour of mild overload a probe's limit stays about what is right.
func TestAD03MildOverload(t *testing.T) {
	r := slowly(t, newProbe(t, ProbeConfig{Deadline: 10 * usual, Max: 5000}), 15, time.Hour)
	for _, p := range r.Points[len(r.Points)/4:] {
		if p.Limit[0] > 110 {
			t.Fatalf("after %.0f s the limit is %.0f; 50 is right", p.From, p.Limit[0])
		}
	}
	if r.Goodput < .9 {
		t.Errorf("%.3f of what could be", r.Goodput)
	}
}

// AD-05: twenty programs that start together before one backend do not probe in step.
// (Each takes what it can get from the others: docs/tuning.md says what to do about it.)
func TestAD05AFleetDoesNotProbeAtOnce(t *testing.T) {
	b := backend{"fleet", 4000, 10, simulate.Resource{Servers: 200}, simulate.Exponential(50 * ms), 0}
	sc := b.scenario(1.5, func(instance int) admit.Limiter {
		return simulate.Limiter(newProbe(t, ProbeConfig{Seed: uint64(instance + 1)}))
	})
	sc.Instances, sc.For, sc.WarmUp, sc.Every = 20, 15*time.Second, 5*time.Second, 100*ms
	r := run(t, sc)
	if r.Goodput < .93 {
		t.Errorf("%.3f of what could be", r.Goodput)
	}
	least, mean := 1e9, 0.0
	for _, p := range r.Points[50:] {
		least, mean = min(least, p.Limit[0]), mean+p.Limit[0]/float64(len(r.Points)-50)
	}
	if least < mean/2 {
		t.Errorf("all limits together are %.0f on average, and %.0f once", mean, least)
	}
}

// AD-07: a backend that has done nothing for half a minute is used again within seconds, and
// so is one that a limit of one meets at the start.
func TestAD07RecoveryIsFast(t *testing.T) {
	after := func(start int, from time.Duration, changes ...simulate.Change) float64 {
		b := backends[0]
		b.at.Changes = changes
		l, _ := probing(t, ProbeConfig{Start: start, Seed: 1})
		sc := b.scenario(1.5, l)
		sc.For, sc.WarmUp = from+10*time.Second, from+3*time.Second
		return run(t, sc).Goodput
	}
	if g := after(20, 50*time.Second, simulate.Change{At: 20 * time.Second, Speed: .001}, simulate.Change{At: 50 * time.Second, Speed: 1}); g < .9 {
		t.Errorf("3 s after half a minute without a backend: %.3f of what could be", g)
	}
	if g := after(1, 0); g < .9 {
		t.Errorf("3 s after a start with 1: %.3f of what could be", g)
	}
}

// AD-12: thirty calls at once, each second, are less than one at a time on average. The line
// takes them, and nobody is refused.
func TestAD12ABurstIsNoOverload(t *testing.T) {
	b := backend{"bursts", 30, 20, simulate.Resource{Servers: 50}, simulate.Fixed(20 * ms), 0}
	l, p := probing(t, ProbeConfig{Start: 15})
	sc := b.scenario(1, l)
	sc.Clients[0].Arrivals.Batch, sc.Clients[0].Arrivals.Even = 30, true
	sc.For, sc.WarmUp = 5*time.Minute, 0
	r := run(t, sc)
	if n := r.Clients[0].Refused; len(n) > 0 || r.Answered < 8000 {
		t.Errorf("%d of %d calls were answered, refused are %v; %+v", r.Answered, r.Calls, n, p.State())
	}
}
