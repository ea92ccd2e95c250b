package story

import (
	"crypto/rand"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

const (
	// keptRefusals is how many refusals are kept over all gates. A gate that refuses 50
	// calls a second is kept for ten minutes, until whoever was refused has telephoned;
	// half of it is over before that, twice costs more than the rest of the program.
	keptRefusals = 32 << 10
	// keptOthers is how many accepted calls are kept, and those whose caller left.
	keptOthers = 4 << 10
	// indexed is how many calls under way can be found again in one step: a power of two.
	indexed = 8 << 10
)

// Book keeps stories. Make one with [NewBook]; it is an observer of gates and groups,
// safe for concurrent use, and has nothing to close.
type Book struct {
	tag   string // of this run, in every id
	seed  maphash.Seed
	gates atomic.Pointer[map[string]*gate]
	now   atomic.Int64 // nanoseconds since 1970 at the last Tick, or the last refusal

	mu      sync.Mutex // guards what follows
	serial  uint64     // of the latest story
	refused shelf
	others  shelf
	latest  [indexed]*page // by the hash of the request's id; a later one takes the place
}

// NewBook returns an empty book.
func NewBook() *Book {
	b := &Book{
		tag: rand.Text()[:4], seed: maphash.MakeSeed(),
		refused: shelf{most: keptRefusals / pages}, others: shelf{most: keptOthers / pages},
	}
	b.gates.Store(&map[string]*gate{})
	b.Tick(clock())
	return b
}

// page is one story as it is kept. Its strings are the request's own: an id has 128 bytes
// at most, and a route is the configuration's.
type page struct {
	serial  uint64
	at      int64 // nanoseconds since 1970
	gate    string
	route   string
	lane    string // one of the gate's
	id      string // of the request
	asked   string // what the client called it, if that was not taken for its id
	ip      string
	rules   *rules
	picture *picture // who held the slots; nil: nobody looked
	waited  time.Duration
	held    time.Duration
	rate    float32 // calls that ended a second

	inFlight, waiting, limit, cost int32
	retry                          int32 // seconds; 0: none, or not yet answered
	status                         int16 // 0: not yet answered, or of no interest

	decision forebay.Decision
	outcome  forebay.Outcome
	released bool
}

// Watch tells of the gates in force, and which of them each route names. Calls of others
// are kept too, with less to say.
func (b *Book) Watch(routes map[string][]string, gates ...*forebay.Gate) {
	old, now := *b.gates.Load(), make(map[string]*gate, len(gates))
	for _, g := range gates {
		kept := &gate{}
		if was := old[g.Name()]; was != nil && was.from.Load() == g {
			kept = was
		}
		kept.from.Store(g)
		kept.rules.Store(newRules(g.Config(), routes))
		now[g.Name()] = kept
	}
	b.gates.Store(&now)
}

// Tick tells the time, once a second.
func (b *Book) Tick(now time.Time) {
	b.now.Store(now.UnixNano())
	for _, g := range *b.gates.Load() {
		g.tick(now)
	}
}

// Observe keeps what a gate has decided, and how the call ended.
func (b *Book) Observe(e forebay.Event) {
	switch {
	case e.Kind == forebay.EventReleased:
		b.released(&e)
	case e.Kind == forebay.EventDecided:
		b.decided(&e)
	}
}

func (b *Book) decided(e *forebay.Event) {
	p := page{
		gate: e.Gate, route: e.Route, lane: e.Lane, id: e.RequestID, ip: e.RemoteIP, waited: e.Waited, decision: e.Decision,
		inFlight: int32(e.InFlight), waiting: int32(e.Waiting), limit: int32(e.Limit), cost: int32(e.Cost),
	}
	to := &b.others
	g := (*b.gates.Load())[e.Gate]
	if e.Decision.Refused() {
		at := clock()
		b.now.Store(at.UnixNano())
		to = &b.refused
		p.picture = g.look(at)
	}
	if g != nil {
		p.rules, p.rate = g.rules.Load(), g.rate()
	}
	p.at = b.now.Load()
	place := b.place(e.RequestID)
	b.mu.Lock()
	b.serial++
	p.serial = b.serial
	kept := to.next(e.Gate)
	*kept = p
	b.latest[place] = kept
	b.mu.Unlock()
}

func (b *Book) released(e *forebay.Event) {
	if g := (*b.gates.Load())[e.Gate]; g != nil {
		g.ended.Add(1)
	}
	place := b.place(e.RequestID)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.latest[place]; p != nil && p.id == e.RequestID && p.gate == e.Gate {
		p.held, p.outcome, p.released = e.Held, e.Outcome, true
	}
}

// Answered adds what the client was told, and what it had called the request if that
// was not taken for its id (else empty).
func (b *Book) Answered(id, asked string, status, retry int) {
	place := b.place(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.latest[place]; p != nil && p.id == id {
		p.asked = asked
		if p.decision.Refused() {
			p.status, p.retry = int16(status), int32(retry)
		}
	}
}

// place is where a call is looked for by its request's id.
func (b *Book) place(id string) uint64 { return maphash.String(b.seed, id) % indexed }
