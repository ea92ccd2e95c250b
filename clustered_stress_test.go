package forebay

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fire lets many callers loose on gates that share a limit, and checks afterwards that
// nothing is left over.
func fire(t *testing.T, p *pool, gates []*Gate, call func(rng *rand.Rand, g *Gate) (cost int, l Lease, ok bool)) (served int64) {
	t.Helper()
	each := 3000
	if testing.Short() {
		each = 300
	}
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range 6 * len(gates) {
		rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		wg.Go(func() {
			for range each {
				cost, l, ok := call(rng, gates[i%len(gates)])
				if !ok {
					continue
				}
				leave := p.enter(l, cost)
				for range rng.IntN(3) {
					runtime.Gosched()
				}
				leave()
				l.Release()
				n.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	p.healUntil(done)
	p.whole()
	for _, g := range gates {
		st := g.Stats()
		if st.Granted != st.Released || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	}
	return n.Load()
}

// Everybody is served, although nothing happens but by what the gates say.
func TestClusteredGatesForgetNobody(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		p := newPool(t, 5)
		p.fenced = fenced
		var gates []*Gate
		for range 3 {
			g, _ := p.gate(Config{MaxInFlight: 5, MaxWait: time.Hour, MaxWaiting: 100})
			gates = append(gates, g)
		}
		fire(t, p, gates, func(rng *rand.Rand, g *Gate) (int, Lease, bool) {
			cost := 1 + max(0, rng.IntN(12)-8)
			l, err := g.Acquire(context.Background(), Call{Cost: cost})
			if err != nil {
				t.Error(err)
			}
			return cost, l, err == nil
		})
	}
}

// Slots come and go, callers leave, ask and pass chains; each gets its decision, and
// no slot is lost.
func TestClusteredGatesUnderFire(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		p := newPool(t, 7)
		p.fenced = fenced
		p.rude = func(n int) bool { return rand.IntN(n) == 0 }
		var gates []*Gate
		var asked atomic.Uint64
		for i := range 3 {
			g, _ := p.gate(Config{MaxInFlight: 7, MaxWait: time.Hour, MaxWaiting: 100, Track: i == 1})
			gates = append(gates, g)
		}
		served := fire(t, p, gates, func(rng *rand.Rand, g *Gate) (cost int, l Lease, ok bool) {
			asked.Add(1)
			cost = 1 + max(0, rng.IntN(12)-8)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			switch rng.IntN(4) {
			case 0:
				l, ok = g.TryAcquire(Call{Cost: cost})
				return cost, l, ok
			case 1:
				go cancel()
			}
			l, err := g.Acquire(ctx, Call{Cost: cost})
			return cost, l, err == nil
		})
		var decided uint64
		for _, g := range gates {
			decided += g.Stats().Decisions()
		}
		if decided != asked.Load() {
			t.Errorf("%d calls, %d decisions", asked.Load(), decided)
		}
		if served == 0 || p.lapses == 0 || p.alone == 0 {
			t.Errorf("%d served, %d lapses, %d times alone", served, p.lapses, p.alone)
		}
	}
}

// A chain through two clustered gates and a local one takes all or nothing.
func TestClusteredChainUnderFire(t *testing.T) {
	p := newPool(t, 6)
	p.rude = func(n int) bool { return rand.IntN(n) == 0 }
	a, _ := p.gate(Config{Name: "a", MaxInFlight: 6, MaxWait: time.Hour, MaxWaiting: 100})
	b, _ := p.gate(Config{Name: "b", MaxInFlight: 6, MaxWait: time.Hour, MaxWaiting: 100})
	local := gateOf(t, Config{Name: "local", MaxInFlight: 2, MaxWait: time.Hour, MaxWaiting: 100})
	at := gateOf(t, Config{Name: "at-once", MaxInFlight: 50})
	patient, err := NewChain(local, a)
	if err != nil {
		t.Fatal(err)
	}
	hasty, err := NewChain(b, at)
	if err != nil {
		t.Fatal(err)
	}
	fire(t, p, []*Gate{a, b}, func(rng *rand.Rand, g *Gate) (cost int, l Lease, ok bool) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if rng.IntN(4) == 0 {
			go cancel()
		}
		c := patient
		if g == b {
			c = hasty
		}
		l, err := c.Acquire(ctx, Call{})
		if err != nil {
			return 0, l, false
		}
		inner := l // the pool knows the lease of its own gate only
		l.eachLink(func(link Lease) {
			if link.slot.gate == g {
				inner = link
			}
		})
		p.enter(inner, 1)()
		l.Release()
		return 0, l, false
	})
	for _, g := range []*Gate{local, at} {
		if st := g.Stats(); st.InUse != 0 || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	}
}
