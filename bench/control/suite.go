package main

import (
	"fmt"
	"time"

	"example.com/forebay/internal/simulate"
)

var steadyLoads = []float64{.5, 1, 1.2, 2, 5, 10}

func times(load float64) string { return fmt.Sprintf("%g x", load) }

// steady is S1: one load all the time. Half of it is left to find the limit.
func steady(backends []backend, loads []float64) (trials []*trial) {
	for _, b := range backends {
		for _, load := range loads {
			length := 40 * time.Second
			switch rate := b.does * load; {
			case rate > 50_000: // there is as much to see in less time
				length = 20 * time.Second
			case rate > 20_000:
				continue
			case b.does < 100: // a few hundred calls are chance
				length = 4 * time.Minute
			}
			trials = append(trials, &trial{
				suite: "S1", name: times(load), backend: b, load: load, length: length, warmUp: length / 2,
				looks: []look{
					{"goodput", true, false, goodput}, {"late", false, true, late}, {"p99, ms", false, true, p99},
				},
			})
		}
	}
	return trials
}

// soak is S2: half an hour at twice the load.
func soak(backends []backend, length time.Duration) (trials []*trial) {
	for _, b := range backends {
		trials = append(trials, &trial{
			suite: "S2", name: "soak at 2 x", backend: b, load: 2, length: length, warmUp: length * 2 / 3, every: 10 * time.Second,
			looks: []look{{"goodput", true, false, goodput}, {"drift", false, true, drift}},
		})
	}
	return trials
}

// step is S3: the backend has half of its speed or servers for 40 s, at twice the load.
func step(backends []backend) (trials []*trial) {
	legs := []look{
		{"before", true, false, between(20*time.Second, 40*time.Second)},
		{"halved", true, false, between(40*time.Second, 80*time.Second)},
		{"restored", true, false, between(80*time.Second, 120*time.Second)},
		{"down, s", false, true, reached(40*time.Second, 80*time.Second)},
		{"up, s", false, true, reached(80*time.Second, 120*time.Second)},
	}
	add := func(name string, b backend) {
		trials = append(trials, &trial{
			suite: "S3", name: name, backend: b, load: 2, length: 2 * time.Minute, warmUp: 20 * time.Second, every: 100 * ms, looks: legs,
		})
	}
	for _, b := range backends {
		add("speed halved", b.with(func(r *simulate.Resource) {
			r.Changes = []simulate.Change{{At: 40 * time.Second, Speed: .5}, {At: 80 * time.Second, Speed: 1}}
		}))
		if n := b.resources[len(b.resources)-1].Servers; n > 0 {
			add("servers halved", b.with(func(r *simulate.Resource) {
				r.Changes = []simulate.Change{{At: 40 * time.Second, Servers: n / 2}, {At: 80 * time.Second, Servers: n}}
			}))
		}
	}
	return trials
}

// flash is S4: half of the load, then five times of it for 30 s, then half again.
func flash(backends []backend) (trials []*trial) {
	for _, b := range backends {
		trials = append(trials, &trial{
			suite: "S4", name: "flash crowd", backend: b, load: 1, length: 80 * time.Second, warmUp: 20 * time.Second, every: 100 * ms,
			calls: func(a *simulate.Arrivals) {
				a.Steps = []simulate.Step{{At: 0, Times: .5}, {At: 30 * time.Second, Times: 5}, {At: 60 * time.Second, Times: .5}}
			},
			looks: []look{
				{"first second", true, false, between(30*time.Second, 31*time.Second)},
				{"first 5 s", true, false, between(30*time.Second, 35*time.Second)},
				{"30 s", true, false, between(30*time.Second, 60*time.Second)},
				{"90 %, s", false, true, reached(30*time.Second, 60*time.Second)},
				{"refused later", false, true, refusedBetween(65*time.Second, 80*time.Second)},
			},
		})
	}
	return trials
}

// cold is S5: twice the load from the first moment on.
func cold(backends []backend) (trials []*trial) {
	for _, b := range backends {
		trials = append(trials, &trial{
			suite: "S5", name: "cold start at 2 x", backend: b, load: 2, length: 30 * time.Second, every: 100 * ms,
			looks: []look{{"90 %, s", false, true, reached(0, 30*time.Second)}},
		})
	}
	return trials
}

// bursts is S6: a rate that jumps between 1.75 and 0.25 of its mean, each 200 ms or so.
func bursts(backends []backend, loads []float64) (trials []*trial) {
	for _, b := range backends {
		for _, load := range loads {
			trials = append(trials, &trial{
				suite: "S6", name: "bursts at " + times(load), backend: b, load: load, length: time.Minute, warmUp: 30 * time.Second,
				calls: func(a *simulate.Arrivals) { a.Bursts = simulate.Bursts{High: 1.75, Low: .25, Mean: 200 * ms} },
				looks: []look{{"goodput", true, false, goodput}},
			})
		}
	}
	return trials
}

// pauses is S7: the backend stands still for 200 ms each 5 s.
func pauses(backends []backend) (trials []*trial) {
	for _, b := range backends {
		for _, load := range []float64{.7, 2} {
			trials = append(trials, &trial{
				suite: "S7", name: "pauses at " + times(load), load: load, length: time.Minute, warmUp: 30 * time.Second,
				backend: b.with(func(r *simulate.Resource) { r.Pauses = simulate.Pauses{Every: 5 * time.Second, For: 200 * ms} }),
				looks:   []look{{"goodput", true, false, goodput}},
			})
		}
	}
	return trials
}

// quiet is S8: loads that nobody has to be refused at.
func quiet(backends []backend) (trials []*trial) {
	for _, b := range backends {
		for _, q := range []struct {
			name   string
			load   float64
			batch  int
			length time.Duration
		}{
			{"2 calls a second", 2 / b.does, 1, 5 * time.Minute}, {"0.3 x", .3, 1, time.Minute},
			{"batches of 40 at 0.1 x", .1, 40, 2 * time.Minute},
		} {
			trials = append(trials, &trial{
				suite: "S8", name: q.name, backend: b, load: q.load, length: q.length,
				calls: func(a *simulate.Arrivals) { a.Batch = q.batch },
				looks: []look{{"refused", false, true, refused}},
			})
		}
	}
	return trials
}

// swinging is beyond the control design: a backend whose calls take longer and shorter in
// turn, with periods about as long as experiments.
func swinging() (trials []*trial) {
	for _, period := range []time.Duration{300 * ms, time.Second, 3 * time.Second} {
		b := servers50.with(func(r *simulate.Resource) {
			for at := period; at < time.Minute; at += period {
				speed := 1.0
				if (at/period)%2 == 1 {
					speed = .6
				}
				r.Changes = append(r.Changes, simulate.Change{At: at, Speed: speed})
			}
		})
		trials = append(trials, &trial{
			suite: "S14", name: fmt.Sprintf("speed swings each %v at 2 x", period), backend: b, load: 2, length: time.Minute, warmUp: 30 * time.Second,
			looks: []look{{"goodput", true, false, goodput}},
		})
	}
	return trials
}

// mixed is beyond the control design: calls of three routes of different cost on one
// pool, in shares that change.
func mixed() (trials []*trial) {
	b := one("mixed routes", 1000, 50, simulate.Resource{Servers: 50}, simulate.Mix{
		{Share: .7, Takes: simulate.Exponential(10 * ms)}, {Share: .25, Takes: simulate.Exponential(50 * ms)},
		{Share: .05, Takes: simulate.Exponential(610 * ms)},
	})
	for _, load := range []float64{1.2, 2, 5} {
		trials = append(trials, &trial{
			suite: "S15", name: times(load), backend: b, load: load, length: time.Minute, warmUp: 30 * time.Second,
			looks: []look{{"goodput", true, false, goodput}},
		})
	}
	return trials
}
