package forebay

import (
	"math/rand/v2"
	"testing"
	"time"

	"example.com/forebay/internal/admit"
)

// world is a gate with a few callers of which each is somewhere in the middle of
// what it does. A step is what happens between two accesses to memory that others
// see; the steps are those of fast, confirm, end, takeFreed, lock and unlock, one
// after the other. In which order the callers take theirs is random.
type world struct {
	*testing.T
	g       *Gate
	rng     *rand.Rand
	now     time.Time
	locked  bool
	callers []*caller
	running int // units whose callers know that they have them
	bound   int // what running must not exceed: the limit, or what ran when it shrank
	granted int // leases that callers got
	told    []string
}

type caller struct {
	name  string
	next  step // nil: nothing to do
	lease Lease
	cost  int
	line  *waiting
}

// step does one thing and says what comes next. blocked means: not yet.
type step func() (next step, blocked bool)

func do(f func() step) step { return func() (step, bool) { return f(), false } }

// acquire is Acquire: fast, then confirm, then the machine.
func (w *world) acquire(c *caller, cost int) step {
	c.cost = cost
	s := &w.g.slots
	if cost > 1 {
		return w.askMachine(c)
	}
	return do(func() step {
		open := int(s.open.Load())
		if open == 0 {
			return w.askMachine(c)
		}
		return do(func() step {
			table := s.table.Load().slots
			open = min(open, len(table))
			return w.findFrom(c, table, w.rng.IntN(open), open, open)
		})
	})
}

func (w *world) findFrom(c *caller, table []slot, i, open, left int) step {
	if left == 0 {
		return w.askMachine(c)
	}
	return do(func() step {
		sl := &table[i]
		word := sl.word.Load()
		if stateOf(word) != slotFree {
			return w.findFrom(c, table, (i+1)%open, open, left-1)
		}
		return do(func() step {
			claimed := with(word, slotHeld) + slotNext
			if !sl.word.CompareAndSwap(word, claimed) {
				return w.findFrom(c, table, (i+1)%open, open, left-1)
			}
			return do(func() step {
				if w.g.slots.open.Load() != 0 {
					return w.got(c, Lease{sl, claimed})
				}
				return w.confirm(c, sl, claimed)
			})
		})
	})
}

func (w *world) confirm(c *caller, sl *slot, word uint64) step {
	stands := false
	return w.underLock(func() {
		if stands = sl.seen == generationOf(word); !stands {
			sl.seen = generationOf(word)
			w.g.slots.closeLocked(sl, word)
			w.g.machine.Release(w.now, oneUnit, admit.End{})
		}
	}, func() step {
		if stands {
			return w.got(c, Lease{sl, word})
		}
		return w.askMachine(c)
	})
}

func (w *world) askMachine(c *caller) step {
	a := admit.Arrival{Claim: admit.Claim{Cost: c.cost}}
	var v admit.Verdict
	var l Lease
	return w.underLock(func() {
		switch v = w.g.machine.Arrive(w.now, a); v {
		case admit.Granted:
			l = w.g.grantLocked(c.cost, c.cost > 1)
			w.g.lend = c.cost == 1
		case admit.Queued:
			c.line = &waiting{woken: make(chan struct{}, 1), keep: c.cost > 1}
			c.line.Owner = c.line
			w.g.machine.Join(w.now, a, &c.line.Waiter)
		}
	}, func() step {
		switch v {
		case admit.Granted:
			return w.got(c, l)
		case admit.Queued:
			return w.waitFor(c)
		}
		return nil
	})
}

func (w *world) waitFor(c *caller) step {
	return func() (step, bool) {
		select {
		case <-c.line.woken:
			if c.line.Verdict() == admit.Granted {
				return w.got(c, c.line.lease), false
			}
			return nil, false
		default:
			return w.waitFor(c), true
		}
	}
}

func (w *world) got(c *caller, l Lease) step {
	c.lease = l
	w.running += c.cost
	w.granted++
	if w.running > w.bound {
		w.Errorf("%d units run, at most %d may", w.running, w.bound)
	}
	return nil
}

// release is Release: endFree and takeFreed while slots are lent, else endClosed.
func (w *world) release(c *caller) step {
	l, s := c.lease, &w.g.slots
	c.lease = Lease{}
	w.running -= c.cost
	closes := func(word uint64, mustBeMine bool) step {
		return w.underLock(func() {
			mine := s.closeLocked(l.slot, word)
			if mine {
				w.g.machine.Release(w.now, admit.Claim{Cost: c.cost}, admit.End{})
			} else if mustBeMine {
				w.Errorf("a lease is not out that was given once")
			}
		}, func() step { return nil })
	}
	if c.cost > 1 {
		return closes(l.word, true)
	}
	return do(func() step {
		if s.open.Load() == 0 {
			return closes(l.word, true)
		}
		return do(func() step {
			if !l.slot.free(l.word) {
				w.Errorf("a lease is not out that was given once")
			}
			return do(func() step {
				if s.open.Load() == 0 {
					return closes(with(l.word, slotFree), false)
				}
				return nil
			})
		})
	})
}

func (w *world) setLimit(n int) step {
	return w.underLock(func() {
		w.g.machine.SetLimit(w.now, n)
		w.bound = max(w.bound, n)
	}, func() step { return nil })
}

// underLock is lock, body, unlock: the room comes back slot by slot, and is lent
// slot by slot.
func (w *world) underLock(body func(), then func() step) step {
	return func() (step, bool) {
		if w.locked {
			return w.underLock(body, then), true
		}
		w.locked = true
		s := &w.g.slots
		if s.open.Load() == 0 {
			return do(func() step { body(); return w.unlock(then) }), false
		}
		return do(func() step {
			s.open.Store(0)
			loan := s.wide
			s.top = 0
			var inspect func(kept, t *slotTable, i, out int) step
			inspect = func(kept, t *slotTable, i, out int) step {
				switch {
				case t == nil:
					w.g.machine.Collect(loan)
					body()
					return w.unlock(then)
				case i == len(t.slots) && t != s.table.Load() && out == 0:
					kept.older.Store(t.older.Load())
					return inspect(kept, t.older.Load(), 0, 0)
				case i == len(t.slots):
					return inspect(t, t.older.Load(), 0, 0)
				}
				return do(func() step { return inspect(kept, t, i+1, out+s.inspectLocked(&t.slots[i], &loan)) })
			}
			return inspect(s.table.Load(), s.table.Load(), 0, 0)
		}), false
	}
}

func (w *world) unlock(then func() step) step {
	m, s := w.g.machine, &w.g.slots
	decided := m.Decided()
	for d := decided; d != nil; d = d.Next() {
		if d.Verdict() == admit.Granted {
			d.Owner.(*waiting).grantLocked(w.g)
		}
	}
	give := do(func() step {
		w.bound = max(m.Limit(), m.InFlight())
		if s.open.Load() == 0 {
			machineCounts(w, w.g)
		}
		w.locked = false
		wake(decided)
		return then()
	})
	room, ok := m.Lend()
	lend := ok && w.g.lend
	w.g.lend = false
	if !lend {
		return give
	}
	var open func(n int) step
	open = func(n int) step {
		return do(func() step {
			if n == 0 {
				s.open.Store(uint32(s.top))
				return give
			}
			sl := s.popLocked()
			sl.word.Store(with(sl.word.Load(), slotFree))
			return open(n - 1)
		})
	}
	return open(min(room, 16))
}

// begin gives an idle caller something to do.
func (w *world) begin(c *caller) {
	switch n := w.rng.IntN(20); {
	case n == 0:
		w.say(c, "looks")
		c.next = w.underLock(func() {}, func() step { return nil })
	case n == 1:
		limit := w.rng.IntN(4)
		w.say(c, "sets a limit")
		c.next = w.setLimit(limit)
	case c.lease.slot != nil:
		w.say(c, "releases")
		c.next = w.release(c)
	case n == 2:
		w.say(c, "acquires 2")
		c.next = w.acquire(c, 2)
	default:
		w.say(c, "acquires")
		c.next = w.acquire(c, 1)
	}
}

func (w *world) say(c *caller, what string) { w.told = append(w.told, c.name+" "+what) }

// TestInterleavings takes random steps of a few callers and checks after each that
// no more runs than may, and at rest that nothing is lost.
func TestInterleavings(t *testing.T) {
	histories := 1000
	if testing.Short() {
		histories = 200
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for h := range histories {
		interleave(t, rand.New(rand.NewPCG(seed, uint64(h))))
		if t.Failed() {
			t.Fatalf("in history %d of seed %d", h, seed)
		}
	}
}

func interleave(t *testing.T, rng *rand.Rand) {
	g := gateOf(t, Config{MaxInFlight: 1 + rng.IntN(3), MaxWait: time.Hour, MaxWaiting: 9})
	g.slots = slots{gate: g} // a table of one slot, so that it grows
	first := &slotTable{slots: make([]slot, 1)}
	first.slots[0].gate = g
	g.slots.closed = []*slot{&first.slots[0]}
	g.slots.table.Store(first)
	w := &world{T: t, g: g, rng: rng, now: clock(), bound: g.machine.Limit()}
	for i := range 2 + rng.IntN(3) {
		w.callers = append(w.callers, &caller{name: string(rune('a' + i))})
	}
	stay := rng.IntN(10) // how long one goes on before another does
	c := w.callers[0]
	for range 400 {
		if rng.IntN(10) >= stay {
			c = w.callers[rng.IntN(len(w.callers))]
		}
		if c.next == nil {
			w.begin(c)
		}
		var blocked bool
		if c.next, blocked = c.next(); blocked {
			c = w.callers[rng.IntN(len(w.callers))]
		}
		if t.Failed() {
			t.Fatalf("after %v", w.told)
		}
	}
	w.rest()
}

// rest lets everybody finish, with the limit at 3 again, and gives all leases back.
func (w *world) rest() {
	w.callers = append(w.callers, &caller{name: "z", next: w.setLimit(3)})
	for idle := 0; idle < 2; {
		moved := false
		for _, c := range w.callers {
			if c.next == nil && c.lease.slot != nil {
				c.next = w.release(c)
			}
			if c.next != nil {
				var blocked bool
				c.next, blocked = c.next()
				moved = moved || !blocked
			}
		}
		if idle++; moved {
			idle = 0
		}
	}
	for _, c := range w.callers {
		if c.next != nil {
			w.Errorf("%s waits for ever", c.name)
		}
	}
	st := w.g.Stats()
	if st.InUse != 0 || st.Waiting != 0 || st.Granted != st.Released || st.Accepted != uint64(w.granted) {
		w.Errorf("at rest: %+v; callers got %d leases", st, w.granted)
	}
	machineCounts(w, w.g)
	admitsFullSet(w, w.g)
}

// The second looks at open, in the real code: the machine takes its room back
// between a caller's swap and its look.
func TestSecondLooks(t *testing.T) {
	g, err := New(Config{MaxInFlight: 2, Track: true})
	must(err)
	s := g.settings.Load()
	sl, word := g.slots.find(slotBusy)
	if sl == nil {
		t.Fatal("a new gate lends nothing")
	}
	g.Stats() // the machine counts, and has seen the claim
	l := g.claimed(s, &Call{}, sl, word)
	if !l.Live() || g.Stats().InUse != 1 {
		t.Errorf("a claim that the machine has seen: live %v, %d in use", l.Live(), g.Stats().InUse)
	}
	if !l.slot.seize(l.word) {
		t.Fatal("the lease is gone")
	}
	l.putFree() // the first look said lent, the second finds the machine counting
	if st := g.Stats(); st.InUse != 0 || st.Granted != 1 || st.Released != 1 {
		t.Errorf("given back behind the pass: %+v", st)
	}
	admitsFullSet(t, g)
}

// A claim of a slot that was given back behind the machine's pass does not stand.
func TestSecondLookOfAClaimBehindThePass(t *testing.T) {
	g, err := New(Config{MaxInFlight: 1})
	must(err)
	s := g.settings.Load()
	first, _ := g.TryAcquire(Call{})
	g.Stats()                   // the machine counts the lease
	first.slot.free(first.word) // behind the pass; its second look is still to come
	word, ok := first.slot.claim(slotHeld)
	if !ok {
		t.Fatal("the slot is not free")
	}
	if l := g.claimed(s, &Call{}, first.slot, word); l.Live() {
		t.Error("the claim stands, past whatever the machine has decided since")
	}
	g.takeFreed(first.slot, with(first.word, slotFree)) // the second look of the release
	if st := g.Stats(); st.InUse != 0 || st.Granted != st.Released {
		t.Errorf("%+v", st)
	}
	admitsFullSet(t, g)
}
