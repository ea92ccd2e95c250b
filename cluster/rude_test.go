package cluster

import (
	"slices"
	"time"
)

// rude is instances that say what they like: figures that they were never given, calls
// that they have not, numbers of requests that went back. The ledger stays consistent,
// and the script is the model.
type rude struct {
	*twins
	dice
	facts
	limit, size, dearest int
	lease                time.Duration
	fenced               bool
	numbers, calls       map[string]uint64
	heard                map[string]Reply
}

func newRude(w *twins, d dice) *rude {
	return &rude{
		twins: w, dice: d,
		facts:  facts{wall: 1_700_000_000 * time.Second, identity: "id0", uptime: time.Hour},
		limit:  1 + d.IntN(8),
		size:   1 + d.IntN(5),
		lease:  time.Duration(1+d.IntN(3000)) * time.Millisecond,
		fenced: chance(d, 3), dearest: 1 + d.IntN(4)*d.IntN(2),
		numbers: map[string]uint64{}, calls: map[string]uint64{}, heard: map[string]Reply{},
	}
}

func (h *rude) name(i int) string { return string(rune('A' + i)) }

// step is one thing that happens, and one request.
func (h *rude) step() {
	h.happens()
	h.wall += time.Duration(h.IntN(1+h.IntN(1+h.IntN(4000)))) * time.Millisecond
	id := h.name(h.IntN(h.size))
	r := h.request(id)
	reply, _ := h.exchange(h.facts, r)
	if !chance(h, 6) { // else the answer is lost
		h.heard[id] = reply
		for _, run := range r.Arrived {
			h.calls[id] = max(h.calls[id], run.First+uint64(run.Calls)-1)
		}
	}
}

// happens does something to the server.
func (h *rude) happens() {
	switch h.IntN(120) {
	case 1:
		h.identity = []string{"a", "b", "c", ""}[h.IntN(4)]
	case 2:
		h.wall += time.Duration(h.IntN(7200)-3600) * time.Second
	case 3:
		h.uptime = time.Duration(h.IntN(5)-1) * time.Second
	case 4:
		h.subscribed, h.blind = nil, chance(h, 3)
		for i := range h.size + 1 {
			if chance(h, 2) {
				h.subscribed = append(h.subscribed, h.name(i))
			}
		}
	case 5:
		h.wipe()
	case 6:
		h.spoil(h.IntN(6))
	case 7:
		h.limit = h.IntN(8)
	}
}

func (h *rude) request(id string) *Request {
	heard := h.heard[id]
	h.numbers[id]++
	r := &Request{
		Key: h.key, Instance: id, Host: "host " + id, Number: h.numbers[id],
		Lease: h.lease, Limit: h.limit, Fenced: h.fenced,
		Epoch: heard.Epoch, Granted: heard.Granted, Returned: heard.Returned, Slots: slices.Clone(heard.Slots),
		Waiting: h.IntN(3),
		InUse:   h.IntN(3), Oldest: time.Duration(h.IntN(1e9)), MinShare: h.IntN(2),
		Contact: heard.Clock, Share: heard.Share,
	}
	held := int(r.Granted - r.Returned)
	r.Claim = h.IntN(held + 1)
	if held > 0 && chance(h, 2) {
		give := 1 + h.IntN(held)
		r.Returned += uint64(give)
		r.Slots = r.Slots[min(give, len(r.Slots)):]
	}
	h.lines(r)
	h.lies(r)
	return r
}

// lines adds calls in line, of which some left.
func (h *rude) lines(r *Request) {
	last := h.calls[r.Instance]
	for from := last - min(last, uint64(h.IntN(12))) + 1; from <= last; {
		to := min(last, from+uint64(h.IntN(4)))
		r.Standing = append(r.Standing, Span{First: from, Last: to})
		from = to + 1 + uint64(h.IntN(3))
	}
	for range h.IntN(4) {
		run := Run{First: last + 1, Calls: 1 + h.IntN(3), Cost: 1 + h.IntN(h.dearest), Ask: chance(h, 4)}
		r.Arrived = append(r.Arrived, run)
		last += uint64(run.Calls)
	}
}

// lies are what is rarely said, or should not be.
func (h *rude) lies(r *Request) {
	switch h.IntN(34) {
	case 1:
		r.Number = uint64(h.IntN(int(r.Number) + 1))
	case 2:
		r.Granted, r.Returned = r.Granted+uint64(h.IntN(3)), uint64(h.IntN(10))
	case 3:
		r.Limit = h.IntN(10)
	case 4:
		r.Override = Override{Version: uint64(h.IntN(6)), Limit: h.IntN(8) - 1}
		r.Override.For = time.Duration(h.IntN(2)*h.IntN(9000)) * time.Millisecond
	case 5:
		r.Spare = h.IntN(5)
	case 6, 7, 8:
		r.Withhold = h.lease * 3
	case 9:
		r.Leaving = true
	case 10:
		r.Claim, r.InUse, r.Limit = -1, -5, -2
	case 11:
		r.Contact = []int64{-1, 0, 1 << 40, int64(h.IntN(5000))}[h.IntN(4)]
	case 12:
		r.Contact, r.Share = 0, h.IntN(9)-1
	}
}
