package main

import (
	"fmt"
	"math"
	"slices"
)

// target is a bound that a section must keep.
type target struct {
	what    string
	limit   float64
	atLeast bool // the limit is the least that will do, instead of the most
	always  bool // every round must keep it, not only the median
	aim     bool // wished for, not required: a miss is told and does not count
	of      func(round) float64
}

// verdict is what became of a target.
type verdict struct {
	target
	value       float64 // the median of the rounds, or the worst of them
	least, most float64 // of the rounds
}

func (t target) judge(r *result) verdict {
	values := r.each(t.of)
	v := verdict{target: t, value: median(values), least: slices.Min(values), most: slices.Max(values)}
	if t.always {
		v.value = v.most
		if t.atLeast {
			v.value = v.least
		}
	}
	return v
}

// met is false also for what could not be measured.
func (v verdict) met() bool {
	if v.atLeast {
		return v.value >= v.limit
	}
	return v.value <= v.limit
}

// word says how it went.
func (v verdict) word() string {
	switch {
	case math.IsNaN(v.value):
		return "not measured"
	case v.met():
		return "met"
	case v.aim:
		return "aim missed"
	}
	return "**missed**"
}

func (v verdict) bound() string {
	sign := "≤"
	if v.atLeast {
		sign = "≥"
	}
	return fmt.Sprintf("%s %s", sign, number(v.limit))
}

// quotient is a target's value: one row's figure over another's.
func quotient(row, base, column string) func(round) float64 {
	return func(m round) float64 { return m.at(row, column) / m.at(base, column) }
}

// just is a target's value: one figure as it is.
func just(row, column string) func(round) float64 {
	return func(m round) float64 { return m.at(row, column) }
}

// noAllocation is the target of a row that must not allocate. What the runtime
// and the peers' background goroutines allocate meanwhile is far below it.
func noAllocation(row, column string) target {
	return target{what: row + ": " + column, limit: 0.01, of: just(row, column)}
}
