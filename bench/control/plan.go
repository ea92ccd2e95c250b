package main

import (
	"slices"
	"time"
)

// plan is what is run.
type plan struct {
	name   string
	trials []*trial // in the simulator
	inVain int      // seeds of contenders that are neither ours nor the oracle; those have all
	seeds  int
	real   []*trial // of the modules as they are
	unseen int      // seeds of the backends that nothing was tuned on; 0: they are left out
}

var fourAndCliff = append(slices.Clone(four), cliff)

// whole is everything.
func wholePlan() *plan {
	halfMinute := func(trials []*trial) []*trial {
		for _, t := range trials {
			t.length, t.warmUp = 30*time.Second, 15*time.Second
		}
		return trials
	}
	soaks := soak([]backend{servers50, contended, cliff, steep}, 30*time.Minute)
	soaks[1].keep = true
	steps := step(four)
	steps[0].keep = true
	short := soak([]backend{contended}, 5*time.Minute)
	short[0].seeds, short[0].name = 1, "5 min at 2 x"
	return &plan{
		name: "whole", seeds: 5, inVain: 2, unseen: 5,
		trials: slices.Concat(
			steady(all, steadyLoads), only(1, soaks), steps, flash(all), cold(all), bursts(fourAndCliff, []float64{.8, 1, 2}),
			pauses(four), quiet(four), swinging(), mixed(),
		),
		real: slices.Concat(
			halfMinute(steady([]backend{servers50, bimodal50, contended, cliff}, []float64{1, 2})),
			halfMinute(steady([]backend{contended}, []float64{10})),
			short, step([]backend{servers50})[:1], flash([]backend{servers50, contended}), quiet([]backend{servers50})[2:],
		),
	}
}

// shortPlan is what CI runs: enough to see that something is broken.
func shortPlan() *plan {
	few := []backend{servers50, bimodal50, contended, pooled, steep, cliff, slow}
	probe := steady([]backend{servers50}, []float64{2})
	for _, t := range probe {
		t.length, t.warmUp, t.seeds = 20*time.Second, 10*time.Second, 1
	}
	return &plan{
		name: "short", seeds: 2, inVain: -1,
		trials: slices.Concat(
			steady(few, []float64{1, 2}), steady([]backend{contended}, []float64{10}), step([]backend{servers50, contended}),
			flash([]backend{servers50, bimodal50, contended, pooled, big}), cold(few), quiet(four)[1:],
		),
		real: probe,
	}
}

// only lets all but ours run with so many seeds.
func only(seeds int, trials []*trial) []*trial {
	for _, t := range trials {
		t.seeds = seeds
	}
	return trials
}
