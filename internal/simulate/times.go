package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// Times is a distribution of times.
type Times interface {
	Draw(r *rand.Rand) float64 // Draw draws one, in seconds.
	Mean() float64             // Mean returns the mean, in seconds.
}

// Fixed is one time.
type Fixed time.Duration

// Draw returns it.
func (t Fixed) Draw(*rand.Rand) float64 { return time.Duration(t).Seconds() }

// Mean returns it as well.
func (t Fixed) Mean() float64 { return time.Duration(t).Seconds() }

// Exponential is an exponential distribution of that mean.
type Exponential time.Duration

// Draw draws one.
func (t Exponential) Draw(r *rand.Rand) float64 { return time.Duration(t).Seconds() * r.ExpFloat64() }

// Mean returns the mean.
func (t Exponential) Mean() float64 { return time.Duration(t).Seconds() }

// Uniform is a uniform distribution.
type Uniform struct{ From, To time.Duration }

// Draw draws one.
func (t Uniform) Draw(r *rand.Rand) float64 {
	return t.From.Seconds() + (t.To-t.From).Seconds()*r.Float64()
}

// Mean returns the mean.
func (t Uniform) Mean() float64 { return (t.From + t.To).Seconds() / 2 }

// Lognormal is a lognormal distribution: Average is its mean, Sigma the deviation of its
// logarithm. A Sigma of 1 has one call in a hundred at ten times the median.
type Lognormal struct {
	Average time.Duration
	Sigma   float64
}

// Draw draws one.
func (t Lognormal) Draw(r *rand.Rand) float64 {
	return t.Average.Seconds() * math.Exp(t.Sigma*r.NormFloat64()-t.Sigma*t.Sigma/2)
}

// Mean returns the mean.
func (t Lognormal) Mean() float64 { return t.Average.Seconds() }

// Pareto is a Pareto distribution, whose tail falls like a power: Average is its mean,
// Shape, above 1, the power. Below 2 its variance is infinite.
type Pareto struct {
	Average time.Duration
	Shape   float64
}

// Draw draws one.
func (t Pareto) Draw(r *rand.Rand) float64 {
	least := t.Average.Seconds() * (t.Shape - 1) / t.Shape
	return least * math.Pow(1-r.Float64(), -1/t.Shape)
}

// Mean returns the mean.
func (t Pareto) Mean() float64 { return t.Average.Seconds() }

// Mix is one of several distributions, each with its share; together they are 1.
type Mix []Part

// Part is one of a [Mix].
type Part struct {
	Share float64
	Takes Times
}

// Draw draws one.
func (m Mix) Draw(r *rand.Rand) float64 {
	u := r.Float64()
	for _, p := range m[:len(m)-1] {
		if u -= p.Share; u < 0 {
			return p.Takes.Draw(r)
		}
	}
	return m[len(m)-1].Takes.Draw(r)
}

// Mean returns the mean.
func (m Mix) Mean() (mean float64) {
	for _, p := range m {
		mean += p.Share * p.Takes.Mean()
	}
	return mean
}
