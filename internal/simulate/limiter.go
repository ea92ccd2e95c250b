package simulate

import (
	"example.com/forebay"
	"example.com/forebay/internal/admit"
)

// Limiter returns a limiter of the library's as a machine is told it.
func Limiter(l forebay.Limiter) admit.Limiter { return limiter{l} }

type limiter struct{ of forebay.Limiter }

// Observe hands an observation on, under the library's names.
func (l limiter) Observe(o *admit.Observation) int {
	return l.of.Observe(&forebay.Observation{
		Kind: forebay.ObservationKind(o.Kind), Now: o.Now,
		InFlight: o.InFlight, Waiting: o.Waiting, Limit: o.Limit, Offered: o.Offered,
		Cost: o.Cost, Waited: o.Waited, Held: o.Held,
		Outcome: forebay.Outcome(o.Outcome), Deadline: o.Deadline,
	})
}
