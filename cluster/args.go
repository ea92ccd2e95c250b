package cluster

import "time"

// Args returns the request as the arguments of the [Script]; its key is r.Key. identity
// is what the store has learnt by itself of the server that it speaks to, something
// that changes whenever that server's data may have: the script asks the server first,
// and falls back on it where that is not allowed. Empty: nothing.
func (r *Request) Args(identity string) []string {
	r = r.sane()
	p := make(packed, 0, 128)
	p.str(r.Instance)
	p.ints(int64(r.Number), int64(r.Epoch), int64(r.Granted), int64(r.Returned),
		int64(r.Claim), int64(r.Waiting), int64(r.InUse), inMillis(r.Oldest), int64(r.Spare), int64(r.Limit),
		int64(r.Override.Version), int64(r.Override.Limit), inMillis(r.Override.For),
		inMillis(r.Lease), inMillis(r.Withhold), int64(r.MinShare), r.Contact, int64(r.Share))
	p.flag(r.Fenced)
	p.flag(r.Leaving)
	p.str(r.Host)
	p.slots(r.Slots)
	p.list(3 * len(r.Arrived))
	for _, run := range r.Arrived {
		cost := int64(max(1, run.Cost))
		if run.Ask {
			cost = -cost
		}
		p.ints(int64(run.First), int64(run.Calls), cost)
	}
	p.list(2 * len(r.Standing))
	for _, span := range r.Standing {
		p.ints(int64(span.First), int64(span.Last))
	}
	p.int(int64(r.atLeast()))
	p.str(identity)
	return []string{string(p)}
}

// atLeast returns the number that a new epoch must exceed, for its fences to exceed
// those that the instance knows.
func (r *Request) atLeast() uint64 {
	least := r.Epoch
	for _, s := range r.Slots {
		least = max(least, s.Fence>>fenceBits)
	}
	return least
}

// sane returns the request with counts that cannot be negative at least 0.
func (r *Request) sane() *Request {
	c := *r
	for _, n := range []*int{&c.Claim, &c.Waiting, &c.InUse, &c.Spare, &c.Limit, &c.MinShare, &c.Share} {
		*n = max(0, *n)
	}
	for _, d := range []*time.Duration{&c.Oldest, &c.Override.For, &c.Withhold} {
		*d = max(0, *d)
	}
	c.Lease = max(time.Millisecond, c.Lease)
	return &c
}

// inMillis rounds up, so that a little is not nothing.
func inMillis(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func fromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
