package admit

import (
	"math"
	"time"
)

// rate measures μ, the departures per second while the gate is full. Only full
// time counts: an idle gate's departures say how much was asked, not how much it
// can carry.
//
// Both sums forget by departures, not by seconds, so that a backend of 2 ms and
// one of 20 s are followed equally well. A memory of 64 departures follows a
// tenfold change within about 150 departures at a standard error of 9 %; half of
// it doubles the variance and makes the chance rule refuse at random, twice it
// doubles the time after which a recovered backend is believed.
type rate struct {
	full       bool
	since      time.Time // up to where full time was counted
	departures float64
	seconds    float64
}

const (
	rateMemory = 64 // departures
	// rateKnown is how many departures must have been seen before μ is believed:
	// its standard error is then a third. With half of it chance alone refuses
	// callers of a healthy gate, with twice it slow gates stay unmeasured long.
	rateKnown = 8
)

// advance counts the time since the last event as full or not and notes whether
// the gate is full from now on. Events come in the order of the lock, and some read
// the clock before they had it: one that is a little behind counts nothing and does
// not turn the time back, or the next would count it twice. A jump to another clock
// (a fake one, or out of it) counts nothing either.
func (r *rate) advance(now time.Time, full bool) {
	dt := now.Sub(r.since)
	if r.full && dt > 0 && dt < anotherClock {
		r.seconds += dt.Seconds()
	}
	if dt > 0 || dt < -anotherClock {
		r.since = now
	}
	r.full = full
}

// anotherClock is a step that no clock takes.
const anotherClock = 30 * 24 * time.Hour

// depart counts one departure.
func (r *rate) depart(now time.Time) {
	if !r.full {
		return
	}
	r.advance(now, true)
	const keep = 1 - 1.0/rateMemory
	r.departures = r.departures*keep + 1
	r.seconds *= keep
}

// perSecond returns μ, and false while too little was seen to say.
func (r *rate) perSecond() (float64, bool) {
	if r.departures < rateKnown || r.seconds <= 0 {
		return 0, false
	}
	return r.departures / r.seconds, true
}

// hold returns for how long a unit is held, by Little's law: limit ÷ μ; 0 while that is
// not known. A call that has less than half of it until its deadline would hardly make
// it: with all of it one that needs less than others is sent away, with none of it work
// is begun that nobody waits for any more.
func (r *rate) hold(limit int) time.Duration {
	mu, known := r.perSecond()
	if !known {
		return 0
	}
	return time.Duration(min(float64(limit)/mu, maxSeconds) * float64(time.Second))
}

// chance is the least probability of being served in time with which a call is
// let into the line. At half of it, line places go to calls that time out 39 of
// 40 times; at twice it, one caller in ten that would have been served is sent
// away.
const chance = 0.05

// hopeless reports whether a call at the given place has hardly a chance of
// being served within its patience: P[Poisson(μ × patience) ≥ place] < 5 %.
func (r *rate) hopeless(place int, patience time.Duration) bool {
	mu, known := r.perSecond()
	if !known {
		return false
	}
	return poissonTailBelow(mu*patience.Seconds(), place, chance)
}

// poissonTailBelow reports whether P[Poisson(mean) ≥ k] < p, for p < 0.3. The
// median of a Poisson variable is at least mean - ln 2, so a place at or below
// that is reached with probability one half at least. Beyond the mean the terms
// fall from one to the next, and the sum is left as soon as it reaches p.
func poissonTailBelow(mean float64, k int, p float64) bool {
	if k <= 0 || float64(k) <= mean-math.Ln2 {
		return false
	}
	if mean <= 0 {
		return true
	}
	lg, _ := math.Lgamma(float64(k) + 1)
	term := math.Exp(float64(k)*math.Log(mean) - mean - lg)
	sum := 0.0
	for n := float64(k); sum < p; n++ {
		sum += term
		// What is left is at most a geometric series of this ratio.
		ratio := mean / (n + 1)
		if ratio < 1 && sum+term*ratio/(1-ratio) < p {
			return true
		}
		term *= ratio
	}
	return false
}
