package verdict

// Sample is what one gate did in a second, or, of older times, in several.
type Sample struct {
	Seconds int32 `json:"seconds"`

	Limit    int32 `json:"limit"`     // in force in the end; 0: closed
	InFlight int32 `json:"in_flight"` // the most
	Waiting  int32 `json:"waiting"`   // the most

	Accepted uint32 `json:"accepted"`
	Short    uint32 `json:"short"`   // refused for want of a slot: busy, timeout, deadline
	Others   uint32 `json:"others"`  // refused for another reason, or left
	Early    uint32 `json:"early"`   // came back before they were told to
	Ended    uint32 `json:"ended"`   // leases given back
	Stale    int32  `json:"stale"`   // leases held far longer than calls of their route take: the most
	Blocked  int32  `json:"blocked"` // calls that wait for their client to read: the most, of looks once a second

	WaitP95 float32 `json:"wait_p95_s"` // of those who waited for a slot and got one, or gave up; of several seconds the worst
	Held    float32 `json:"held_s"`     // in all, of those that ended
	HeldLog float32 `json:"-"`          // the same of its logarithms, which one stream of an hour does not move
	Oldest  float32 `json:"oldest_s"`   // how long the oldest lease is held
	CPU     float32 `json:"cpu"`        // of this host, 0 to 1; below 0: not known

	Reserved int32  `json:"reserved"`  // units kept for fast lanes; 0: there is none
	Fast     uint32 `json:"fast"`      // calls of those lanes that were decided
	FastLate uint32 `json:"fast_late"` // of them: had to wait, or were refused for want of a slot

	holds kinds // which conditions held
	up    kinds // which verdicts were up
}

// Arrived is how many calls were decided.
func (s Sample) Arrived() uint32 { return s.Accepted + s.Short + s.Others }

// add makes s stand for what o stands for as well, which came after it.
func (s *Sample) add(o *Sample) {
	if s.Seconds == 0 {
		*s = *o
		return
	}
	s.CPU = meanCPU(s, o)
	s.Seconds += o.Seconds
	s.Limit, s.Reserved = o.Limit, o.Reserved
	s.InFlight, s.Waiting = max(s.InFlight, o.InFlight), max(s.Waiting, o.Waiting)
	s.Stale, s.Blocked = max(s.Stale, o.Stale), max(s.Blocked, o.Blocked)
	s.Accepted += o.Accepted
	s.Short += o.Short
	s.Others += o.Others
	s.Early += o.Early
	s.Ended += o.Ended
	s.Fast += o.Fast
	s.FastLate += o.FastLate
	s.Held += o.Held
	s.HeldLog += o.HeldLog
	s.WaitP95, s.Oldest = max(s.WaitP95, o.WaitP95), max(s.Oldest, o.Oldest)
	s.holds |= o.holds
	s.up |= o.up
}

// meanCPU is that of both, as far as it is known.
func meanCPU(s, o *Sample) float32 {
	switch {
	case s.CPU < 0:
		return o.CPU
	case o.CPU < 0:
		return s.CPU
	}
	return (s.CPU*float32(s.Seconds) + o.CPU*float32(o.Seconds)) / float32(s.Seconds+o.Seconds)
}
