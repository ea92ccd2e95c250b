package story

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

// gate is what the book knows of a gate beside its calls.
type gate struct {
	from  atomic.Pointer[forebay.Gate]
	rules atomic.Pointer[rules]

	ended   atomic.Uint64 // calls, since the last tick
	perSec  atomic.Uint32 // the bits of a float32
	ticked  atomic.Int64
	lookAt  atomic.Int64 // when the next look at the holders is due
	picture atomic.Pointer[picture]
}

// rules are what a gate was configured with when it decided.
type rules struct {
	maxWait    time.Duration
	maxWaiting int // 0: as long as the default
	maxCaller  int
	maxCost    int
	retry      forebay.RetryAfter
	routes     map[string][]string // to the gates that each names
}

func newRules(c forebay.Config, routes map[string][]string) *rules {
	return &rules{
		maxWait: c.MaxWait, maxWaiting: c.MaxWaiting, maxCaller: c.PerCaller.MaxInFlight, maxCost: c.MaxInFlight,
		retry: c.Refusal.RetryAfter, routes: routes,
	}
}

// tick takes down how many calls ended a second.
func (g *gate) tick(now time.Time) {
	was := g.ticked.Swap(now.UnixNano())
	n := g.ended.Swap(0)
	if passed := time.Duration(now.UnixNano() - was); was != 0 && passed > 0 {
		g.perSec.Store(math.Float32bits(float32(float64(n) / passed.Seconds())))
	}
}

func (g *gate) rate() float32 { return math.Float32frombits(g.perSec.Load()) }

// picture is who held the slots of a gate at one moment.
type picture struct {
	at     int64 // nanoseconds since 1970
	calls  int
	routes []holders // the most first
	others int       // calls of further routes
}

// holders are the calls of one route that hold slots.
type holders struct {
	route  string
	calls  int
	oldest time.Time // since when the oldest holds
}

const (
	// lookEvery is how often the holders of a gate that refuses are looked at. Half of it
	// costs twice as much and shows the same; twice is as long as many calls last.
	lookEvery = 50 * time.Millisecond
	// lookCost is what a holder adds to that, a thousand times what a look at it takes, so
	// that looking takes a thousandth of the time, of gates of any size.
	lookCost     = 50 * time.Microsecond
	shownHolders = 4 // routes
)

// look returns who holds the slots, as of a moment ago at most. Of those who come at the
// same time one looks.
func (g *gate) look(now time.Time) *picture {
	if g == nil {
		return nil
	}
	due := g.lookAt.Load()
	if now.UnixNano() < due || !g.lookAt.CompareAndSwap(due, now.UnixNano()+int64(lookEvery)) {
		return g.picture.Load()
	}
	all := g.from.Load().Holders()
	p := newPicture(now, all)
	g.picture.Store(p)
	g.lookAt.Add(int64(len(all)) * int64(lookCost))
	return p
}

func newPicture(now time.Time, all []forebay.Holder) *picture {
	p := &picture{at: now.UnixNano(), calls: len(all)}
	for _, h := range all { // the oldest first
		i := slices.IndexFunc(p.routes, func(r holders) bool { return r.route == h.Route })
		switch {
		case i >= 0:
			p.routes[i].calls++
		default:
			p.routes = append(p.routes, holders{h.Route, 1, h.Since})
		}
	}
	slices.SortStableFunc(p.routes, func(a, b holders) int { return cmp.Compare(b.calls, a.calls) })
	if len(p.routes) > shownHolders {
		for _, r := range p.routes[shownHolders:] {
			p.others += r.calls
		}
		p.routes = slices.Clone(p.routes[:shownHolders])
	}
	return p
}
