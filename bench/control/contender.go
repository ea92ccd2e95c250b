package main

import (
	"time"

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

const (
	patience = 100 * ms // of every gate that has a line
	before   = 20       // the limit before anything is known
	most     = 5000     // more than the defaults of all, which would bind before the biggest backend
	deadline = time.Second
)

// Names of the contenders that others are compared with.
const (
	nameOurs   = "auto"
	nameOracle = "the right number"
)

// contender is a way to limit.
type contender struct {
	name string
	gate func(b backend, seed uint64) simulate.Gate
	real bool // runs in a bubble
}

// simulated are the contenders that run in the admission machine, limiters of ours and
// fixed numbers.
var simulated = []contender{
	moving(nameOurs, func(seed uint64) (forebay.Limiter, error) {
		return adaptive.NewProbe(adaptive.ProbeConfig{Deadline: deadline, Max: most, Seed: seed})
	}),
	fixed(nameOracle, 1),
	fixed("half of it", .5),
	fixed("double of it", 2),
	moving("AIMD", func(uint64) (forebay.Limiter, error) {
		return adaptive.NewAIMD(adaptive.AIMDConfig{Timeout: deadline, Max: most})
	}),
	moving("Vegas", func(seed uint64) (forebay.Limiter, error) {
		return adaptive.NewVegas(adaptive.VegasConfig{Max: most, Seed: seed})
	}),
	moving("Gradient2", func(uint64) (forebay.Limiter, error) {
		return adaptive.NewGradient2(adaptive.Gradient2Config{Max: most})
	}),
}

func fixed(name string, times float64) contender {
	return contender{name: name, gate: func(b backend, _ uint64) simulate.Gate {
		return simulate.Gate{Config: admit.Config{Limit: max(1, int(times*float64(b.right)+.5)), MaxWait: patience, Measure: true}}
	}}
}

func moving(name string, limiter func(seed uint64) (forebay.Limiter, error)) contender {
	return contender{name: name, gate: func(_ backend, seed uint64) simulate.Gate {
		return simulate.Gate{
			Config: admit.Config{Limit: before, MaxWait: patience, Measure: true},
			Limiter: func(instance int) admit.Limiter {
				return simulate.Limiter(must(limiter(seed + uint64(instance))))
			},
		}
	}}
}

// must is for configurations written in this program.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
