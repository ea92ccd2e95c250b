package cluster

import "fmt"

// The ledger's times, in parts of the lease of an instance.
const (
	// An instance that holds or waits and is not heard of for 8/5 of its lease is given
	// up. By its own clock it has stopped after one lease; the rest is for clocks that
	// differ and for jumps of the server's.
	givenUpNum, givenUpDen = 8, 5
	// A jump of the server's clock counts as at most a quarter of the lease. So does every
	// pause between two steps; who holds or waits speaks that often.
	jumpDen = 4
	// One that holds nothing speaks every 5 leases and is forgotten after 15.
	membership = 15
	// A key that nobody speaks to for a week goes; its life is renewed once an hour (ms).
	renewAfter = 60 * 60 * 1000
)

// elapsed returns the ledger's other clock: since the epoch began, by the server's clock
// with its jumps. No less than that passed in truth, so whoever is missed by it is missed
// in time, and perhaps too early, which costs little.
func (l *Ledger) elapsed() int64 { return l.wall - l.origin }

func givenUpAfter(lease int64) int64 { return lease * givenUpNum / givenUpDen }

// cold says what is special about an epoch that was begun by an instance that knew of
// none, where there was no state: a first start, or the loss of all data.
type cold int

const (
	notCold cold = iota
	// watched: lending may be a mistake, which a claim of an older epoch would show.
	watched
	// strangers: nothing is lent before all that are subscribed have spoken.
	strangers
)

// advance moves the clock, or begins an epoch if the state is not to be trusted.
func (s *step) advance() {
	wall := s.server.Wall.UnixMilli()
	moved := s.server.Identity != "" && s.server.Identity != s.identity
	if least := s.r.atLeast(); s.epoch == 0 || moved || least > s.epoch+s.fences>>fenceBits {
		s.beginEpoch(wall, max(s.epoch, least))
		return
	}
	passed := wall - s.wall
	if passed < 0 { // nobody knows what passed
		s.origin += passed - s.lease
		passed = 0
	}
	if !s.idle() {
		passed = min(passed, s.lease/jumpDen)
	}
	s.clock += passed
	s.wall = wall
}

// idle says that nobody has anything that a clock which jumped could take away.
func (s *step) idle() bool {
	settled := !s.learning() && (s.cold == notCold || s.clock >= givenUpAfter(s.lease))
	return settled && s.held == 0 && s.queued() == 0 && s.withheld == 0 && s.r.Withhold == 0
}

// beginEpoch forgets everybody. What the last epoch lent is claimed by those who hold
// it, until nobody can hold any more of it.
func (s *step) beginEpoch(wall int64, last uint64) {
	coldStart := s.epoch == 0 && s.r.Epoch == 0 && !s.spoilt
	*s.Ledger = Ledger{
		key: s.r.Key, epoch: max(uint64(max(0, wall)), last+1), identity: s.server.Identity,
		wall: wall, renewed: wall, limit: -1, override: s.override,
		origin: wall - 1, learn: givenUpAfter(s.lease), nearest: membership * s.lease, doubt: membership * s.lease,
		members: map[string]*member{}, line: newLine(),
	}
	if s.override == (override{}) {
		s.override.limit = -1
	}
	up := inMillis(s.server.Uptime)
	switch {
	case !coldStart || up < 0:
	case up < s.learn: // what was lent before the server started has ended by then
		s.learn, s.cold = s.learn-up, watched
	default:
		s.cold = strangers
	}
	s.publish(s.key, fmt.Sprintf("e %d", s.epoch))
}

// claimed is called as somebody speaks that knows of an older epoch: data was lost.
func (s *step) claimed() {
	wait := givenUpAfter(s.lease)
	switch {
	case s.cold != notCold && s.clock < wait:
		s.cold, s.learn = notCold, s.clock+wait
	case s.learning():
		s.learn = max(s.learn, wait)
	}
}

// meet ends a cold start's learning as soon as everybody who is subscribed has spoken.
func (s *step) meet() {
	if s.cold != strangers || !s.learning() || s.server.Subscribers == nil {
		return
	}
	unknown := s.server.Subscribers(s.key)
	for _, name := range s.names {
		unknown -= s.server.Subscribers(ChannelOf(s.key, name))
	}
	if unknown <= 0 {
		s.cold, s.learn = watched, s.clock
	}
}
