package cluster

import (
	"fmt"
	"maps"
	"slices"
)

// peer is the least that an instance can be and keep the rules: it uses what it believes
// to hold while its lease is valid by its own clock, and nothing else.
type peer struct {
	w       *world
	name    string
	rate    float64 // of its clock, which counts ms
	silent  int64   // until then it is frozen
	dead    bool
	leaving bool
	left    bool // it has said so
	ears    bool // it hears what is published

	number             uint64
	epoch              uint64
	granted, returned  uint64
	slots              map[int]uint64 // by number: the fence
	seen               map[uint64]bool
	until              float64 // its clock
	running, idle, due int     // units; due: they run and are not lent

	line    []waiting
	calls   uint64 // numbers given out
	heard   uint64
	return_ bool

	out    *Request // under way
	sentAt float64
	wants  bool
	clock  int64 // of the last answer
	share  int   // as it said
	nextAt float64
}

type waiting struct {
	number uint64
	cost   int
	ask    bool
}

// now is the peer's clock.
func (p *peer) now() float64 { return float64(p.w.now) * p.rate }

func (p *peer) held() int { return int(p.granted - p.returned) }

// uses returns the units that the peer may use at this moment.
func (p *peer) uses() int {
	if p.dead || p.now() >= p.until {
		return 0
	}
	return p.held()
}

// live does what a peer does by itself.
func (p *peer) live() {
	d := p.w.dice
	if n := p.running; n > 0 && chance(d, 3) {
		n = 1 + d.IntN(n)
		p.running, p.idle = p.running-n, p.idle+n
	}
	p.due -= d.IntN(p.due + 1)
	p.dispatch()
	if p.idle > 0 && (p.leaving || p.return_ || chance(d, 8)) {
		p.giveBack(1 + d.IntN(p.idle))
	}
	if !p.leaving && !p.w.calm && chance(d, 2) && len(p.line) < p.w.crowd {
		for range 1 + d.IntN(3) {
			p.calls++
			p.line = append(p.line, waiting{p.calls, 1 + d.IntN(p.w.dearest), chance(d, 6)})
		}
		p.wants = true
	}
	if len(p.line) > 0 && (p.w.calm || chance(d, 12)) && !p.w.calm {
		i := d.IntN(len(p.line)) // it leaves
		p.line = slices.Delete(p.line, i, i+1)
	}
	if p.leaving {
		p.line = nil
	}
}

// dispatch lets in whoever fits into what lies idle, while the lease is valid.
func (p *peer) dispatch() {
	for len(p.line) > 0 && p.line[0].cost <= p.idle && p.now() < p.until {
		p.idle -= p.line[0].cost
		p.running += p.line[0].cost
		p.line = p.line[1:]
	}
}

func (p *peer) giveBack(n int) {
	p.idle -= n
	p.returned += uint64(n)
	for _, number := range slices.Sorted(maps.Keys(p.slots)) {
		if n == 0 {
			break
		}
		delete(p.slots, number)
		n--
	}
	p.wants = true
}

// lent takes units over.
func (p *peer) lent(n int) {
	cover := min(n, p.due)
	p.due -= cover
	p.running += cover
	p.idle += n - cover
	p.dispatch()
}

// lose stops using everything.
func (p *peer) lose() {
	p.due += p.running
	p.running, p.idle = 0, 0
	p.granted = p.returned
	p.slots = map[int]uint64{}
}

// request is what the peer says now.
func (p *peer) request() *Request {
	p.number++
	valid := p.now() < p.until
	r := &Request{
		Key: p.w.key, Instance: p.name, Host: p.name, Number: p.number, Lease: p.w.lease, Limit: p.w.limit,
		Epoch: p.epoch, Granted: p.granted, Returned: p.returned, Fenced: p.w.fenced,
		Withhold: p.w.withhold, MinShare: p.w.minShare, Override: p.w.override,
		Contact: p.clock, Share: p.share,
		Waiting: len(p.line), InUse: p.running + p.due, Spare: p.due,
		Leaving: p.leaving && p.running == 0 && p.held() == 0,
	}
	for _, number := range slices.Sorted(maps.Keys(p.slots)) {
		r.Slots = append(r.Slots, Slot{Number: number, Fence: p.slots[number]})
	}
	if valid && p.epoch != 0 {
		r.Claim = p.held()
	}
	for _, c := range p.line {
		n := len(r.Arrived)
		switch {
		case c.number <= p.heard && c.ask:
		case c.number <= p.heard:
			r.Standing = append(r.Standing, Span{First: c.number, Last: c.number})
		case n > 0 && r.Arrived[n-1].Cost == c.cost && r.Arrived[n-1].Ask == c.ask &&
			r.Arrived[n-1].First+uint64(r.Arrived[n-1].Calls) == c.number:
			r.Arrived[n-1].Calls++
		default:
			r.Arrived = append(r.Arrived, Run{First: c.number, Calls: 1, Cost: c.cost, Ask: c.ask})
		}
	}
	p.left = p.left || r.Leaving
	p.out, p.sentAt, p.wants, p.nextAt = r, p.now(), false, p.now()+p.beat()
	return r
}

func (p *peer) beat() float64 {
	if p.held() > 0 || len(p.line) > 0 || p.w.withhold > 0 {
		return float64(p.w.lease.Milliseconds()) / 4
	}
	return float64(p.w.lease.Milliseconds()) * 5
}

// failed hears nothing of its request.
func (p *peer) failed() {
	p.out, p.wants = nil, true
	p.nextAt = p.now() + 10
}

// replied hears the ledger.
func (p *peer) replied(r *Request, rep *Reply) {
	p.out = nil
	p.clock, p.share = rep.Clock, rep.Share
	if r.Leaving {
		p.dead = true
		return
	}
	before := p.held()
	switch {
	case rep.Epoch != r.Epoch:
		p.adopt(r, rep)
	case rep.Returned > r.Returned || rep.Lost > 0:
		p.lose()
		before, p.granted, p.returned = 0, rep.Granted, rep.Returned
		p.take(rep.Slots)
	case rep.Granted > p.granted:
		p.granted = rep.Granted
		p.take(rep.Slots)
	default:
		p.take(rep.Slots)
	}
	p.until = p.sentAt + float64(p.w.lease.Milliseconds())
	p.return_ = rep.Contended && rep.Learning == 0
	if n := p.held() - before; n > 0 {
		p.lent(n)
	}
	p.dispatch()
	p.mind(rep)
}

// adopt begins to count with another epoch: its own is at most what it claimed and has
// not given back since.
func (p *peer) adopt(r *Request, rep *Reply) {
	ours := min(r.Claim-int(p.returned-r.Returned), int(rep.Granted-rep.Returned))
	if r.Epoch == 0 {
		ours = int(rep.Granted - rep.Returned)
	}
	ours = max(0, ours)
	if p.w.fenced {
		kept := map[int]uint64{}
		for _, s := range rep.Slots {
			if r.Epoch == 0 || p.slots[s.Number] == s.Fence {
				kept[s.Number] = s.Fence
			}
			p.seen[s.Fence] = true
		}
		p.slots, ours = kept, len(kept)
	}
	lost := max(0, p.held()-ours)
	p.idle -= min(p.idle, lost)
	if p.running+p.idle > ours {
		p.due += p.running + p.idle - ours
		p.running -= min(p.running, p.running+p.idle-ours)
	}
	p.epoch, p.granted = rep.Epoch, rep.Granted
	p.returned = p.granted - uint64(ours)
	p.wants = true
}

// take adds slots that the peer never had.
func (p *peer) take(slots []Slot) {
	for _, s := range slots {
		if !p.seen[s.Fence] {
			p.seen[s.Fence] = true
			p.slots[s.Number] = s.Fence
		}
	}
}

// mind looks after its line: who only asked leaves, and calls that the ledger forgot are
// told again.
func (p *peer) mind(rep *Reply) {
	p.heard = max(p.heard, rep.Heard)
	p.line = slices.DeleteFunc(p.line, func(c waiting) bool { return c.ask && c.number <= p.heard })
	known := 0
	for _, c := range p.line {
		if c.number <= p.heard {
			known++
		}
	}
	if known <= rep.Queued {
		return
	}
	for i := range p.line {
		p.calls++
		p.line[i].number = p.calls
	}
	p.wants = true
}

// hears is told what was published.
func (p *peer) hears(m Message) {
	news, err := ParseNews(m.Text)
	if err != nil {
		p.w.t.Fatal(err)
	}
	switch news.Kind {
	case 'g':
		if p.left {
			return // what it has not heard of is not its own any more
		}
		if news.Epoch == p.epoch && news.Granted > p.granted {
			n := int(news.Granted - p.granted)
			p.granted = news.Granted
			p.take(news.Slots)
			p.lent(n)
			p.wants = true
		}
	case 'e':
		p.wants = p.wants || news.Epoch != p.epoch
	case 'c':
		p.return_ = true
	case 'l':
		p.wants = true
	}
}

func (p *peer) String() string {
	return fmt.Sprintf("%s: epoch %d, granted %d, returned %d, slots %v, uses %d, line %d",
		p.name, p.epoch, p.granted, p.returned, p.slots, p.uses(), len(p.line))
}
