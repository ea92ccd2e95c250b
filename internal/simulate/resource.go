package simulate

import (
	"math"
	"slices"
	"time"
)

// resource serves calls. Every call that is served gets ahead at the same pace, so one
// number says how far all are: the work that a call would have got done if it had been
// served from the start. A call is done when that number has grown by the call's work,
// and so a change of pace changes one time, that of the first to be done.
type resource struct {
	Resource
	sim     *sim
	servers int
	speed   float64
	still   bool    // in a pause
	done    float64 // seconds of work
	since   instant // when done was counted
	served  heap    // by what done is when a call is done
	waiting fifo
	paces   []float64 // of one call by how many are served; 0: not known yet
	ends    *event
	changes int             // that have happened
	bests   map[int]float64 // by servers

	tally struct {
		calls, line float64 // × seconds
		work        float64 // seconds of it
	}
}

func newResource(s *sim, r Resource) *resource {
	b := &resource{Resource: r, sim: s, servers: r.Servers, speed: 1}
	if b.servers == 0 {
		b.servers = math.MaxInt
	}
	b.ends = s.agenda.add(b.end)
	if len(r.Changes) > 0 {
		change := s.agenda.add(nil)
		change.fire = func() { b.change(change) }
		s.agenda.set(change, instant(r.Changes[0].At))
	}
	if r.Pauses.Every > 0 {
		pause := s.agenda.add(nil)
		pause.fire = func() { b.pause(pause) }
		s.agenda.set(pause, instant(r.Pauses.Every))
	}
	return b
}

// pace returns how fast each of n calls is served, before what speed says.
func (r *Resource) pace(n int) float64 {
	k, p := float64(n), 1.0
	if r.Cores > 0 {
		p *= min(1, r.Cores/k)
	}
	p /= 1 + r.Sigma*(k-1) + r.Kappa*k*(k-1)
	if at := float64(r.Cliff.At); at > 0 && k > at {
		p *= math.Pow(at/k, 1+r.Cliff.Power)
	}
	if len(r.Throughput) > 0 {
		p *= r.does(n) / k
	}
	return p
}

// does reads the table of throughput.
func (r *Resource) does(n int) float64 {
	from := Rate{}
	for _, to := range r.Throughput {
		if n <= to.Calls {
			part := float64(n-from.Calls) / float64(to.Calls-from.Calls)
			return from.Does + part*(to.Does-from.Does)
		}
		from = to
	}
	return from.Does
}

const knownPaces = 1 << 14

func (b *resource) paceNow() float64 {
	n := len(b.served)
	if b.still || n == 0 {
		return 0
	}
	if n >= knownPaces {
		return b.speed * b.pace(n)
	}
	for n >= len(b.paces) {
		b.paces = append(b.paces, 0)
	}
	if b.paces[n] == 0 {
		b.paces[n] = b.pace(n)
	}
	return b.speed * b.paces[n]
}

// count brings what is done up to now.
func (b *resource) count() {
	passed := time.Duration(b.sim.now - b.since).Seconds()
	if passed == 0 {
		return
	}
	n := float64(len(b.served))
	work := b.paceNow() * passed
	b.done += work
	b.since = b.sim.now
	b.tally.calls += n * passed
	b.tally.work += n * work
	b.tally.line += float64(b.waiting.len) * passed
}

// plan says when the next call is done.
func (b *resource) plan() {
	pace := b.paceNow()
	if pace <= 0 {
		b.sim.agenda.set(b.ends, never)
		return
	}
	seconds := (b.served.first().key - b.done) / pace
	at := never
	if ns := math.Ceil(max(seconds, 0) * 1e9); ns < float64(never-b.sim.now) {
		at = b.sim.now + instant(ns)
	}
	b.sim.agenda.set(b.ends, at)
}

// start takes a call in.
func (b *resource) start(c *call) {
	b.count()
	c.at = b
	if len(b.served) < b.servers {
		b.serve(c)
	} else {
		b.waiting.push(c)
	}
	b.plan()
}

func (b *resource) serve(c *call) {
	c.key = b.done + c.work[c.visit]
	b.served.push(&c.entry)
}

// end lets the call go that is done first.
func (b *resource) end() {
	b.count()
	c := b.served.first().call
	b.done = max(b.done, c.key) // what was left is less than a nanosecond
	b.leave(c)
	b.sim.visited(c)
}

// leave takes a call out, done or not.
func (b *resource) leave(c *call) {
	b.count()
	c.at = nil
	if c.place >= 0 {
		b.served.remove(&c.entry)
		b.fill()
	} else {
		b.waiting.remove(c)
	}
	b.plan()
}

// undone returns the seconds of work that a call still needs here.
func (b *resource) undone(c *call) float64 {
	if c.place < 0 {
		return c.work[c.visit]
	}
	b.count()
	return max(0, c.key-b.done)
}

// fill lets those in who wait for a server.
func (b *resource) fill() {
	for len(b.served) < b.servers && b.waiting.head != nil {
		c := b.waiting.head
		b.waiting.remove(c)
		b.serve(c)
	}
}

func (b *resource) change(e *event) {
	b.count()
	c := b.Changes[b.changes]
	if c.Speed > 0 {
		b.speed = c.Speed
	}
	if c.Servers > 0 {
		b.servers = c.Servers // those served beyond it are served to their end
	}
	b.fill()
	b.plan()
	if b.changes++; b.changes < len(b.Changes) {
		b.sim.agenda.set(e, instant(b.Changes[b.changes].At))
	} else {
		b.sim.agenda.set(e, never)
	}
}

func (b *resource) pause(e *event) {
	b.count()
	b.still = !b.still
	next := b.Pauses.For
	if !b.still {
		next = b.Pauses.Every - b.Pauses.For
	}
	b.plan()
	b.sim.agenda.set(e, b.sim.now+instant(next))
}

// fifo is a line of calls at a resource.
type fifo struct {
	head, tail *call
	len        int
}

func (f *fifo) push(c *call) {
	c.place = -1
	c.prev, c.next = f.tail, nil
	if f.tail == nil {
		f.head = c
	} else {
		f.tail.next = c
	}
	f.tail = c
	f.len++
}

func (f *fifo) remove(c *call) {
	if c.prev == nil {
		f.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		f.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	f.len--
}

// could returns how many seconds of work the resource could have done between two
// instants, at the number of calls that suits it best.
func (b *resource) could(from, to instant) (work float64) {
	servers, speed, at := b.Servers, 1.0, from
	for _, c := range slices.Concat(b.Changes, []Change{{At: time.Duration(never)}}) {
		if until := min(to, instant(c.At)); until > at {
			work += b.best(servers) * speed * time.Duration(until-at).Seconds()
			at = until
		}
		if c.Speed > 0 {
			speed = c.Speed
		}
		if c.Servers > 0 {
			servers = c.Servers
		}
	}
	if p := b.Pauses; p.Every > 0 {
		work *= 1 - p.For.Seconds()/p.Every.Seconds()
	}
	return work
}

// best returns the most seconds of work that can be done in a second.
func (b *resource) best(servers int) (most float64) {
	if servers == 0 {
		servers = mostCalls
	}
	if w, known := b.bests[servers]; known {
		return w
	}
	for n := 1; n <= min(servers, mostCalls); n++ {
		most = max(most, float64(n)*b.pace(n))
	}
	if b.bests == nil {
		b.bests = map[int]float64{}
	}
	b.bests[servers] = most
	return most
}

// mostCalls bounds the search for the number of calls at which most is done.
const mostCalls = 100_000

func (b *resource) result() ResourceResult {
	b.count()
	whole := b.sim.sc.For.Seconds()
	r := ResourceResult{Resource: b.Name, Calls: b.tally.calls / whole, Waiting: b.tally.line / whole}
	if could := b.could(0, b.sim.now); could > 0 {
		r.Busy = b.tally.work / could
	}
	return r
}
