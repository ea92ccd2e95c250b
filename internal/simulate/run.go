package simulate

import (
	"errors"
	"math/rand/v2"
	"time"

	"example.com/forebay/internal/admit"
)

// sim is one run.
type sim struct {
	sc        *Scenario
	now       instant
	agenda    agenda
	instances []instance
	resources map[string]*resource
	inOrder   []*resource
	foreign   *gate // the one that is; nil: none
	routes    map[string]*route
	crowds    []*crowd
	dice      *rand.Rand // of Retry-After
	calls     uint64
	unused    []*call
	points    points
	worked    float64                        // seconds of work done, warm-up included
	wasted    float64                        // of it, for callers who had left
	told      func(c *call, v admit.Verdict) // every attempt's decision; nil outside tests
	ended     func(c *call)                  // of every attempt that ran; nil outside tests
}

// instance is one program: the gates that it has, by name and in order.
type instance struct {
	gates map[string]*gate
	order []*gate
}

// route is a [Route] in a run.
type route struct {
	Route
	cost  int
	visit []*resource
}

// start is the time that machines are told at the start.
var start = time.Unix(1_000_000_000, 0)

func (s *sim) time(t instant) time.Time { return start.Add(time.Duration(t)) }

// after returns the instant that many seconds from now.
func (s *sim) after(seconds float64) instant {
	if ns := seconds * 1e9; ns < float64(never-s.now) {
		return s.now + instant(ns)
	}
	return never
}

// Run plays a scenario, on the caller's goroutine. progress is told a hundred times how
// much of it is done; it may be nil. The error says everything that is wrong with the
// scenario, or that calls were lost or counted twice, which is a bug here and comes with
// the result. The scenario is only read, so it can be played again, also at once.
func Run(sc *Scenario, progress func(done time.Duration)) (*Result, error) {
	if err := sc.validate(); err != nil {
		return nil, err
	}
	s := newSim(sc)
	const steps = 100
	for i := range steps {
		s.until(instant(sc.For) * instant(i+1) / steps)
		if progress != nil {
			progress(time.Duration(s.now))
		}
	}
	r := s.result()
	return r, errors.Join(s.conservation()...)
}

func newSim(sc *Scenario) *sim {
	s := &sim{sc: sc, resources: map[string]*resource{}, routes: map[string]*route{}}
	s.dice = rand.New(rand.NewPCG(sc.Seed, 3))
	for _, r := range sc.Resources {
		b := newResource(s, r)
		s.resources[r.Name], s.inOrder = b, append(s.inOrder, b)
	}
	for i := range max(1, sc.Instances) {
		in := instance{gates: map[string]*gate{}}
		for _, g := range sc.Gates {
			m := newGate(s, g, i)
			in.gates[g.Name], in.order = m, append(in.order, m)
		}
		s.instances = append(s.instances, in)
	}
	for _, r := range sc.Routes {
		way := &route{Route: r, cost: max(1, r.Cost)}
		for _, v := range r.Work {
			way.visit = append(way.visit, s.resources[v.At])
		}
		s.routes[r.Name] = way
	}
	s.points.begin(s)
	for _, c := range sc.Clients {
		s.crowds = append(s.crowds, newCrowd(s, c, s.routes[c.Route]))
	}
	return s
}

// until plays what happens up to a time.
func (s *sim) until(end instant) {
	for {
		e := s.agenda.events.first()
		if s.waitForeign(instant(min(e.key, float64(end)))) {
			continue // it may have changed what comes next
		}
		if e.key > float64(end) {
			break
		}
		s.now = instant(e.key)
		e.fire()
	}
	s.now = end
}
