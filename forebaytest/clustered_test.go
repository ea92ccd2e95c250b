package forebaytest

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/internal/feed"
)

// lender is a source that has as many slots as the gate's limit, first come first
// served.
type lender struct {
	gate  feed.Gate
	pokes chan struct{}

	mu    sync.Mutex // guards what follows
	limit int
	out   int
	heard uint64
	line  []feed.Run // of one call each
}

func (l *lender) Attach(g feed.Gate) (feed.Supplier, error) {
	l.gate, l.limit = g, g.Limit()
	return l, nil
}

func (l *lender) Configured(n int)  { l.SetLimit(n, 0) }
func (l *lender) Stats() feed.Stats { return feed.Stats{} }

func (l *lender) SetLimit(n int, _ time.Duration) {
	l.mu.Lock()
	l.limit = n
	l.mu.Unlock()
	l.gate.SetLimit(n)
	l.Poke()
}

func (l *lender) Poke() {
	select {
	case l.pokes <- struct{}{}:
	default:
	}
}

func (l *lender) run() {
	for range l.pokes {
		l.exchange()
	}
}

// exchange lends to whoever stands first, as long as there is enough.
func (l *lender) exchange() {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.gate.Look(l.heard, 10)
	l.out -= v.Back
	l.line = slices.DeleteFunc(l.line, func(r feed.Run) bool {
		return !slices.ContainsFunc(v.Standing, func(s feed.Span) bool { return s.First <= r.First && r.First <= s.Last })
	})
	for _, r := range v.Arrived {
		for i := range r.Calls {
			l.heard = r.First + uint64(i)
			l.line = append(l.line, feed.Run{First: l.heard, Cost: r.Cost})
		}
	}
	for len(l.line) > 0 && l.out+l.line[0].Cost <= l.limit {
		l.out += l.line[0].Cost
		l.gate.Lend(l.line[0].Cost, nil)
		l.line = l.line[1:]
	}
	l.gate.Answered(l.heard)
}

// openLent has more slots than it can use.
func openLent(t testing.TB, c forebay.Config, backend http.Handler) *System {
	l := &lender{}
	c.Cluster = l
	g := newGate(t, c)
	l.gate.Renew(time.Now().Add(1000 * time.Hour))
	l.gate.Lend(1<<20, nil)
	return NewSystem(g.Wrap(backend), g)
}

// openAlone goes on without its ledger.
func openAlone(t testing.TB, c forebay.Config, backend http.Handler) *System {
	l := &lender{}
	c.Cluster, c.CancelLost = l, true
	g := newGate(t, c)
	l.gate.Alone(feed.Alone{Slots: 1 << 20})
	return NewSystem(g.Wrap(backend), g)
}

// openReturning has each slot from its source, and gives it back.
func openReturning(t testing.TB, c forebay.Config, backend http.Handler) *System {
	l := &lender{pokes: make(chan struct{}, 1)}
	c.Cluster = l
	g := newGate(t, c)
	l.gate.Renew(time.Now().Add(1000 * time.Hour))
	l.gate.Return(true)
	go l.run()
	t.Cleanup(func() { close(l.pokes) })
	return NewSystem(g.Wrap(backend), g)
}
