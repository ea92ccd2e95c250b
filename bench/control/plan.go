package main

import (
	"slices"
	"time"
)

// plan is what is run.
type plan struct {
	name   string
	trials []*trial // in the simulator
	seeds  int
	alone  bool     // ours and the oracle, and nobody else
	real   []*trial // of the modules as they are
	unseen bool     // the backends that nothing was tuned on as well
}

var fourAndCliff = append(slices.Clone(four), cliff)

var withoutFast = []backend{servers50, bimodal50, contended, pooled, lockStep, steep, rareSlow, big, cliff, slow}

// wholePlan is everything, with so many seeds.
func wholePlan(seeds int) *plan {
	halfMinute := func(trials []*trial) []*trial {
		for _, t := range trials {
			t.length, t.warmUp = 30*time.Second, 15*time.Second
		}
		return trials
	}
	soaks := soak([]backend{servers50, contended, cliff, steep}, 30*time.Minute)
	soaks[1].keep = true
	for _, t := range soaks {
		t.among = []string{nameOurs, nameOracle, "AIMD", "Gradient2"}
	}
	steps := step(four)
	steps[0].keep = true
	short := soak([]backend{contended}, 5*time.Minute)
	short[0].name = "5 min at 2 x"
	return &plan{
		name: "whole", seeds: seeds, unseen: true,
		trials: slices.Concat(
			steady(all, steadyLoads), soaks, steps, flash(withoutFast), cold(withoutFast), bursts(fourAndCliff, []float64{.8, 1, 2}),
			pauses(four), quiet(four), swinging(), mixed(),
		),
		real: slices.Concat(
			halfMinute(steady([]backend{servers50, bimodal50, contended, cliff}, []float64{1, 2})),
			halfMinute(steady([]backend{contended}, []float64{10})),
			short, step([]backend{servers50})[:1], flash([]backend{servers50}), quiet([]backend{servers50})[2:],
		),
	}
}

// shortPlan is what CI runs: enough to see that something is broken.
func shortPlan() *plan {
	few := []backend{servers50, bimodal50, contended, pooled, steep, cliff, slow}
	probe := steady([]backend{servers50}, []float64{2})
	for _, t := range probe {
		t.length, t.warmUp = 20*time.Second, 10*time.Second
	}
	return &plan{
		name: "short", seeds: 2, alone: true,
		trials: slices.Concat(
			steady(few, []float64{1, 2}), steady([]backend{contended}, []float64{10}), step([]backend{servers50, contended}),
			flash([]backend{servers50, bimodal50, contended, pooled, big}), cold(few), quiet(four)[1:],
		),
		real: probe,
	}
}
