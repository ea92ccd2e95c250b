package verdict

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

// Recorder counts what gates do, and once a second judges it. Make one with
// [NewRecorder]; it is an observer of gates, safe for concurrent use, and has nothing to
// close.
type Recorder struct {
	gates atomic.Pointer[map[string]*recorded]

	mu       sync.Mutex // guards what follows; one Tick at a time
	order    []*recorded
	verdicts []Verdict
}

// recorded is one gate that is watched.
type recorded struct {
	gate    *forebay.Gate
	terms   Terms
	blocked atomic.Int64
	early   atomic.Uint64

	counting sync.Mutex // guards what follows
	second   Sample
	waits    spread
	ended    Levels
	routes   map[string]*spread // how long calls hold, by route
	fast     map[string]bool    // lanes that have units of their own
	reserved int32

	history *History // guarded by the recorder's lock
}

// maxRoutes is of how many routes of a gate it is known how long their calls take.
// Routes are configured; a program that gave raw paths as such would fill the memory.
const maxRoutes = 256

// NewRecorder returns a recorder of no gates.
func NewRecorder() *Recorder {
	r := &Recorder{}
	r.gates.Store(&map[string]*recorded{})
	return r
}

// Watch tells of the gates in force, in their order. A gate that stays keeps its
// history.
func (r *Recorder) Watch(gates ...*forebay.Gate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, now := *r.gates.Load(), make(map[string]*recorded, len(gates))
	r.order = nil
	for _, g := range gates {
		c := g.Config()
		one := &recorded{gate: g, routes: map[string]*spread{}, history: NewHistory()}
		if was := old[g.Name()]; was != nil && was.gate == g {
			one = was
		}
		one.terms = Terms{MaxWait: c.MaxWait.Seconds(), EarlyBack: c.Hold != forebay.HoldHandler, PerCaller: c.PerCaller.MaxInFlight > 0}
		one.lanes(c.Lanes)
		now[g.Name()] = one
		r.order = append(r.order, one)
	}
	r.gates.Store(&now)
}

// lanes notes those that are fast: units are kept for them, so that they need not wait.
func (one *recorded) lanes(all []forebay.Lane) {
	one.counting.Lock()
	defer one.counting.Unlock()
	one.fast, one.reserved = map[string]bool{}, 0
	for _, l := range all {
		if l.Reserved > 0 {
			one.fast[l.Name] = true
			one.reserved += int32(l.Reserved)
		}
	}
}

// Blocked returns where it is counted how many calls of a gate wait for their clients to
// read at this moment; nil of a gate that is not watched.
func (r *Recorder) Blocked(gate string) *atomic.Int64 {
	if one := (*r.gates.Load())[gate]; one != nil {
		return &one.blocked
	}
	return nil
}

// Early counts a caller that came back before it was told to.
func (r *Recorder) Early(gate string) {
	if one := (*r.gates.Load())[gate]; one != nil {
		one.early.Add(1)
		one.counting.Lock()
		one.second.Early++
		one.counting.Unlock()
	}
}

// Observe counts what a gate has decided, and how long calls took.
func (r *Recorder) Observe(e forebay.Event) {
	one := (*r.gates.Load())[e.Gate]
	if one == nil || e.Kind == forebay.EventOverdue {
		return
	}
	one.counting.Lock()
	defer one.counting.Unlock()
	s := &one.second
	s.InFlight, s.Waiting = max(s.InFlight, int32(e.InFlight)), max(s.Waiting, int32(e.Waiting))
	if e.Kind == forebay.EventReleased {
		one.release(&e)
		return
	}
	short := one.decide(&e)
	if one.fast[e.Lane] {
		s.Fast++
		if short || e.Waited > 0 {
			s.FastLate++
		}
	}
}

// decide counts a decision and reports whether it is a refusal for want of a slot.
func (one *recorded) decide(e *forebay.Event) (short bool) {
	s := &one.second
	switch e.Decision {
	case forebay.Accepted:
		s.Accepted++
		one.waits.add(e.Waited)
	case forebay.RejectedTimeout, forebay.RejectedDeadline, forebay.RejectedShed:
		s.Short++
		one.waits.add(e.Waited)
		return true
	case forebay.RejectedBusy:
		s.Short++
		return true
	default:
		s.Others++
	}
	return false
}

func (one *recorded) release(e *forebay.Event) {
	held := e.Held.Seconds()
	one.second.Ended++
	one.second.Held += float32(held)
	one.second.HeldLog += logOf(held)
	among := e.InFlight + e.Cost
	if e.InFlight <= e.Limit { // the slot may have been handed on already
		among = min(among, e.Limit)
	}
	one.ended.Ended(among, held)
	took := one.routes[e.Route]
	if took == nil {
		if len(one.routes) >= maxRoutes {
			return
		}
		took = &spread{}
		one.routes[e.Route] = took
	}
	took.add(e.Held)
}

// Change is a verdict that came up or is over.
type Change struct {
	Verdict
	Over bool
	// WaitsLong is set of the early warning, which has no verdict: calls of the gate
	// wait for a good part of their patience.
	WaitsLong bool
}

// Tick ends a second: it adds it to the histories, and returns what has changed. cpu is
// how busy the processor was, 0 to 1, below 0 if that is not known.
func (r *Recorder) Tick(cpu float64) (changes []Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts = nil
	for _, one := range r.order {
		before := *one.history.at(0)
		one.tick(cpu)
		now := one.history.verdicts(one.gate.Name())
		r.verdicts = append(r.verdicts, now...)
		changes = append(changes, one.changes(before.up, now)...)
	}
	return changes
}

func (one *recorded) changes(before kinds, now []Verdict) (changes []Change) {
	up := one.history.at(0).up
	name := one.gate.Name()
	for _, v := range now {
		if before&kindOf(v.Verdict).bit() == 0 {
			changes = append(changes, Change{Verdict: v})
		}
	}
	for k := range kindCount {
		if before&k.bit() != 0 && up&k.bit() == 0 {
			changes = append(changes, Change{Verdict: Verdict{Gate: name, Verdict: k.String()}, Over: true})
		}
	}
	if (before^up)&waitsLong != 0 {
		v := Verdict{Gate: name}
		v.Text = "calls wait for " + span(one.history.over(window).WaitP95) + " of at most " + one.gate.Config().MaxWait.String()
		changes = append(changes, Change{Verdict: v, Over: up&waitsLong == 0, WaitsLong: true})
	}
	return changes
}

func kindOf(name string) Kind {
	for k := range kindCount {
		if kindNames[k] == name {
			return k
		}
	}
	return kindCount
}

// tick adds the second that is over.
func (one *recorded) tick(cpu float64) {
	st := one.gate.Stats()
	one.counting.Lock()
	s, ended, waits := one.second, one.ended, one.waits
	one.second, one.ended, one.waits = Sample{}, Levels{}, spread{}
	s.Reserved = one.reserved
	one.counting.Unlock()
	s.Limit, s.CPU = int32(st.Capacity), float32(cpu)
	s.InFlight, s.Waiting = max(s.InFlight, int32(st.InUse)), max(s.Waiting, int32(st.Waiting))
	s.WaitP95 = float32(waits.quantile(.95).Seconds())
	s.Blocked = int32(max(0, one.blocked.Load()))
	if st.OldestHolder != nil {
		s.Oldest = float32(st.OldestHolder.Held.Seconds())
		if st.OldestHolder.Held >= staleFrom {
			s.Stale = one.stale()
		}
	}
	one.history.Add(s, one.terms, &ended)
}

const (
	// staleFrom is how long a lease is held at least that is taken for one that nobody
	// will give back, and staleTimes how many times as long as nearly all calls of its
	// route. Twice of them is found later, half of them finds what is slow today.
	staleFrom  = 3 * time.Second
	staleTimes = 4
)

// stale counts the leases that are held for far longer than calls of their routes are.
// Of routes that no call has come back from nothing is known: streams are among them.
func (one *recorded) stale() (n int32) {
	held := one.gate.Holders()
	one.counting.Lock()
	defer one.counting.Unlock()
	for _, h := range held {
		took := one.routes[h.Route]
		if took != nil && took.n() >= enough && h.Held >= max(staleFrom, staleTimes*took.quantile(.99)) {
			n += int32(h.Cost)
		}
	}
	return n
}

// Verdicts returns what is wrong now, by gate in their order.
func (r *Recorder) Verdicts() []Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Verdict{}, r.verdicts...)
}

// EarlyRetries returns how many callers of each gate came back before they were told to.
func (r *Recorder) EarlyRetries() map[string]uint64 {
	all := map[string]uint64{}
	for name, one := range *r.gates.Load() {
		all[name] = one.early.Load()
	}
	return all
}

// WaitLong returns the names of the gates whose calls wait for a good part of their
// patience, and have for some seconds.
func (r *Recorder) WaitLong() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.order {
		if one.history.at(0).up&waitsLong != 0 {
			names = append(names, one.gate.Name())
		}
	}
	return names
}

// History returns the samples of a gate, the oldest first; nil if it is not watched.
func (r *Recorder) History(gate string) []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := (*r.gates.Load())[gate]; one != nil {
		return one.history.Samples()
	}
	return nil
}
