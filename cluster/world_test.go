package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// world is peers that keep the rules, on a network and a server that do not. What the
// ledger promises must hold by the peers' own clocks.
type world struct {
	*twins
	dice
	f        facts
	now      int64   // true time, in ms
	wallRate float64 // of the server's clock
	jumped   int64   // when it last jumped
	started  int64   // when the server did
	promoted bool    // it was a replica before
	frozen   int64   // until then it takes no step
	restore  func()  // an earlier state

	peers    []*peer
	born     int
	events   []event
	limit    int
	steady   bool // the limit never changes
	deaf     bool // some hear nothing of what is published; then no data is lost unnoticed
	lease    time.Duration
	withhold time.Duration
	minShare int
	fenced   bool
	dearest  int
	crowd    int
	override Override
	trouble  int  // one in so many things goes wrong
	calm     bool // nothing goes wrong any more, and no call comes
}

type event struct {
	at   int64
	what func()
}

func newWorld(w *twins, d dice) *world {
	h := &world{
		twins: w, dice: d,
		f:   facts{wall: 1_700_000_000 * time.Second, identity: "server 0"},
		now: 1_000_000, limit: 1 + d.IntN(8), steady: !chance(d, 3),
		lease:    time.Duration(200+d.IntN(2000)) * time.Millisecond,
		wallRate: 0.95 + float64(d.IntN(11))/100,
		fenced:   chance(d, 4), dearest: 1 + d.IntN(2)*d.IntN(4), crowd: 1 + d.IntN(2)*d.IntN(80),
		trouble: []int{5, 20, 100, 1000}[d.IntN(4)],
	}
	h.deaf = chance(d, 3)
	if chance(d, 3) {
		h.withhold = 2 * h.lease
	}
	for range 1 + d.IntN(5) {
		h.join()
	}
	return h
}

func (w *world) join() {
	if len(w.peers) >= 12 {
		return
	}
	w.born++
	w.peers = append(w.peers, &peer{
		w: w, name: "p" + strconv.Itoa(w.born), rate: 0.97 + float64(w.IntN(7))/100,
		slots: map[int]uint64{}, seen: map[uint64]bool{}, wants: true, ears: !w.deaf || !chance(w, 4),
	})
}

// after has something happen later.
func (w *world) after(ms int, what func()) {
	w.events = append(w.events, event{w.now + int64(ms), what})
}

// step is a little time, and what happens in it.
func (w *world) step() {
	steps := w.steps
	for range 1000 {
		w.pass(w.IntN(1 + w.IntN(int(w.lease.Milliseconds())/8)))
		if !w.calm && chance(w, w.trouble) {
			w.happens()
		}
		for _, p := range w.peers {
			if !p.dead && w.now >= p.silent {
				p.live()
				w.speak(p)
			}
		}
		w.peers = slices.DeleteFunc(w.peers, func(p *peer) bool { return p.dead })
		w.promises()
		if w.steps != steps {
			return
		}
	}
}

// pass lets time go by, and everything happen that falls due.
func (w *world) pass(ms int) {
	end := w.now + int64(ms)
	for {
		next := -1
		for i, e := range w.events {
			if e.at <= end && (next < 0 || e.at < w.events[next].at) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		e := w.events[next]
		w.events = slices.Delete(w.events, next, next+1)
		w.tick(max(w.now, e.at))
		e.what()
		w.promises()
	}
	w.tick(end)
}

func (w *world) tick(to int64) {
	w.f.wall += time.Duration(float64(to-w.now) * w.wallRate * float64(time.Millisecond))
	w.now = to
}

// speak has a peer exchange if it is time to.
func (w *world) speak(p *peer) {
	timeout := 100.0
	if p.out != nil {
		if p.now() > p.sentAt+timeout {
			p.failed()
		}
		return
	}
	if p.now() < p.nextAt && !p.wants {
		return
	}
	r := p.request()
	if w.trouble < 1000 && chance(w, w.trouble) {
		return // it never arrives
	}
	w.after(w.delay(), func() { w.arrive(p, r) })
	if r.Epoch != 0 && chance(w, w.trouble) {
		w.after(w.delay()+w.IntN(3000), func() { w.arrive(nil, r) }) // once more
	}
}

// delay is how long a message takes.
func (w *world) delay() int {
	if chance(w, w.trouble) {
		return w.IntN(400)
	}
	return w.IntN(4)
}

// arrive has the ledger take a step, and the answer go back to the peer, if it is not lost.
func (w *world) arrive(p *peer, r *Request) {
	if w.now < w.frozen {
		w.after(int(w.frozen-w.now), func() { w.arrive(p, r) })
		return
	}
	if r.Epoch == 0 && p != nil && p.out != r && p.epoch != 0 && w.l.epoch != p.epoch {
		return // decision 0011: a first request that comes late stands for who has not spoken
	}
	w.f.uptime = time.Duration(w.now-w.started) * time.Millisecond
	if w.promoted {
		w.f.uptime = -1
	}
	w.f.subscribed = nil
	for _, q := range w.peers {
		if q.ears && !q.dead {
			w.f.subscribed = append(w.f.subscribed, q.name)
		}
	}
	reply, told := w.exchange(w.f, r)
	for _, m := range told {
		for _, q := range w.peers {
			if q.ears && (m.Channel == w.key || m.Channel == ChannelOf(w.key, q.name)) && !chance(w, w.trouble) {
				w.after(w.delay(), func() { w.tell(q, m) })
				if chance(w, w.trouble) {
					w.after(w.delay(), func() { w.tell(q, m) })
				}
			}
		}
	}
	if p != nil && !chance(w, w.trouble) {
		w.after(w.delay(), func() { w.answer(p, r, &reply) })
	}
}

func (w *world) answer(p *peer, r *Request, reply *Reply) {
	if w.now < p.silent {
		w.after(int(p.silent-w.now), func() { w.answer(p, r, reply) })
	} else if p.out == r && !p.dead {
		p.replied(r, reply)
	}
}

func (w *world) tell(p *peer, m Message) {
	if w.now < p.silent {
		w.after(int(p.silent-w.now), func() { w.tell(p, m) })
	} else if !p.dead {
		p.hears(m)
	}
}

// happens is what goes wrong, or is done to the gate.
func (w *world) happens() {
	lease := w.lease.Milliseconds()
	some := func() *peer {
		if len(w.peers) == 0 {
			w.join()
		}
		return w.peers[w.IntN(len(w.peers))]
	}
	switch w.IntN(14) {
	case 1:
		some().dead = true // killed
		w.join()
	case 2:
		some().leaving = true
		w.join()
	case 3:
		some().silent = w.now + int64(w.IntN(4*int(lease)))
	case 4:
		w.frozen = w.now + int64(w.IntN(4*int(lease)))
	case 5: // the server's clock jumps
		if w.now-w.jumped > lease {
			w.jumped = w.now
			back := 3600
			if w.fenced { // who sets the clock back and loses all data gets old fences again
				back = 0
			}
			w.f.wall += time.Duration(w.IntN(7200)-back) * time.Second
		}
	case 6: // FLUSHALL, DEL, eviction
		if !w.deaf {
			w.wipe()
			w.newcomer()
		}
	case 7:
		w.spoil(w.IntN(6))
	case 8: // a restart, empty
		w.wipe()
		w.another(false)
		w.started = w.now
		w.newcomer()
	case 9:
		w.restore = w.copyOf()
	case 10: // a replica that is behind takes over
		if w.restore != nil {
			w.restore()
		} else {
			w.wipe()
		}
		w.another(true)
	case 11:
		if !w.steady {
			w.override = Override{Version: w.override.Version + 1, Limit: w.IntN(8) - 1}
			if chance(w, 3) {
				w.override.For = w.lease
			}
		}
	case 12:
		if !w.steady {
			w.limit = 1 + w.IntN(8)
		}
	case 13:
		w.join()
	}
}

// newcomer is the first to speak for a while: it knows of nothing.
func (w *world) newcomer() {
	if chance(w, 2) {
		return
	}
	for _, p := range w.peers {
		p.silent = w.now + int64(w.IntN(int(w.lease.Milliseconds())/3))
	}
	w.join()
}

// another server answers from now on, and nobody is subscribed to it yet.
func (w *world) another(promoted bool) {
	w.f.identity = fmt.Sprintf("server %d", w.now)
	w.promoted = promoted
	w.restore = nil
	for _, p := range w.peers {
		p.ears = false
		w.after(w.IntN(int(w.lease.Milliseconds())), func() { p.ears = true })
	}
}

// promises are what must hold at every moment: what peers use together is within the
// limit, unless that was lowered, and is theirs as the ledger counts.
func (w *world) promises() {
	total, owner := 0, map[int]string{}
	for _, p := range w.peers {
		uses := p.uses()
		total += uses
		if uses == 0 {
			continue
		}
		for number := range p.slots {
			if other, taken := owner[number]; taken {
				w.t.Fatalf("at %d slot %d is used by %s and %s\n%s", w.now, number, p.name, other, w.story())
			}
			owner[number] = p.name
		}
		m := w.l.members[p.name]
		if w.l.identity == w.f.identity && !w.l.learning() && (m == nil || m.held() < uses) {
			w.t.Fatalf("at %d %s uses %d, of which the ledger knows less\n%s", w.now, p.name, uses, w.story())
		}
	}
	if w.steady && total > w.limit {
		w.t.Fatalf("at %d peers use %d of %d\n%s", w.now, total, w.limit, w.story())
	}
}

// story is the state of everything.
func (w *world) story() (s string) {
	for _, p := range w.peers {
		s += p.String() + "\n"
	}
	return fmt.Sprintf("%s%v, started %d\n%s", s, w.f, w.started, dump(w.l.Fields()))
}

// settle ends all trouble, and must leave nobody waiting.
func (w *world) settle() {
	w.calm, w.trouble = true, 1000
	w.frozen = 0
	w.override = Override{Version: w.override.Version + 1, Limit: -1}
	w.limit = max(w.limit, w.dearest)
	waits := func() (n int) {
		for _, p := range w.peers {
			p.silent, p.ears = 0, true
			n += len(p.line)
		}
		return n
	}
	for range 2000 + 50*waits() {
		if waits() == 0 {
			return
		}
		w.step()
	}
	w.t.Fatalf("%d calls wait for ever\n%s", waits(), w.story())
}
