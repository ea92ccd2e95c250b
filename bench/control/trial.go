package main

import (
	"fmt"
	"math"
	"time"

	"example.com/forebay/internal/simulate"
)

// trial is one scenario on one backend: what is simulated and what is looked at.
type trial struct {
	suite   string // S1 to S8
	name    string
	backend backend
	load    float64
	length  time.Duration
	warmUp  time.Duration
	every   time.Duration // of the points that are looked at
	calls   func(a *simulate.Arrivals)
	looks   []look
	keep    bool     // the points, for a picture
	among   []string // the contenders that play it; nil: all
}

// look is one figure of a trial.
type look struct {
	name   string
	scored bool // a goodput, compared with the oracle's in the score
	less   bool // less is better
	of     func(r *simulate.Result) float64
}

// scenario is the trial as the simulator takes it, with a contender's gate.
func (t *trial) scenario(c contender, seed uint64) *simulate.Scenario {
	b := t.backend
	g := c.gate(b, seed)
	g.Name = "gate"
	sc := &simulate.Scenario{
		Name: t.title(), Seed: seed, For: t.length, WarmUp: t.warmUp, Every: t.every,
		Resources: b.resources, Gates: []simulate.Gate{g},
		Routes:  []simulate.Route{{Name: "route", Gates: []string{"gate"}, Work: b.work}},
		Clients: []simulate.Client{{Name: "clients", Route: "route", Deadline: deadline, Arrivals: simulate.Arrivals{Rate: b.does * t.load}}},
	}
	if t.calls != nil {
		t.calls(&sc.Clients[0].Arrivals)
	}
	return sc
}

func (t *trial) title() string { return fmt.Sprintf("%s %s, %s", t.suite, t.name, t.backend.name) }

// cost is about how many calls come.
func (t *trial) cost() float64 { return t.backend.does * t.load * t.length.Seconds() }

func goodput(r *simulate.Result) float64 { return r.Goodput }

// late is the part of the calls that ran whose callers had left.
func late(r *simulate.Result) float64 {
	return float64(r.Clients[0].Left) / max(1, float64(r.Clients[0].Accepted))
}

func p99(r *simulate.Result) float64 { return r.Clients[0].Took.P99 * 1000 }

// refused is the part of the calls that was refused.
func refused(r *simulate.Result) float64 {
	sum := uint64(0)
	for _, n := range r.Clients[0].Refused {
		sum += n
	}
	return float64(sum) / float64(max(1, r.Clients[0].Attempts))
}

// between is the goodput of a part of the time, of what could be.
func between(from, to time.Duration) func(r *simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		return quotient(r, from, to, func(p simulate.Point) (float64, float64) { return p.Goodput, p.Ideal })
	}
}

// quotient adds up two figures over a part of the time, and divides the first by the
// other.
func quotient(r *simulate.Result, from, to time.Duration, of func(simulate.Point) (a, b float64)) float64 {
	sumA, sumB := 0.0, 0.0
	for _, p := range r.Points {
		if within(p, from, to) {
			a, b := of(p)
			sumA, sumB = sumA+a, sumB+b
		}
	}
	return sumA / sumB
}

func within(p simulate.Point, from, to time.Duration) bool {
	at := time.Duration(math.Round(p.From*1e9)) + 1 // points begin at multiples that a float may miss
	return at >= from && at < to
}

// refusedBetween is how much is refused in a part of the time, of what is offered.
func refusedBetween(from, to time.Duration) func(r *simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		return quotient(r, from, to, func(p simulate.Point) (float64, float64) { return p.Refused, p.Offered })
	}
}

// reached is how many seconds after from it takes until the goodput of a second, or of
// as long as 100 calls take, stays above 90 % of what could be for two seconds; what
// remains of the time if it never does.
func reached(from, to time.Duration) func(r *simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		var points []simulate.Point
		for _, p := range r.Points {
			if within(p, from, to) {
				points = append(points, p)
			}
		}
		perSecond := int(math.Round(1 / (r.Points[1].From - r.Points[0].From)))
		if len(points) == 0 {
			return math.NaN()
		}
		some := int(max(1, 100/mostOf(points)) * float64(perSecond))
		well := 0
		for i := 0; i+some <= len(points); i++ {
			good, ideal := 0.0, 0.0
			for _, p := range points[i : i+some] {
				good, ideal = good+p.Goodput, ideal+p.Ideal
			}
			if well++; good < .9*ideal {
				well = 0
			}
			if well == 2*perSecond {
				return float64(i+1-well) / float64(perSecond)
			}
		}
		return (to - from).Seconds()
	}
}

// mostOf is the mean rate that could have been.
func mostOf(points []simulate.Point) (rate float64) {
	for _, p := range points {
		rate += p.Ideal / float64(len(points))
	}
	return rate
}

// drift is the most by which the mean limit of a minute differs from that of the whole
// last two thirds.
func drift(r *simulate.Result) float64 {
	points := r.Points[len(r.Points)/3:]
	perMinute := int(math.Round(60 / (r.Points[1].From - r.Points[0].From)))
	mean := meanLimit(points)
	far := 0.0
	for len(points) >= perMinute {
		far = max(far, math.Abs(meanLimit(points[:perMinute])/mean-1))
		points = points[perMinute:]
	}
	return far
}

func meanLimit(points []simulate.Point) (mean float64) {
	for _, p := range points {
		mean += p.Limit[0] / float64(len(points))
	}
	return mean
}
