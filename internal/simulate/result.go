package simulate

import (
	"time"

	"example.com/forebay"
	"example.com/forebay/internal/admit"
)

// Result is what became of a scenario. Counts are of what began after the warm-up; a call
// that is still on its way at the end counts as such.
type Result struct {
	Scenario  string           `json:"scenario"`
	Seed      uint64           `json:"seed"`
	Seconds   float64          `json:"seconds"`   // that count
	Calls     uint64           `json:"calls"`     // of callers, each once however often it was sent
	Answered  uint64           `json:"answered"`  // before their callers left
	Ideal     float64          `json:"ideal"`     // calls that could have been answered, see [Result.Goodput]
	Goodput   float64          `json:"goodput"`   // Answered ÷ Ideal
	Attempts  uint64           `json:"attempts"`  //
	Wasted    float64          `json:"wasted"`    // part of the work done that was for callers who had left
	Clients   []ClientResult   `json:"clients"`   //
	Gates     []GateResult     `json:"gates"`     // of all instances together
	Resources []ResourceResult `json:"resources"` //
	Points    []Point          `json:"points"`    //
}

// ClientResult is what became of a client's calls.
type ClientResult struct {
	Client   string            `json:"client"`
	Calls    uint64            `json:"calls"`
	Answered uint64            `json:"answered"`
	GivenUp  uint64            `json:"given_up"` // without an answer in any attempt
	Attempts uint64            `json:"attempts"`
	Accepted uint64            `json:"accepted"` // attempts that ran
	Left     uint64            `json:"left"`     // attempts whose callers left while they ran
	Refused  map[string]uint64 `json:"refused"`  // attempts, by decision
	Took     Spread            `json:"took"`     // from its start, of attempts that were answered
	Waited   Spread            `json:"waited"`   // of attempts that ran
	Told     Spread            `json:"told"`     // how long after they came others were refused
}

// GateResult is what a gate did.
type GateResult struct {
	Gate      string            `json:"gate"`
	Decisions map[string]uint64 `json:"decisions"`
	Limit     float64           `json:"limit"` // mean, as the next two
	InFlight  float64           `json:"in_flight"`
	Waiting   float64           `json:"waiting"`
	Waited    Spread            `json:"waited"`
}

// ResourceResult is what a resource did.
type ResourceResult struct {
	Resource string  `json:"resource"`
	Busy     float64 `json:"busy"`    // work done ÷ the most that could have been done
	Calls    float64 `json:"calls"`   // served at once, mean
	Waiting  float64 `json:"waiting"` // in line there, mean
}

// Spread is a distribution of times, in seconds.
type Spread struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

func (h *histogram) spread() Spread {
	at := func(q float64) float64 { return h.quantile(q).Seconds() }
	return Spread{h.mean().Seconds(), at(.5), at(.95), at(.99), at(.999)}
}

// Point is what happened in one interval, warm-up included. Of calls it counts those that
// came, were answered and were refused in it.
type Point struct {
	From     float64   `json:"from"`     // seconds
	Offered  float64   `json:"offered"`  // new calls a second
	Attempts float64   `json:"attempts"` // a second
	Goodput  float64   `json:"goodput"`  // answers a second
	Refused  float64   `json:"refused"`  // a second
	Ideal    float64   `json:"ideal"`    // answers a second that could have been
	Waited   float64   `json:"waited"`   // seconds, the 95th percentile of calls that began to run
	Limit    []float64 `json:"limit"`    // of each gate, means of it and the next two
	InFlight []float64 `json:"in_flight"`
	Waiting  []float64 `json:"waiting"`
}

// decisions says which decision each verdict is. Queued is none yet.
var decisions = [admit.Verdicts]forebay.Decision{
	admit.Granted: forebay.Accepted, admit.Busy: forebay.RejectedBusy, admit.Timeout: forebay.RejectedTimeout,
	admit.Deadline: forebay.RejectedDeadline, admit.TooLarge: forebay.RejectedTooLarge, admit.Draining: forebay.RejectedDraining,
	admit.Canceled: forebay.Canceled, admit.Capped: forebay.RejectedCaller, admit.Store: forebay.RejectedStore,
	admit.Shed: forebay.RejectedShed,
}

// clientTally counts a client's calls.
type clientTally struct {
	sim                                         *sim
	Calls, Answered, GivenUp, Attempts, Started uint64
	Left                                        uint64
	verdicts                                    [admit.Verdicts]uint64
	took, waited, told                          histogram
}

func (t *clientTally) accepted(c *call) {
	if t.sim.counts(c.asked) {
		t.Started++
		t.waited.add(c.waited)
	}
}

func (t *clientTally) answered(c *call) {
	if t.sim.counts(c.asked) {
		t.took.add(time.Duration(t.sim.now - c.asked))
	}
	if t.sim.counts(c.born) {
		t.Answered++
	}
}

func (t *clientTally) left(c *call) {
	if t.sim.counts(c.asked) {
		t.Left++
	}
}

func (t *clientTally) refused(c *call, v admit.Verdict) {
	if t.sim.counts(c.asked) {
		t.verdicts[v]++
		t.told.add(time.Duration(t.sim.now - c.asked))
	}
}

func (t *clientTally) givenUp(c *call) {
	if t.sim.counts(c.born) {
		t.GivenUp++
	}
}

// gateTally counts what a gate decided.
type gateTally struct {
	decisions [admit.Verdicts]uint64
	waits     histogram
}

func named(counts [admit.Verdicts]uint64) map[string]uint64 {
	words := map[string]uint64{}
	for v, n := range counts {
		if n > 0 {
			words[decisions[v].String()] = n
		}
	}
	return words
}

// result sums up.
func (s *sim) result() *Result {
	r := &Result{
		Scenario: s.sc.Name, Seed: s.sc.Seed, Seconds: (s.sc.For - s.sc.WarmUp).Seconds(),
		Gates: []GateResult{}, Resources: []ResourceResult{}, // [] in JSON where there are none
	}
	for _, w := range s.crowds {
		t := &w.tally
		r.Clients = append(r.Clients, ClientResult{
			w.Name, t.Calls, t.Answered, t.GivenUp, t.Attempts, t.Started, t.Left, named(t.verdicts),
			t.took.spread(), t.waited.spread(), t.told.spread(),
		})
		r.Calls, r.Answered, r.Attempts = r.Calls+t.Calls, r.Answered+t.Answered, r.Attempts+t.Attempts
	}
	for i := range s.sc.Gates {
		r.Gates = append(r.Gates, s.gateResult(i))
	}
	for _, b := range s.inOrder {
		r.Resources = append(r.Resources, b.result())
	}
	s.points.finish(r)
	if s.worked > 0 {
		r.Wasted = s.wasted / s.worked
	}
	if r.Ideal > 0 {
		r.Goodput = float64(r.Answered) / r.Ideal
	}
	return r
}

// gateResult adds up what the instances of a gate did.
func (s *sim) gateResult(i int) GateResult {
	var decisions [admit.Verdicts]uint64
	var waits histogram
	g := GateResult{Gate: s.sc.Gates[i].Name}
	for _, in := range s.instances {
		m := in.order[i]
		m.touch()
		for v, n := range m.tally.decisions {
			decisions[v] += n
		}
		waits.merge(&m.tally.waits)
		whole := s.sc.For.Seconds()
		g.Limit += m.area.limit / whole
		g.InFlight += m.area.inFlight / whole
		g.Waiting += m.area.waiting / whole
	}
	g.Decisions, g.Waited = named(decisions), waits.spread()
	return g
}
