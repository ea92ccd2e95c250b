package forebay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/forebay/internal/feed"
)

// pool is a small ledger and its instances in one: it lends numbered slots to several
// gates, first come first served over all of them. It does something only when a gate
// says that there is something to do, so what a gate forgets to say is never done.
type pool struct {
	t     testing.TB
	rude  func(n int) bool // with a chance of one in n: do something unkind; nil: never
	limit int

	mu      sync.Mutex // guards what follows, and the gates' calls of it
	free    []feed.Slot
	fence   uint64
	line    []ticket
	members []*poolMember
	fenced  bool
	highest map[int]uint64 // the fence of every number that a lease held
	inside  map[Lease]int  // units of the leases that are out, by the word of who has them
	lapses  int
	alone   int
}

type ticket struct {
	m      *poolMember
	number uint64
	cost   int
}

// poolMember is one gate's side of a pool.
type poolMember struct {
	pool  *pool
	gate  feed.Gate
	pokes chan struct{}
	over  chan struct{}
	heard uint64
	lent  int
	held  []feed.Slot
	alone []feed.Slot // not nil: it goes on without the pool, with these
	stats feed.Stats
}

func newPool(t testing.TB, limit int) *pool {
	p := &pool{t: t, limit: limit, highest: map[int]uint64{}, inside: map[Lease]int{}}
	for i := range limit {
		p.free = append(p.free, feed.Slot{Number: i + 1})
	}
	return p
}

// gate returns a gate that the pool feeds until the test ends.
func (p *pool) gate(c Config) (*Gate, *poolMember) {
	p.t.Helper()
	m := &poolMember{pool: p, pokes: make(chan struct{}, 1), over: make(chan struct{})}
	c.Cluster = m
	g := gateOf(p.t, c)
	if p.fenced {
		m.gate.Fenced()
	}
	p.members = append(p.members, m)
	m.gate.Renew(time.Now().Add(time.Hour))
	go m.run()
	p.t.Cleanup(func() {
		close(m.pokes)
		<-m.over
	})
	return g, m
}

func (m *poolMember) Attach(g feed.Gate) (feed.Supplier, error) { m.gate = g; return m, nil }
func (m *poolMember) SetLimit(int, time.Duration)               {}
func (m *poolMember) Configured(int)                            {}
func (m *poolMember) Stats() feed.Stats                         { return m.stats }
func (m *poolMember) Poke() {
	select {
	case m.pokes <- struct{}{}:
	default:
	}
}

func (m *poolMember) run() {
	defer close(m.over)
	for range m.pokes {
		m.pool.mu.Lock()
		m.exchange()
		if p := m.pool; p.rude != nil && p.rude(10) {
			p.unkind()
		}
		m.pool.mu.Unlock()
	}
}

// exchange tells the pool what the gate has to say, and the gates what follows.
func (m *poolMember) exchange() {
	p := m.pool
	if m.alone != nil {
		return
	}
	v := m.gate.Look(m.heard, 4)
	m.gotBack(v.Back, v.BackOf)
	if v.Slots != m.lent {
		p.t.Errorf("the gate has %d slots, was lent %d", v.Slots, m.lent)
	}
	stand := 0
	for _, s := range v.Standing {
		stand += int(s.Last-s.First) + 1
	}
	p.drop(func(k ticket) bool {
		if k.m != m {
			return false
		}
		stands := slices.ContainsFunc(v.Standing, func(s feed.Span) bool { return s.First <= k.number && k.number <= s.Last })
		if stands {
			stand--
		}
		return !stands
	})
	if stand > 0 { // what was lent for some has gone to work that ran without a slot
		p.drop(func(k ticket) bool { return k.m == m })
		m.gate.Renumber()
		m.exchange()
		return
	}
	for _, r := range v.Arrived {
		if r.First <= m.heard {
			p.t.Errorf("call %d arrives again, %d was heard", r.First, m.heard)
		}
		for i := range r.Calls {
			m.heard = r.First + uint64(i)
			k := ticket{m, m.heard, r.Cost}
			if !r.Ask {
				p.line = append(p.line, k)
			} else if len(p.line) == 0 && k.cost <= len(p.free) {
				m.lend(k.cost)
			}
		}
	}
	p.grant()
	m.gate.Answered(m.heard)
}

func (p *pool) drop(gone func(ticket) bool) { p.line = slices.DeleteFunc(p.line, gone) }

// grant lends to whoever is first, as long as there is enough, and asks for what lies
// idle elsewhere if somebody is left.
func (p *pool) grant() {
	for len(p.line) > 0 && p.line[0].cost <= len(p.free) {
		k := p.line[0]
		p.line = p.line[1:]
		k.m.lend(k.cost)
	}
	for _, m := range p.members {
		m.gate.Return(len(p.line) > 0)
	}
}

func (m *poolMember) lend(n int) {
	p := m.pool
	lent := slices.Clone(p.free[:n])
	p.free = p.free[n:]
	for i := range lent {
		p.fence++
		lent[i].Fence = p.fence
	}
	m.lent += n
	m.held = append(m.held, lent...)
	m.gate.Lend(n, lent)
}

// gotBack takes units back. A gate that is not fenced does not say which.
func (m *poolMember) gotBack(n int, slots []feed.Slot) {
	p := m.pool
	m.lent -= n
	if m.lent < 0 {
		p.t.Errorf("%d more came back than were lent", -m.lent)
	}
	if slots == nil {
		slots = slices.Clone(m.held[:n])
	}
	if len(slots) != n {
		p.t.Errorf("%d units came back as %v", n, slots)
	}
	for _, s := range slots {
		i := slices.Index(m.held, s)
		if i < 0 {
			p.t.Errorf("%v came back, held are %v", s, m.held)
			continue
		}
		m.held = slices.Delete(m.held, i, i+1)
		p.free = append(p.free, s)
	}
}

// unkind takes what lies idle, lets a line be forgotten, or takes everything at once.
func (p *pool) unkind() {
	m := p.members[rand.IntN(len(p.members))]
	if m.alone != nil {
		m.rejoin()
		return
	}
	switch rand.IntN(6) {
	case 0, 1:
		m.gotBack(m.gate.Take(1 + rand.IntN(3)))
	case 2:
		m.gate.Renumber()
		p.drop(func(k ticket) bool { return k.m == m })
		m.exchange()
	case 3:
		if !p.rude(4) {
			return
		}
		p.lapses++
		m.gate.Lapse()
		held := m.held
		m.lent, m.held = 0, nil
		p.free = append(p.free, held...)
		m.gate.Renew(time.Now().Add(time.Hour))
		m.exchange()
	case 4: // the time is over, and renewed after all
		m.gate.Renew(time.Now())
		m.exchange()
		m.gate.Renew(time.Now().Add(time.Hour))
	case 5:
		m.cutOff()
	}
	p.grant()
}

// cutOff has a gate go on alone with some units that nobody else has.
func (m *poolMember) cutOff() {
	p := m.pool
	m.gate.Lapse()
	p.free = append(p.free, m.held...)
	m.lent, m.held = 0, nil
	p.drop(func(k ticket) bool { return k.m == m })
	n := min(2, len(p.free))
	m.alone, p.free = append([]feed.Slot{}, p.free[:n]...), p.free[n:]
	m.gate.Alone(feed.Alone{Slots: n})
	p.alone++
}

// rejoin has it use them as units that were lent.
func (m *poolMember) rejoin() {
	m.gate.Renew(time.Now().Add(time.Hour))
	m.pool.free, m.alone = append(m.alone, m.pool.free...), nil
	if n := min(2, len(m.pool.free)); n > 0 {
		m.lend(n)
	}
	m.gate.Renumber()
	m.gate.Together()
	m.exchange()
}

// healUntil has whoever is cut off reached again, now and then.
func (p *pool) healUntil(done <-chan struct{}) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		for _, m := range p.members {
			if m.alone != nil {
				m.rejoin()
			}
		}
		p.mu.Unlock()
	}
}

// enter notes that a call runs. All that run hold a unit that was lent, but for those
// whose lease is lost; of fenced gates each has units of its own.
func (p *pool) enter(l Lease, cost int) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inside[l] = cost
	units, numbers := 0, map[int]bool{}
	for l, cost := range p.inside {
		if l.lost() {
			continue
		}
		units += cost
		for _, f := range l.Fences() {
			if numbers[f.Number] || f.Fence < p.highest[f.Number] {
				p.t.Errorf("%v is held by two, or late: %d was", f, p.highest[f.Number])
			}
			numbers[f.Number], p.highest[f.Number] = true, f.Fence
		}
	}
	if lent := p.limit - len(p.free); units > lent {
		p.t.Errorf("%d units run, %d are lent", units, lent)
	}
	if n := len(l.Fences()); p.fenced && n != cost && !l.lost() && p.alone == 0 {
		p.t.Errorf("a lease of %d units has %d numbers", cost, n)
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.inside, l)
	}
}

// whole checks that every slot is back, once nobody runs.
func (p *pool) whole() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.alone != nil {
			m.rejoin()
		}
		m.gotBack(m.gate.Take(p.limit))
		v := m.gate.Look(m.heard, 4)
		m.gotBack(v.Back, v.BackOf)
		if v.InFlight != 0 || v.Waiting != 0 || m.lent != 0 {
			p.t.Errorf("a gate is left with %+v, and %d slots", v, m.lent)
		}
	}
	numbers := map[int]bool{}
	for _, s := range p.free {
		numbers[s.Number] = true
	}
	if len(p.free) != p.limit || len(numbers) != p.limit {
		p.t.Errorf("%d slots are left of %d: %v", len(p.free), p.limit, fmt.Sprint(p.free))
	}
}
