package server

import (
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/cmd/forebay/internal/telemetry"
)

// auto is the limiter of a gate whose limit finds itself. It goes with its gate through
// every reload. The gate calls Observe under its lock; the rest is for whoever operates.
type auto struct {
	moved func(admin.LimitMove) // under the gate's lock

	mu    sync.Mutex // guards what follows; under the gate's lock, and for moments
	probe *adaptive.Probe
	at    time.Time // of the observation
	wants *adaptive.ProbeConfig
	fixed int // by hand; 0: it finds itself
	moves uint64
	by    map[string]uint64          // of them, by reason
	last  [lastMoves]admin.LimitMove // the latest is at moves-1
}

// lastMoves is how many moves of a limit are kept to be looked at: with one every second,
// which is many, those of the last minute.
const lastMoves = 64

// newAuto returns the limiter of a gate that begins with the given limit.
func newAuto(c config.Auto, start int, moved func(admin.LimitMove)) (*auto, error) {
	a := &auto{moved: moved, by: map[string]uint64{}}
	for _, why := range adaptive.Reasons {
		a.by[string(why)] = 0
	}
	settings := a.settings(c, start)
	settings.Seed = rand.Uint64() // no two probe in step
	var err error
	a.probe, err = adaptive.NewProbe(settings)
	return a, err
}

func (a *auto) settings(c config.Auto, start int) adaptive.ProbeConfig {
	return adaptive.ProbeConfig{Min: c.Min, Max: c.Max, Deadline: c.Deadline, Start: min(max(start, c.Min), c.Max), Moved: a.note}
}

// Observe implements [forebay.Limiter].
func (a *auto) Observe(o *forebay.Observation) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = o.Now
	if a.wants != nil {
		_ = a.probe.Configure(*a.wants) // it was checked when the configuration was read
		a.wants = nil
	}
	if a.fixed > 0 {
		a.probe.Skip(o)
		return a.fixed
	}
	return a.probe.Observe(o)
}

// note is told of each move of the centre, while Observe runs.
func (a *auto) note(from, to float64, why adaptive.Reason) {
	m := admin.LimitMove{At: a.at, From: whole(from), To: whole(to), Why: string(why)}
	if m.From == m.To {
		return
	}
	a.last[a.moves%lastMoves] = m
	a.moves++
	a.by[m.Why]++
	a.moved(m)
}

func whole(centre float64) int { return int(centre + .5) }

// set has other settings put in force, from the next observation on.
func (a *auto) set(c config.Auto) {
	a.mu.Lock()
	defer a.mu.Unlock()
	settings := a.settings(c, c.Start)
	a.wants = &settings
}

// fix has the limit stay at n, from the next observation on, and returns where it stayed
// before; 0: it finds itself.
func (a *auto) fix(n int) (was int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, a.fixed = a.fixed, n
	return was
}

// limit is the one that it wants, whatever was set by hand.
func (a *auto) limit() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.probe.State().Limit
}

// state is what operators see.
func (a *auto) state() *admin.Auto {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, c := a.probe.State(), a.probe.Config()
	shown := &admin.Auto{
		Min: c.Min, Max: c.Max, DeadlineMS: c.Deadline.Milliseconds(),
		Limit: s.Limit, Centre: s.Centre, Phase: s.Phase, Reason: string(s.Reason),
		Elasticity: s.Elasticity, Unsure: s.Unsure, Overload: s.Overload,
		TookMS: float64(s.Took) / float64(time.Millisecond), Rate: s.Rate, DeadlineCap: s.Cap,
		SetTo: a.fixed, Phases: s.Phases, Moves: a.moves, MovesBy: maps.Clone(a.by), Last: []admin.LimitMove{},
	}
	for i := a.moves - min(a.moves, lastMoves); i < a.moves; i++ {
		shown.Last = append(shown.Last, a.last[i%lastMoves])
	}
	return shown
}

// autoOf returns the limiter of a gate whose limit finds itself, else nil.
func autoOf(g *forebay.Gate) *auto {
	if g == nil {
		return nil
	}
	a, _ := g.Config().Limiter.(*auto)
	return a
}

// limiterFor returns the limiter of a gate as it is configured, nil if there is to be
// none. One that the gate has already goes on, with what it has learnt; a gate that runs
// without one goes on from the limit that is in force.
func (s *Server) limiterFor(g *forebay.Gate, c config.Gate) (forebay.Limiter, error) {
	if c.Auto == nil {
		return nil, nil
	}
	if a := autoOf(g); a != nil {
		a.set(*c.Auto)
		return a, nil
	}
	start := c.MaxInFlight
	if g != nil {
		if n := g.Stats().Capacity; n > 0 {
			start = n
		}
	}
	a, err := newAuto(*c.Auto, start, func(m admin.LimitMove) { s.limitMoved(c.Name, m) })
	if err != nil {
		return nil, err
	}
	return a, nil
}

// ownLimit is what is in force on a gate unless somebody sets another limit by hand.
func ownLimit(g *forebay.Gate, c *config.Gate) int {
	if a := autoOf(g); a != nil && c.Auto != nil {
		return a.limit()
	}
	return limit(c)
}

// setByHand puts a limit in force on a gate of this program alone.
func setByHand(g *forebay.Gate, n int) error {
	a := autoOf(g)
	if a == nil {
		return g.SetLimit(n)
	}
	was := a.fix(n)
	err := g.SetLimit(n)
	if err != nil {
		a.fix(was)
	}
	return err
}

// setFree puts a limit in force again that nobody has set by hand.
func setFree(g *forebay.Gate, n int) error {
	if a := autoOf(g); a != nil {
		a.fix(0)
		n = a.limit()
	}
	return g.SetLimit(n)
}

// limitMoved is told of each move of a limit, under its gate's lock: the log only queues
// a line, ten a second at most.
func (s *Server) limitMoved(gate string, m admin.LimitMove) {
	s.log.Paced().Info("a limit has moved", "gate", gate, "from", m.From, "to", m.To, "why", m.Why)
}

// shownAutos is what the metrics show of limits that find themselves.
func (s *Server) shownAutos() (shown []telemetry.Auto) {
	for _, g := range s.Gates() {
		a := autoOf(g)
		if a == nil {
			continue
		}
		st := a.state()
		one := telemetry.Auto{
			Gate: g.Name(), Centre: st.Centre, Phase: st.Phase, Elasticity: st.Elasticity, Unsure: st.Unsure, Overload: st.Overload,
			Took: time.Duration(st.TookMS * float64(time.Millisecond)), Rate: st.Rate, Cap: st.DeadlineCap, Phases: st.Phases, Moves: st.MovesBy,
		}
		if n := len(st.Last); n > 0 {
			one.Moved = st.Last[n-1].At
		}
		shown = append(shown, one)
	}
	return shown
}

// Auto returns what a gate's limiter has found out, nil if its limit stays as it is.
func (s *Server) Auto(g *forebay.Gate) *admin.Auto {
	if a := autoOf(g); a != nil {
		return a.state()
	}
	return nil
}
