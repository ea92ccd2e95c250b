package main

import (
	"math"
	"slices"
)

// line is something that auto has to reach.
type line struct {
	what    string
	limit   float64
	atLeast bool
	of      func(t *table) float64
}

// met reports whether a measured value is on the right side; where nothing was run it is.
func (l line) met(v float64) bool {
	return math.IsNaN(v) || l.atLeast && v >= l.limit || !l.atLeast && v <= l.limit
}

// group picks one figure of some trials.
type group struct {
	suite, name, look string // "": any
	of                func(b backend) bool
	least             float64 // load
}

func (g group) has(t *trial, l look) bool {
	return t.suite == g.suite && (g.name == "" || g.name == t.name) && l.name == g.look && (g.of == nil || g.of(t.backend)) && t.load >= g.least
}

// each returns what f says of each figure of the group.
func (g group) each(t *table, f func(tr *trial, i int) float64) (values []float64) {
	for _, tr := range t.trials {
		for i, l := range tr.looks {
			if g.has(tr, l) {
				values = append(values, f(tr, i))
			}
		}
	}
	return values
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values)) // NaN of none
}

// mean is that over the group's trials and seeds.
func (g group) mean(t *table) float64 {
	return mean(g.each(t, func(tr *trial, i int) float64 { return t.figure(tr, nameOurs, i).mean }))
}

// most is the greatest mean of a trial.
func (g group) most(t *table) float64 {
	values := g.each(t, func(tr *trial, i int) float64 { return t.figure(tr, nameOurs, i).mean })
	if len(values) == 0 {
		return math.NaN()
	}
	return slices.Max(values)
}

// behind is how far auto is behind the oracle, on average.
func (g group) behind(t *table) float64 {
	return mean(g.each(t, func(tr *trial, i int) float64 {
		return t.figure(tr, nameOracle, i).mean - t.figure(tr, nameOurs, i).mean
	}))
}

// quantile is one over all runs of several groups.
func quantile(q float64, groups ...group) func(t *table) float64 {
	return func(t *table) float64 {
		var values []float64
		for _, g := range groups {
			g.each(t, func(tr *trial, i int) float64 {
				for _, j := range t.runs[cell{tr, nameOurs}] {
					values = append(values, j.figures[i])
				}
				return 0
			})
		}
		if len(values) == 0 {
			return math.NaN()
		}
		slices.Sort(values)
		return values[int(q*float64(len(values)-1)+.5)]
	}
}

func ordinary(b backend) bool { return b.ordinary }

func named(name string) func(b backend) bool {
	return func(b backend) bool { return b.name == name }
}

func scored(t *trial) bool { return t.suite == "S1" || t.suite == "S2" || t.suite == "S3" }

func scoredFast(t *trial) bool { return scored(t) && t.backend.name != slow.name }

// lines are the pass lines of the control design and of its issue.
func lines() []line {
	at := func(suite, name, look string, of func(b backend) bool, least float64) group {
		return group{suite, name, look, of, least}
	}
	down, up := at("S3", "", "down, s", nil, 0), at("S3", "", "up, s", nil, 0)
	return []line{
		{"score: worst goodput ÷ that of the right number in S1 to S3, without 20 a second", .92, true, func(t *table) float64 { return finite(t.score(nameOurs, scoredFast).share) }},
		{"the same with 20 a second", .85, true, func(t *table) float64 { return finite(t.score(nameOurs, scored).share) }},
		{"S1 at 1 x, ordinary backends", .97, true, at("S1", "1 x", "goodput", ordinary, 0).mean},
		{"S1 at 1.2 x and more, ordinary backends", .97, true, at("S1", "", "goodput", ordinary, 1.1).mean},
		{"S1 at 1.2 x and more, cliff", .92, true, at("S1", "", "goodput", named(cliff.name), 1.1).mean},
		{"S1 at 1.2 x and more, 20 a second", .85, true, at("S1", "", "goodput", named(slow.name), 1.1).mean},
		{"S2 last ten of 30 minutes, ordinary backends", .97, true, at("S2", "soak at 2 x", "goodput", ordinary, 0).mean},
		{"S2 last ten of 30 minutes, cliff", .93, true, at("S2", "soak at 2 x", "goodput", named(cliff.name), 0).mean},
		{"S2 drift of the limit, worst backend", .30, false, at("S2", "soak at 2 x", "drift", nil, 0).most},
		{"S3 before", .95, true, at("S3", "", "before", nil, 0).mean},
		{"S3 halved", .95, true, at("S3", "", "halved", nil, 0).mean},
		{"S3 restored", .95, true, at("S3", "", "restored", nil, 0).mean},
		{"S3 seconds to 90 %, median", 2, false, quantile(.5, down, up)},
		{"S3 seconds to 90 %, 90 of 100", 5, false, quantile(.9, down, up)},
		{"S4 first second, ordinary backends", .92, true, at("S4", "", "first second", ordinary, 0).mean},
		{"S4 first 5 s, ordinary backends", .95, true, at("S4", "", "first 5 s", ordinary, 0).mean},
		{"S4 seconds to 90 %, ordinary backends, median", 2, false, quantile(.5, at("S4", "", "90 %, s", ordinary, 0))},
		{"S4 refused after it", .001, false, at("S4", "", "refused later", ordinary, 0).most},
		{"S5 seconds to 90 %, ordinary backends, median", 2, false, quantile(.5, at("S5", "", "90 %, s", ordinary, 0))},
		{"S5 seconds to 90 %, 20 a second, median", 10, false, quantile(.5, at("S5", "", "90 %, s", named(slow.name), 0))},
		{"S6 behind the right number, ordinary backends", .03, false, at("S6", "", "goodput", ordinary, 0).behind},
		{"S7 behind the right number", .02, false, at("S7", "", "goodput", nil, 0).behind},
		{"S8 refused of 2 calls a second, worst backend", .001, false, at("S8", "2 calls a second", "refused", nil, 0).most},
		{"S8 refused at 0.3 x, worst backend", .001, false, at("S8", "0.3 x", "refused", nil, 0).most},
		{"S8 refused of batches of 40 at 0.1 x, mean", .01, false, at("S8", "batches of 40 at 0.1 x", "refused", nil, 0).mean},
	}
}

// finite makes what was not run a NaN.
func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}
