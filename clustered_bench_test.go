package forebay

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"example.com/forebay/internal/feed"
)

// lender is a source that always has as many slots as its limit: what an exchange
// costs without a store.
type lender struct {
	gate  feed.Gate
	pokes chan struct{}
	over  chan struct{}
}

func newLender() *lender {
	return &lender{pokes: make(chan struct{}, 1), over: make(chan struct{})}
}

func (l *lender) Attach(g feed.Gate) (feed.Supplier, error) { l.gate = g; return l, nil }
func (l *lender) SetLimit(int, time.Duration)               {}
func (l *lender) Configured(int)                            {}
func (l *lender) Stats() feed.Stats                         { return feed.Stats{} }
func (l *lender) Poke() {
	select {
	case l.pokes <- struct{}{}:
	default:
	}
}

// run lends n slots, and has them back after each call.
func (l *lender) run(n int) (exchanges int) {
	l.gate.Renew(time.Now().Add(time.Hour))
	l.gate.Return(true)
	heard, wanted := uint64(0), 0
	for range l.pokes {
		runtime.Gosched() // all others come before the answer does
		v := l.gate.Look(heard, 64)
		exchanges++
		n += v.Back
		for _, r := range v.Arrived {
			heard = r.First + uint64(r.Calls) - 1
			wanted += r.Calls
		}
		if k := min(n, wanted); k > 0 {
			n, wanted = n-k, wanted-k
			l.gate.Lend(k, nil)
		}
	}
	return exchanges
}

func pairs(b *testing.B, g *Gate, callers int) {
	b.Helper()
	b.ReportAllocs()
	ctx := context.Background()
	done := make(chan struct{})
	for i := range callers {
		n := b.N / callers
		if i < b.N%callers {
			n++
		}
		go func() {
			defer func() { done <- struct{}{} }()
			for range n {
				l, err := g.Acquire(ctx, Call{})
				if err != nil {
					b.Error(err)
					return
				}
				l.Release()
			}
		}()
	}
	for range callers {
		<-done
	}
}

func benchGate(b *testing.B, c Config) *Gate {
	b.Helper()
	c.MaxInFlight, c.MaxWait, c.MaxWaiting = 512, time.Minute, 1000
	g, err := New(c)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkCached compares a gate whose slots are here with local ones.
func BenchmarkCached(b *testing.B) {
	for _, callers := range []int{1, 16} {
		for _, kind := range []string{"bare", "track", "clustered", "clustered+track"} {
			b.Run(fmt.Sprintf("%s/%d", kind, callers), func(b *testing.B) {
				c := Config{Track: kind == "track" || kind == "clustered+track"}
				s := &source{}
				if kind == "clustered" || kind == "clustered+track" {
					c.Cluster = s
				}
				g := benchGate(b, c)
				if s.Gate != nil {
					s.Renew(time.Now().Add(time.Hour))
					s.Lend(512, nil)
				}
				pairs(b, g, callers)
			})
		}
	}
}

// BenchmarkUncached is the cost in this process of a pair that goes through the
// ledger: nothing is kept, and a store that answers at once.
func BenchmarkUncached(b *testing.B) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			l := newLender()
			g := benchGate(b, Config{Cluster: l})
			exchanges := 0
			go func() {
				exchanges = l.run(512)
				close(l.over)
			}()
			pairs(b, g, callers)
			close(l.pokes)
			<-l.over
			b.ReportMetric(float64(exchanges)/float64(b.N), "exchanges/op")
		})
	}
}

// BenchmarkLine is a local gate of one slot with a line.
func BenchmarkLine(b *testing.B) {
	g := benchGate(b, Config{})
	if err := g.SetLimit(1); err != nil {
		b.Fatal(err)
	}
	pairs(b, g, 16)
}
