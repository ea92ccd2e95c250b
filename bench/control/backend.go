package main

import (
	"math"
	"time"

	"example.com/forebay/internal/simulate"
)

const ms = time.Millisecond

// backend is one that limits are tried on.
type backend struct {
	name      string
	does      float64 // calls a second, at best
	right     int     // the limit that whoever knows it would give
	resources []simulate.Resource
	work      []simulate.Visit
	ordinary  bool // held to the pass line of all; the others have lines of their own
}

// one is a backend with one resource.
func one(name string, does float64, right int, at simulate.Resource, takes simulate.Times) backend {
	at.Name = "backend"
	return backend{name, does, right, []simulate.Resource{at}, []simulate.Visit{{At: "backend", Takes: takes}}, true}
}

// oneInTen is the mix of short calls and long ones.
var oneInTen = simulate.Mix{
	{Share: .9, Takes: simulate.Uniform{From: 12 * ms, To: 18 * ms}},
	{Share: .1, Takes: simulate.Uniform{From: 292 * ms, To: 438 * ms}},
}

var (
	servers50 = one("50 servers", 1000, 50, simulate.Resource{Servers: 50}, simulate.Exponential(50*ms))
	bimodal50 = one("one in ten slow", 1000, 50, simulate.Resource{Servers: 50}, oneInTen)
	contended = universal("contention", .02, .0006, 14600*time.Microsecond)
	pooled    = backend{
		"pool of 20", 1000, 23,
		[]simulate.Resource{{Name: "web", Servers: 8}, {Name: "pool", Servers: 20}},
		[]simulate.Visit{{At: "web", Takes: simulate.Exponential(2 * ms)}, {At: "pool", Takes: simulate.Lognormal{Average: 20 * ms, Sigma: 1}}},
		true,
	}
	lockStep = one("lock step", 1000, 50, simulate.Resource{Servers: 50}, simulate.Fixed(50*ms))
	steep    = universal("steep contention", .05, .004, 10*ms)
	cliff    = special(one("cliff", 1000, 30, simulate.Resource{Cliff: simulate.Cliff{At: 30, Power: 1.5}}, simulate.Exponential(30*ms)))
	big      = one("500 servers", 10_000, 500, simulate.Resource{Servers: 500}, simulate.Exponential(50*ms))
	fast     = one("2 ms", 8000, 16, simulate.Resource{Servers: 16}, simulate.Exponential(2*ms))
	slow     = special(one("20 a second", 20, 4, simulate.Resource{Servers: 4}, simulate.Exponential(200*ms)))
	rareSlow = one("one in 100 takes 2 s", 1000, 50, simulate.Resource{Servers: 50}, simulate.Mix{
		{Share: .99, Takes: simulate.Uniform{From: 24240 * time.Microsecond, To: 36360 * time.Microsecond}},
		{Share: .01, Takes: simulate.Uniform{From: 1600 * ms, To: 2400 * ms}},
	})
)

// all are those of the control design.
var all = []backend{servers50, bimodal50, contended, pooled, lockStep, steep, rareSlow, big, fast, cliff, slow}

// four are those of most scenarios.
var four = []backend{servers50, bimodal50, contended, pooled}

func special(b backend) backend {
	b.ordinary = false
	return b
}

// universal is a backend after the universal scalability law.
func universal(name string, sigma, kappa float64, takes time.Duration) backend {
	n := math.Round(math.Sqrt((1 - sigma) / kappa))
	most := n / (1 + sigma*(n-1) + kappa*n*(n-1))
	return one(name, most/takes.Seconds(), int(n), simulate.Resource{Sigma: sigma, Kappa: kappa}, simulate.Exponential(takes))
}

// with returns the backend with something else that becomes of its last resource.
func (b backend) with(change func(r *simulate.Resource)) backend {
	b.resources = append([]simulate.Resource(nil), b.resources...)
	change(&b.resources[len(b.resources)-1])
	return b
}
