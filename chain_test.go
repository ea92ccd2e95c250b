package forebay

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// eventLog keeps every event in order.
type eventLog struct {
	mu     sync.Mutex
	events []Event
}

func (l *eventLog) Observe(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// take returns what was seen since the last look.
func (l *eventLog) take() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.events
	l.events = nil
	return seen
}

// briefly words what was seen since the last look.
func (l *eventLog) briefly() (words []string) {
	for _, e := range l.take() {
		word := e.Gate + " " + e.Kind.String()
		if e.Kind == EventDecided {
			word = e.Gate + " " + e.Decision.String()
		}
		if e.Waited > 0 {
			word += " after " + e.Waited.String()
		}
		words = append(words, word)
	}
	return words
}

// chainOf returns a chain over gates a, b, c, … of those limits, with 100 ms of
// patience each, and what its observers see.
func chainOf(t testing.TB, limits ...int) (*Chain, []*Gate, *eventLog) {
	log := &eventLog{}
	var gates []*Gate
	for i, n := range limits {
		gates = append(gates, gateOf(t, Config{
			Name: string(rune('a' + i)), MaxInFlight: n, MaxWait: 100 * time.Millisecond, MaxWaiting: 9,
			Observers: []Observer{log},
		}))
	}
	chain, err := NewChain(gates...)
	must(err)
	return chain, gates, log
}

func (l *eventLog) saw(t testing.TB, want ...string) {
	t.Helper()
	if got := l.briefly(); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestNewChainNamesEveryMistake(t *testing.T) {
	g := gateOf(t, Config{Name: "reports", MaxInFlight: 1})
	_, err := NewChain(g, nil, g)
	want := "forebay: gate 1 of the chain is nil\n" + `forebay: gate "reports" is twice in the chain; name it once`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := NewChain(); err == nil || err.Error() != "forebay: a chain needs at least one gate" {
		t.Errorf("error %v", err)
	}
}

func TestChainTakesAllAndGivesAllBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, log := chainOf(t, 2, 4, 2, 2, 2, 2)
		l, err := chain.Acquire(context.Background(), Call{Cost: 2, Route: "/export"})
		must(err)
		log.saw(t, "a accepted")
		for _, g := range gates {
			if st := g.Stats(); st.InUse != 2 || st.Calls != 1 {
				t.Errorf("gate %q: %+v", g.Name(), st)
			}
		}
		other := l
		if l.Gate() != gates[0] || !other.Live() {
			t.Errorf("gate %v, live %v", l.Gate(), other.Live())
		}
		l.Release()
		log.saw(t, "f released", "e released", "d released", "c released", "b released", "a released")
		other.Release()
		shows(t, gates[0], "0/2, accepted 1, stale 1")
		for _, g := range gates[1:] {
			shows(t, g, "0/"+string(rune('0'+g.Stats().Capacity)))
			admitsFullSet(t, g)
		}
	})
}

// SL-03: a chain that is refused half way gives back what it got, as often as it
// happens.
func TestSL03ChainRefusedHalfWayIsUnwound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, log := chainOf(t, 3, 2, 1)
		l := take(t, gates[2], 1)
		log.take()
		for range 4 {
			at := attemptAt(context.Background(), chain, Call{})
			time.Sleep(100 * time.Millisecond)
			at.refused(t, RejectedTimeout, 100*time.Millisecond)
			log.saw(t, "c rejected_timeout after 100ms")
		}
		shows(t, gates[0], "0/3")
		shows(t, gates[1], "0/2")
		shows(t, gates[2], "1/1, accepted 1, timeout 4")
		l.Release()
		for _, g := range gates {
			admitsFullSet(t, g)
		}
	})
}

// One patience for the whole chain, one decision, with all of the wait.
func TestChainHasOnePatienceAndOneDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, log := chainOf(t, 1, 1)
		a, b := take(t, gates[0], 1), take(t, gates[1], 1)
		log.take()
		late := queued(t, context.Background(), chain, Call{})
		time.Sleep(60 * time.Millisecond)
		a.Release()
		synctest.Wait()
		shows(t, gates[0], "1/1, accepted 1") // a link is no decision
		shows(t, gates[1], "1/1, waiting 1, accepted 1")
		time.Sleep(40 * time.Millisecond)
		late.refused(t, RejectedTimeout, 100*time.Millisecond)
		log.saw(t, "a released", "b rejected_timeout after 100ms")
		shows(t, gates[0], "0/1, accepted 1")
		shows(t, gates[1], "1/1, accepted 1, timeout 1")

		a = take(t, gates[0], 1)
		log.take()
		served := queued(t, context.Background(), chain, Call{})
		time.Sleep(30 * time.Millisecond)
		a.Release()
		time.Sleep(30 * time.Millisecond)
		b.Release()
		served.granted(t, 60*time.Millisecond)
		log.saw(t, "a released", "b released", "a accepted after 60ms")
		shows(t, gates[0], "1/1, accepted 3")
		shows(t, gates[1], "1/1, accepted 1, timeout 1")
		served.lease.Release()
	})
}

// The patience is the smallest MaxWait in the chain; none at all refuses at once.
func TestChainPatienceIsTheSmallest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, gates, _ := chainOf(t, 1, 1)
		short := gateOf(t, Config{Name: "short", MaxInFlight: 1, MaxWait: 10 * time.Millisecond})
		hasty := gateOf(t, Config{Name: "hasty", MaxInFlight: 1})
		l := take(t, gates[0], 1)
		for last, want := range map[*Gate]time.Duration{gates[1]: 100 * time.Millisecond, short: 10 * time.Millisecond} {
			chain, err := NewChain(gates[0], last)
			must(err)
			at := queued(t, context.Background(), chain, Call{})
			time.Sleep(want)
			at.refused(t, RejectedTimeout, want)
		}
		chain, err := NewChain(gates[0], hasty)
		must(err)
		attemptAt(context.Background(), chain, Call{}).refused(t, RejectedBusy, 0)
		l.Release()
	})
}

func TestChainPassesOverWhatTheCallHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, _ := chainOf(t, 1, 1)
		outer := take(t, gates[0], 1)
		ctx := WithLease(context.Background(), outer)
		l, err := chain.Acquire(ctx, Call{})
		must(err)
		shows(t, gates[0], "1/1, accepted 1")
		shows(t, gates[1], "1/1, accepted 1") // the first gate it took
		inner, err := chain.Acquire(WithLease(ctx, l), Call{})
		if err != nil || inner.Live() {
			t.Errorf("a chain that the call holds already: live %v, %v", inner.Live(), err)
		}
		l.Release()
		whole, err := NewChain(gates[1], gateOf(t, Config{MaxInFlight: 1}))
		must(err)
		both, err := whole.Acquire(ctx, Call{})
		must(err)
		for _, g := range whole.gates { // each gate by itself, from a chain's lease
			if in, err := g.Acquire(WithLease(ctx, both), Call{}); err != nil || in.Live() {
				t.Errorf("gate %q: live %v, %v", g.Name(), in.Live(), err)
			}
		}
		both.Release()
		if !outer.Live() {
			t.Error("the chain gave back a lease that it had not taken")
		}
		outer.Release()
		shows(t, gates[0], "0/1, accepted 1")
		shows(t, gates[1], "0/1, accepted 2")
	})
}

// brief is a context that ends after it was looked at so many times.
type brief struct {
	context.Context
	looks int
}

func (b *brief) Err() error {
	if b.looks--; b.looks < 0 {
		return context.Canceled
	}
	return nil
}

// A caller that leaves between two gates gets none of them.
func TestCallerLeavesBetweenTwoGates(t *testing.T) {
	chain, gates, log := chainOf(t, 1, 1, 1)
	for looks, want := range [][]string{{"a canceled"}, {"b canceled"}, {"c canceled"}} {
		l, err := chain.Acquire(&brief{context.Background(), looks}, Call{})
		if decisionOf(err) != Canceled || l.Live() {
			t.Errorf("live %v, error %v", l.Live(), err)
		}
		log.saw(t, want...)
	}
	for _, g := range gates {
		shows(t, g, "0/1, canceled 1")
		machineCounts(t, g)
	}
}

// Two chains that cross wait for each other no longer than the patience.
func TestChainsThatCrossPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, _ := chainOf(t, 1, 1)
		back, err := NewChain(gates[1], gates[0])
		must(err)
		a, b := take(t, gates[0], 1), take(t, gates[1], 1)
		there, here := queued(t, context.Background(), chain, Call{}), queued(t, context.Background(), back, Call{})
		time.Sleep(time.Millisecond)
		a.Release()
		b.Release()
		synctest.Wait()
		if there.done() || here.done() {
			t.Fatal("the chains do not cross")
		}
		time.Sleep(time.Second)
		if !there.done() || !here.done() {
			t.Fatal("two chains that cross still wait for each other")
		}
		there.lease.Release()
		here.lease.Release()
		for _, g := range gates {
			admitsFullSet(t, g)
		}
	})
}

func TestChainIsCancelledAtItsSecondGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, log := chainOf(t, 1, 1)
		a, b := take(t, gates[0], 1), take(t, gates[1], 1)
		ctx, cancel := context.WithCancel(context.Background())
		at := queued(t, ctx, chain, Call{})
		behind := queued(t, context.Background(), gates[0], Call{})
		time.Sleep(5 * time.Millisecond)
		a.Release()
		synctest.Wait()
		log.take()
		time.Sleep(5 * time.Millisecond)
		cancel()
		at.refused(t, Canceled, 10*time.Millisecond)
		behind.granted(t, 10*time.Millisecond) // the first gate's slot goes on
		if seen := log.briefly(); !slices.Contains(seen, "b canceled after 10ms") || len(seen) != 2 {
			t.Errorf("events %q", seen)
		}
		shows(t, gates[1], "1/1, accepted 1, canceled 1")
		attemptAt(ended(), chain, Call{}).refused(t, Canceled, 0)
		shows(t, gates[0], "1/1, accepted 2, canceled 1")
		behind.lease.Release()
		b.Release()
	})
}

func TestChainRefusedByDrainAndCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, _ := chainOf(t, 3, 2)
		attemptAt(context.Background(), chain, Call{Cost: 3}).refused(t, RejectedTooLarge, 0)
		shows(t, gates[0], "0/3")
		shows(t, gates[1], "0/2, large 1")
		b := take(t, gates[1], 2)
		at := queued(t, context.Background(), chain, Call{Cost: 2})
		shows(t, gates[0], "2/3")
		d := drainAt(context.Background(), gates[1])
		at.refused(t, RejectedDraining, 0)
		b.Release()
		d.returns(t, "", 0)
		gates[1].Resume()
		for _, g := range gates {
			admitsFullSet(t, g)
		}
	})
}

func TestMemberOfAChainIsReconfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chain, gates, log := chainOf(t, 2, 1)
		l, err := chain.Acquire(context.Background(), Call{})
		must(err)
		at := queued(t, context.Background(), chain, Call{})
		for _, g := range gates {
			must(g.Reconfigure(Config{MaxInFlight: 2, MaxWait: time.Second, Track: true, Observers: []Observer{log}}))
		}
		at.granted(t, 0)
		l.Release()
		at.lease.Release()
		shows(t, gates[0], "0/2, accepted 2")
		shows(t, gates[1], "0/2")
		for _, g := range gates {
			admitsFullSet(t, g)
		}
	})
}

func TestChainOfOneGateIsThatGate(t *testing.T) {
	chain, gates, log := chainOf(t, 1)
	l, err := chain.Acquire(context.Background(), Call{})
	must(err)
	log.saw(t, "a accepted")
	l.Release()
	shows(t, gates[0], "0/1, accepted 1")
}
