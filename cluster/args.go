package cluster

import (
	"strconv"
	"time"
)

// Args returns the request as the arguments of the [Script]; its key is r.Key. identity
// is what the store has learnt by itself of the server that it speaks to, something
// that changes whenever that server's data may have: the script asks the server first,
// and falls back on it where that is not allowed. Empty: nothing.
func (r *Request) Args(identity string) []string {
	r = r.sane()
	flags := ""
	if r.Fenced {
		flags += "f"
	}
	if r.Leaving {
		flags += "l"
	}
	return []string{
		r.Instance,
		utoa(r.Number),
		utoa(r.Epoch),
		utoa(r.Granted),
		utoa(r.Returned),
		millis(r.Clock),
		strconv.Itoa(r.Claim),
		strconv.Itoa(r.Waiting),
		strconv.Itoa(r.InUse),
		millis(r.Oldest),
		strconv.Itoa(r.Spare),
		strconv.Itoa(r.Limit),
		utoa(r.Override.Version),
		strconv.Itoa(r.Override.Limit),
		millis(r.Override.For),
		millis(r.Lease),
		millis(r.Withhold),
		strconv.Itoa(r.MinShare),
		flags,
		r.Host,
		string(appendSlots(nil, r.Slots)),
		string(appendRuns(nil, r.Arrived)),
		string(appendSpans(nil, r.Standing)),
		utoa(r.atLeast()),
		identity,
	}
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
	for _, n := range []*int{&c.Claim, &c.Waiting, &c.InUse, &c.Spare, &c.Limit, &c.MinShare} {
		*n = max(0, *n)
	}
	for _, d := range []*time.Duration{&c.Clock, &c.Oldest, &c.Override.For, &c.Withhold} {
		*d = max(0, *d)
	}
	c.Lease = max(time.Millisecond, c.Lease)
	return &c
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// millis rounds up, so that a little is not nothing.
func millis(d time.Duration) string {
	return strconv.FormatInt(inMillis(d), 10)
}

func inMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// appendRuns appends FIRST:CALLS:COST of each, with an a at the end for those that ask.
func appendRuns(b []byte, runs []Run) []byte {
	for i, r := range runs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, r.First, 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(r.Calls), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(r.Cost), 10)
		if r.Ask {
			b = append(b, 'a')
		}
	}
	return b
}

// appendSpans appends FIRST-LAST of each.
func appendSpans(b []byte, spans []Span) []byte {
	for i, s := range spans {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, s.First, 10)
		b = append(b, '-')
		b = strconv.AppendUint(b, s.Last, 10)
	}
	return b
}

// fenceBits are the low bits of a fence, which count grants; the rest is an epoch. The
// two stand apart on the wire, because numbers are floating-point ones in Lua.
const fenceBits = 20

// appendSlots appends NUMBER:EPOCH.COUNT of each.
func appendSlots(b []byte, slots []Slot) []byte {
	for i, s := range slots {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(s.Number), 10)
		b = append(b, ':')
		b = appendFence(b, s.Fence)
	}
	return b
}

func appendFence(b []byte, fence uint64) []byte {
	b = strconv.AppendUint(b, fence>>fenceBits, 10)
	b = append(b, '.')
	return strconv.AppendUint(b, fence&(1<<fenceBits-1), 10)
}
