package main

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"time"

	"example.com/forebay"
)

const (
	loadPatience = 100 * time.Millisecond
	loadWaiting  = 2 * backendSlots // forebay's default, given to chi as its backlog

	goodput   = "goodput ÷ capacity"
	refusedIn = "refusal p50, ms"
	answerIn  = "answer p99, ms"
	mostSeen  = "most in flight"
)

var loads = []float64{0.5, 1, 2, 5, 10}

// Names of the fronts; a row is one of them at one load.
const (
	frontNone     = "no gate"
	frontOurs     = "forebay"
	frontChi      = "chi throttle"
	frontFailsafe = "failsafehttp"
	frontIdeal    = "ideal gate, computed"
)

func atLoad(x float64, front string) string { return fmt.Sprintf("%g x, %s", x, front) }

func goodputSection(e effort) (*section, error) {
	s := &section{
		name: "goodput", title: "Goodput of a backend that collapses",
		about: "A backend with 20 slots and 50 ms of work. Requests over the 20 wait inside it and slow everybody down, by 50 % for each 20; work goes on when its caller has left. Callers come in an open loop (Poisson, the same moments for every gate, all gates at the same time, each with a backend of its own) and leave after 500 ms. Goodput is answers in time over what the backend can do, which is measured at the same time on one more backend with exactly 20 at work, without callers or a gate.",
		columns: []column{
			{name: goodput, more: true, noise: 0.005}, {name: refusedIn, noise: 0.1}, {name: answerIn, neutral: true}, {name: mostSeen, neutral: true},
		},
		rounds: e.loadRounds,
		notes: []string{
			"forebay: MaxInFlight 20, MaxWait 100 ms. chi: limit 20, backlog 40, timeout 100 ms. failsafehttp: bulkhead of 20, max wait 100 ms; its line has no bound, so that every refusal waits the 100 ms.",
			"The ideal gate is computed for the same arrivals: what it lacks to 1 at 1 x is chance (while fewer come than leave, slots stay empty), and no gate with these settings can do better.",
			longRun(),
			"aegis is not here: it sheds by CPU use, of which this backend, like most that wait for a database, has none.",
		},
	}
	for _, x := range loads {
		against := atLoad(x, frontOurs)
		s.rows = append(s.rows,
			row{name: atLoad(x, frontIdeal), kind: yardstick},
			row{name: against, kind: ours},
			row{name: atLoad(x, frontChi), kind: rival, against: against},
			row{name: atLoad(x, frontFailsafe), kind: rival, against: against},
			row{name: atLoad(x, frontNone), kind: rival, against: against},
		)
	}
	s.targets = goodputTargets()
	s.together = func(i int) (round, error) { return goodputRound(e, uint64(i)), nil }
	return s, nil
}

// longRun says what theory allows, by computing the ideal gate over a time in
// which chance hardly matters.
func longRun() string {
	const rate = backendSlots / (float64(serviceTime) / float64(time.Second))
	w := window{from: time.Second, to: 1000 * time.Second}
	at := func(x float64) string { return number(idealGate(arrivals(1, x*rate, w.to), w, rate)[goodput]) }
	return fmt.Sprintf("How many callers come in a run is fixed at the mean, which makes a run of seconds at 1 x steadier, and a little better, than a long one. Computed over 1000 s the ideal gate reaches %s at 1 x and %s at 2 x.", at(1), at(2))
}

func goodputTargets() []target {
	var all []target
	for _, x := range loads {
		if x >= 1 {
			all = append(all, target{
				what: fmt.Sprintf("goodput ÷ capacity at %g x", x), limit: 0.98, atLeast: true, of: just(atLoad(x, frontOurs), goodput),
			})
		}
	}
	return append(all,
		target{what: "refusal p50 at the worst load, ms", limit: 1, of: worstOf(refusedIn)},
		target{what: "most in flight at any load", limit: backendSlots, always: true, of: worstOf(mostSeen)},
	)
}

// worstOf is the largest figure of ours at any load at which there was one.
func worstOf(column string) func(round) float64 {
	return func(m round) float64 {
		worst := math.NaN()
		for _, x := range loads {
			if v := m.at(atLoad(x, frontOurs), column); math.IsNaN(worst) || v > worst {
				worst = v
			}
		}
		return worst
	}
}

// goodputRound measures every load once.
func goodputRound(e effort, seed uint64) round {
	m := round{}
	rate := backendSlots / serviceTime.Seconds()
	warmUp := min(e.load/2, time.Second)
	w := window{from: warmUp, to: warmUp + e.load}
	for k, x := range loads {
		runtime.GC() // the callers of the last load are not this one's
		times := arrivals(seed*100+uint64(k), x*rate, w.to)
		fronts := newFronts()
		began, capacity := drive(fronts, times, w)
		for _, f := range fronts {
			m[atLoad(x, f.name)] = f.figures(began, w, capacity)
		}
		m[atLoad(x, frontIdeal)] = idealGate(times, w, capacity)
	}
	return m
}

// newFronts puts each gate before a backend of its own.
func newFronts() []*front {
	gate := newGate(forebay.Config{MaxInFlight: backendSlots, MaxWait: loadPatience})
	gates := []struct {
		name string
		wrap func(http.Handler) http.Handler
	}{
		{frontNone, func(h http.Handler) http.Handler { return h }},
		{frontOurs, gate.Wrap},
		{frontChi, func(h http.Handler) http.Handler { return chiHandler(backendSlots, loadWaiting, loadPatience, h) }},
		{frontFailsafe, func(h http.Handler) http.Handler {
			return failsafeHandler(newBulkhead[*http.Response](backendSlots, loadPatience), h)
		}},
	}
	var fronts []*front
	for _, g := range gates {
		b := newBackend()
		fronts = append(fronts, &front{name: g.name, backend: b, handler: g.wrap(b)})
	}
	return fronts
}
