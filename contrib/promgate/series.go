package promgate

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay"
)

// maxLanes bounds the lanes of one route: a gate has no more, and a route has one.
const maxLanes = 16

// decisions is every decision that a call can get, in order; the place of each is
// its value less one.
var decisions = func() (all []forebay.Decision) {
	unknown := forebay.Decision(math.MaxUint8).String()
	for d := forebay.Undecided + 1; d.String() != unknown; d++ {
		all = append(all, d)
	}
	return all
}()

// gateSeries is what is kept of one gate between scrapes.
type gateSeries struct {
	routes *table[routeSeries]
	wait   []prometheus.Observer      // by decision
	hold   func() prometheus.Observer // made when first needed: most gates do not track
	tracks atomic.Bool                // the gate measures how long leases are held

	exchange func() prometheus.Observer // made when first needed: most gates have no cluster
	peaks    peaks
}

// routeSeries counts the decisions of one route at one gate, by lane: each route has one,
// and calls from code may have any.
type routeSeries struct {
	lanes *table[laneSeries]
}

type laneSeries struct {
	decided []prometheus.Counter
}

// newGateSeries makes all series of a gate at once, those of decisions that may
// never come included: a counter that appears with the first burst of refusals
// already in it has no increase that rate() could see.
func (c *Collector) newGateSeries(gate string) *gateSeries {
	s := &gateSeries{
		hold:     sync.OnceValue(func() prometheus.Observer { return c.hold.WithLabelValues(gate) }),
		exchange: sync.OnceValue(func() prometheus.Observer { return c.exchanges.WithLabelValues(gate) }),
	}
	for _, d := range decisions {
		s.wait = append(s.wait, c.wait.WithLabelValues(gate, d.String()))
	}
	s.routes = newTable(c.maxRoutes, func(route string) *routeSeries {
		return &routeSeries{newTable(maxLanes, func(lane string) *laneSeries {
			l := &laneSeries{}
			for _, d := range decisions {
				l.decided = append(l.decided, c.decided.WithLabelValues(gate, route, lane, d.String()))
			}
			return l
		})}
	})
	return s
}

// Observe counts one event. It is [forebay.Observer]'s method, for gates to call.
func (c *Collector) Observe(e forebay.Event) {
	s := c.gates.get(e.Gate)
	s.peaks.note(&e)
	switch e.Kind {
	case forebay.EventDecided:
		s.decided(&e)
	case forebay.EventReleased:
		s.released(&e)
	}
}

func (s *gateSeries) decided(e *forebay.Event) {
	i := int(e.Decision) - 1
	if i < 0 || i >= len(decisions) {
		return // no gate says so; and labels come from a closed set
	}
	s.routes.get(e.Route).lanes.get(e.Lane).decided[i].Inc()
	s.wait[i].Observe(e.Waited.Seconds())
}

// released counts how long a lease was held. A gate that does not track says 0,
// which must not be taken for a measurement; one that does may say 0 as well,
// where the clock is coarse.
func (s *gateSeries) released(e *forebay.Event) {
	if e.Held > 0 || s.tracks.Load() {
		s.hold().Observe(e.Held.Seconds())
	}
}
