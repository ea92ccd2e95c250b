package admit

import "time"

// Limiter moves a machine's limit. Observe is told every change of what the
// machine shows, in order, and answers with the limit that it wants. It reads no
// clock: what it answers depends on what it was told and on nothing else.
type Limiter interface {
	// Observe is told one change and returns the limit that it wants, in units.
	Observe(o *Observation) (limit int)
}

// Kind says what an [Observation] reports.
type Kind uint8

// The kinds of observation.
const (
	Changed  Kind = iota // the first of all; then configuration or limit was set from outside
	Joined               // a call joined the line
	Started              // a call got its slot, at once or out of the line
	Finished             // a call gave its slot back; it is not handed on yet
	Left                 // a call left the line without a slot, or never used the one it got
)

// Outcome says how a call ended.
type Outcome uint8

// The outcomes. The zero value, Done, is a call that ended well.
const (
	Done       Outcome = iota // served; its hold time says how the backend does
	Ignored                   // says nothing about the backend: do not learn from it
	Overloaded                // the backend refused or timed out: it has too much
	Aborted                   // the caller left while it ran
)

// Observation is one change. Between two observations the machine shows what the
// earlier one said.
type Observation struct {
	Kind     Kind
	Now      time.Time
	InFlight int           // units that run, after the event
	Waiting  int           // calls in line, after the event
	Limit    int           // in force up to the event
	Offered  uint64        // calls that have arrived so far, refused ones included
	Cost     int           // units of the call; 0 on Changed
	Waited   time.Duration // of Started and Left
	Held     time.Duration // of Finished
	Outcome  Outcome       // of Finished
	Deadline time.Time     // the caller's own; zero: none
}

// End is what a release says of its call.
type End struct {
	Held    time.Duration // how long the slot was held; 0: not measured
	Outcome Outcome
}

// observe tells the limiter, of which there is one, what happened, and notes the
// limit that it wants; follow puts it in force.
func (m *Machine) observe(now time.Time, o *Observation) {
	o.Now = now
	o.InFlight, o.Waiting, o.Limit, o.Offered = m.inFlight, m.line.len, m.limit, m.offered
	m.told = *o // what a limiter is handed is on the heap, so it is one that is there
	m.want = max(1, m.cfg.Limiter.Observe(&m.told))
	if m.journal != nil {
		m.journal.wants = append(m.journal.wants, m.want)
	}
}

// follow puts the limiter's wish in force and reports whether the limit moved.
// A machine that was closed from outside stays closed.
func (m *Machine) follow(now time.Time) bool {
	if m.cfg.Limiter == nil || m.limit == 0 || m.want == m.limit {
		return false
	}
	m.applyLimit(now, m.want)
	return true
}
