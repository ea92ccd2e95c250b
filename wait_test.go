package forebay

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay/internal/admit"
)

// decisionsSeen counts the decisions that an observer is told of.
type decisionsSeen struct {
	mu   sync.Mutex
	seen []Decision
}

func (d *decisionsSeen) Observe(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Kind == EventDecided {
		d.seen = append(d.seen, e.Decision)
	}
}

func (d *decisionsSeen) count(want Decision) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, got := range d.seen {
		if got == want {
			n++
		}
	}
	return n
}

// leaver is a context that has ended for whoever asks, but wakes nobody: a call
// that was woken by its grant finds that its caller has left meanwhile.
type leaver struct {
	context.Context
	why atomic.Pointer[error]
}

func (l *leaver) Done() <-chan struct{} { return make(chan struct{}) }
func (l *leaver) leave(why error)       { l.why.Store(&why) }

func (l *leaver) Err() error {
	if why := l.why.Load(); why != nil {
		return *why
	}
	return nil
}

// giveBackLocked is Release up to the moment at which the lock is given up: the
// machine has decided whom it lets in, and nobody knows yet.
func giveBackLocked(t *testing.T, l Lease) {
	g := l.slot.gate
	if !g.slots.closeLocked(l.slot, l.word) {
		t.Fatal("the lease is not out")
	}
	g.machine.Release(clock(), oneUnit, admit.End{})
}

// untilSomebodyLocks returns when n goroutines wait for a gate's lock.
func untilSomebodyLocks(n int) {
	buf := make([]byte, 1<<20)
	for {
		blocked := 0
		for s := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(s, "forebay.(*Gate).lock(") && strings.Contains(s, "sync.(*Mutex).Lock(") {
				blocked++
			}
		}
		if blocked >= n {
			return
		}
		runtime.Gosched()
	}
}

// raceSetup is a gate of one slot, its lease, a caller in line and one behind.
func raceSetup(t *testing.T, ctx context.Context) (g *Gate, seen *decisionsSeen, l Lease, first, second *attempt) {
	seen = &decisionsSeen{}
	g = gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second, MaxWaiting: 5})
	l = take(t, g, 1)
	c := g.Config()
	c.Observers = []Observer{seen}
	must(g.Reconfigure(c))
	first = queued(t, ctx, g, Call{})
	second = queued(t, context.Background(), g, Call{})
	return g, seen, l, first, second
}

// The machine grants, the caller is woken by it, and finds that it has left: its
// slot goes to the next in line, and it counts as canceled, once.
func TestGrantOfACallerThatLeftIsHandedOn(t *testing.T) {
	for _, c := range []struct {
		why  error
		want Decision
		say  string
	}{
		{context.Canceled, Canceled, "canceled 1"},
		{context.DeadlineExceeded, RejectedDeadline, "deadline 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := &leaver{Context: context.Background()}
			g, seen, l, first, second := raceSetup(t, ctx)
			ctx.leave(c.why)
			time.Sleep(10 * time.Millisecond)
			l.Release()
			first.refused(t, c.want, 10*time.Millisecond)
			second.granted(t, 10*time.Millisecond)
			shows(t, g, "1/1, accepted 2, "+c.say)
			machineCounts(t, g)
			second.lease.Release()
			shows(t, g, "0/1, accepted 2, "+c.say)
			if seen.count(c.want) != 1 || seen.count(Accepted) != 1 {
				t.Errorf("events %v, want one %v and one accepted", seen.seen, c.want)
			}
		})
	}
}

// The machine grants; before the caller hears of it its context ends, and it comes
// to the lock to leave: it finds a grant there, and hands it on.
func TestCallerLeavesAfterTheGrantAndBeforeItWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		g, seen, l, first, second := raceSetup(t, ctx)
		g.lock()
		giveBackLocked(t, l)
		cancel()
		untilSomebodyLocks(1)
		g.unlock()
		first.refused(t, Canceled, 0)
		second.granted(t, 0)
		shows(t, g, "1/1, accepted 2, canceled 1")
		if seen.count(Canceled) != 1 || seen.count(Accepted) != 1 {
			t.Errorf("events %v, want one canceled and one accepted", seen.seen)
		}
		machineCounts(t, g)
		second.lease.Release()
		admitsFullSet(t, g)
	})
}

// The caller leaves first: whoever comes to the lock later with a slot gives it to
// the next.
func TestCallerLeavesBeforeTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		g, seen, l, first, second := raceSetup(t, ctx)
		cancel()
		l.Release()
		second.granted(t, 0)
		first.refused(t, Canceled, 0)
		shows(t, g, "1/1, accepted 2, canceled 1")
		if seen.count(Canceled) != 1 || seen.count(Accepted) != 1 {
			t.Errorf("events %v, want one canceled and one accepted", seen.seen)
		}
		second.lease.Release()
	})
}

// A grant that came just before the patience ended stands, though the timer fires
// before the caller hears of it.
func TestTimerFiresAfterTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, seen, l, first, second := raceSetup(t, context.Background())
		g.lock()
		giveBackLocked(t, l)
		time.Sleep(time.Second) // the instant at which both patiences end
		untilSomebodyLocks(1)
		g.unlock()
		first.granted(t, time.Second)
		second.refused(t, RejectedTimeout, time.Second)
		shows(t, g, "1/1, accepted 2, timeout 1")
		if seen.count(RejectedTimeout) != 1 || seen.count(Accepted) != 1 {
			t.Errorf("events %v, want one timeout and one accepted", seen.seen)
		}
		first.lease.Release()
		admitsFullSet(t, g)
	})
}

// A slot that comes at the very instant at which the patience ends, or after it
// although no timer has said so, is not for the one whose time is up.
func TestGrantComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _, l, first, second := raceSetup(t, context.Background())
		g.lock()
		time.Sleep(time.Second)
		untilSomebodyLocks(1)
		giveBackLocked(t, l)
		g.unlock()
		first.refused(t, RejectedTimeout, time.Second)
		second.refused(t, RejectedTimeout, time.Second)
		shows(t, g, "0/1, accepted 1, timeout 2")
		admitsFullSet(t, g)
	})
}

// A drain after the grant leaves it alone and waits for it; the one behind is
// refused.
func TestDrainAfterTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, seen, l, first, second := raceSetup(t, context.Background())
		g.lock()
		giveBackLocked(t, l)
		drained := drainAt(context.Background(), g)
		untilSomebodyLocks(1)
		g.unlock()
		first.granted(t, 0)
		second.refused(t, RejectedDraining, 0)
		drained.goesOn(t)
		first.lease.Release()
		drained.returns(t, "", 0)
		shows(t, g, "0/1, accepted 2, draining 1")
		if seen.count(RejectedDraining) != 1 || seen.count(Accepted) != 1 {
			t.Errorf("events %v", seen.seen)
		}
	})
}

// All at once, many times: whoever wins, the slot is used or there.
func TestGrantRacesWithEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &decisionsSeen{}
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Millisecond, MaxWaiting: 5, Observers: []Observer{seen}})
		const rounds = 500
		for range rounds {
			l := take(t, g, 1)
			ctx, cancel := context.WithCancel(context.Background())
			a := queued(t, ctx, g, Call{})
			b := queued(t, context.Background(), g, Call{})
			time.AfterFunc(time.Millisecond, cancel)
			time.AfterFunc(time.Millisecond, l.Release)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if !a.done() || !b.done() {
				t.Fatal("somebody still waits")
			}
			a.lease.Release()
			b.lease.Release()
			cancel()
		}
		st := g.Stats()
		if st.Decisions() != 3*rounds || uint64(len(seen.seen)) != 3*rounds || st.InUse != 0 || st.StaleReleases != 0 {
			t.Errorf("%d decisions, %d events, want %d: %+v", st.Decisions(), len(seen.seen), 3*rounds, st)
		}
		admitsFullSet(t, g)
	})
}

// An alarm that was set anew, or taken off, and rings all the same does nothing.
func TestAlarmThatIsNoMoreDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Second})
		l := take(t, g, 1)
		at := queued(t, context.Background(), g, Call{})
		set := g.alarm.set
		g.alarm.rang(g, &setting{})
		if set == nil || g.alarm.set != set {
			t.Errorf("the alarm is %v, was %v", g.alarm.set, set)
		}
		l.Release()
		at.granted(t, 0)
		if g.alarm.set != nil {
			t.Error("the alarm is set though nobody waits")
		}
		g.alarm.rang(g, set)
		at.lease.Release()
	})
}

// sleeper is a context that counts how often its call looks at it: once to begin to
// wait, and once for each time it wakes.
type sleeper struct {
	context.Context
	looks, waits atomic.Int64
}

func (s *sleeper) Err() error {
	s.looks.Add(1)
	return nil
}

func (s *sleeper) Done() <-chan struct{} {
	s.waits.Add(1)
	return make(chan struct{})
}

// QU-16: one release wakes one waiter. A waiter that wakes in vain would look at its
// context again, and wait on it again.
func TestQU16OneWakeUpForOneRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 5000
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: callers})
		l := take(t, g, 1)
		line := make([]*attempt, callers)
		eyes := make([]*sleeper, callers)
		for i := range line {
			eyes[i] = &sleeper{Context: context.Background()}
			line[i] = attemptAt(eyes[i], g, Call{})
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		woken := func() (looks, waits int64) {
			for _, e := range eyes {
				looks += e.looks.Load()
				waits += e.waits.Load()
			}
			return looks, waits
		}
		looks, waits := woken()
		if waits != callers {
			t.Fatalf("%d calls wait, want %d", waits, callers)
		}
		for range 50 {
			l.Release()
			synctest.Wait()
			l = Lease{}
			for i, at := range line {
				if at.done() {
					l, line = at.lease, append(line[:i:i], line[i+1:]...)
					break
				}
			}
		}
		l.Release()
		looksAfter, waitsAfter := woken()
		if waitsAfter != callers || looksAfter-looks > 51 {
			t.Errorf("51 releases: %d looks at a context, %d new waits; want about one look each and none", looksAfter-looks, waitsAfter-waits)
		}
		drained := drainAt(context.Background(), g) // lets the others go
		synctest.Wait()
		for _, at := range line {
			at.lease.Release()
		}
		drained.returns(t, "", 0)
	})
}

// QU-17: a patience of 0 or none refuses at once, one of 1 ns waits for that long,
// a negative one is a mistake. Who waits does nothing at all: otherwise
// synctest.Wait would not return, nor would an hour of virtual time pass.
func TestQU17PatienceOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []Config{{MaxInFlight: 1}, {MaxInFlight: 1, MaxWait: 0}} {
			g := gateOf(t, c)
			take(t, g, 1)
			attemptAt(context.Background(), g, Call{}).refused(t, RejectedBusy, 0)
		}
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: 1})
		take(t, g, 1)
		at := queued(t, context.Background(), g, Call{})
		time.Sleep(time.Nanosecond)
		at.refused(t, RejectedTimeout, 1)
		_, err := New(Config{MaxInFlight: 1, MaxWait: -1})
		if want := "forebay: MaxWait is -1ns; it must be 0 (refuse at once) or more"; err == nil || err.Error() != want {
			t.Errorf("a negative MaxWait: %v, want %s", err, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 100})
		take(t, g, 1)
		var line []*attempt
		for range 100 {
			line = append(line, queued(t, context.Background(), g, Call{}))
		}
		time.Sleep(time.Hour)
		for _, at := range line {
			at.refused(t, RejectedTimeout, time.Hour)
		}
	})
}
