package forebay

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The border between slots that are lent and slots that the machine counts.
//
// A caller who finds a slot reads open, swaps, and reads open again. A caller who
// gives one back does the same. Between any two of these the gate may be locked,
// take its room back slot by slot, decide, and lend again. What must hold is that
// with the lock free and nothing lent, the machine counts exactly what is not
// closed: then no slot is used twice, and none is lost.
//
// Only a swap that comes behind the pass of a collect, and before the next loan, is
// a danger: nobody will look at that slot again. A claim finds a free slot there
// only if it was freed behind the pass as well, since the pass has closed all that
// were free. Both who freed it and who claimed it then read open as 0 (or a loan has
// begun, and its collect will look) and bring it to the lock. Whoever comes first
// settles it: takeFreed closes a slot that is still free; confirm takes back a claim
// that the machine has not seen, and gives the machine the release. The other finds
// it done. A word names one generation, so neither can mistake a later use for its
// own.

// machineCounts checks what the machine counts against the slots.
func machineCounts(t testing.TB, g *Gate) {
	t.Helper()
	units, calls := 0, 0
	for tab := g.slots.table.Load(); tab != nil; tab = tab.older.Load() {
		for i := range tab.slots {
			sl := &tab.slots[i]
			if w := sl.word.Load(); stateOf(w) != slotClosed {
				calls++
				units += max(1, sl.wide)
			}
		}
	}
	if g.machine.InFlight() != units || g.machine.Calls() != calls {
		t.Errorf("the machine counts %d units in %d calls, the slots say %d in %d", g.machine.InFlight(), g.machine.Calls(), units, calls)
	}
}

func TestConfirmOfAClaimThatTheMachineHasSeen(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 2})
	sl, word := g.slots.find(slotHeld)
	g.lock() // takes the room back behind the claim
	g.unlock()
	if !g.confirm(sl, word) {
		t.Fatal("a claim that was counted does not stand")
	}
	machineCounts(t, g)
	shows(t, g, "1/2, accepted 1")
	Lease{sl, word}.Release()
	shows(t, g, "0/2, accepted 1")
}

// freedBehindThePass returns a gate whose machine still counts a slot that its
// lease, given back behind the pass of a collect, has left free, and that word.
func freedBehindThePass(t testing.TB, c Config) (*Gate, *slot, uint64) {
	g := gateOf(t, c)
	l := take(t, g, 1)
	g.lock()
	g.unlock()
	if g.slots.open.Load() != 0 || !l.slot.free(l.word) {
		t.Fatal("the gate lends, or the lease is not out")
	}
	return g, l.slot, with(l.word, slotFree)
}

func TestConfirmOfAClaimBehindThePass(t *testing.T) {
	for _, freedFirst := range []bool{false, true} {
		g, sl, freed := freedBehindThePass(t, Config{MaxInFlight: 1})
		word, ok := sl.claim(slotHeld)
		if !ok {
			t.Fatal("the slot is not free")
		}
		if freedFirst {
			g.takeFreed(sl, freed)
			machineCounts(t, g)
		}
		if g.confirm(sl, word) {
			t.Error("a claim that the machine has not seen stands")
		}
		machineCounts(t, g)
		g.takeFreed(sl, freed)
		machineCounts(t, g)
		shows(t, g, "0/1, accepted 1")
		admitsFullSet(t, g)
	}
}

func TestFreedBehindThePassGoesToTheMachine(t *testing.T) {
	g, sl, freed := freedBehindThePass(t, Config{MaxInFlight: 1})
	machineCounts(t, g)
	g.takeFreed(sl, freed)
	machineCounts(t, g)
	if _, ok := sl.claim(slotHeld); ok {
		t.Error("a slot of the machine's can be claimed")
	}
	g.takeFreed(sl, freed) // once is enough
	shows(t, g, "0/1, accepted 1")
	admitsFullSet(t, g)
}

// A claim behind the pass does not overtake who has joined the line meanwhile.
func TestClaimBehindThePassDoesNotBarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, sl, freed := freedBehindThePass(t, Config{MaxInFlight: 1, MaxWait: time.Hour})
		waits := queued(t, context.Background(), g, Call{})
		word, _ := sl.claim(slotHeld)
		if g.confirm(sl, word) {
			t.Error("the claim overtook who waits")
		}
		waits.granted(t, 0)
		g.takeFreed(sl, freed)
		shows(t, g, "1/1, accepted 2")
		waits.lease.Release()
		machineCounts(t, g)
	})
}

func tablesOf(g *Gate) (sizes []int) {
	for t := g.slots.table.Load(); t != nil; t = t.older.Load() {
		sizes = append(sizes, len(t.slots))
	}
	return sizes
}

func TestTablesGrowAndOldOnesGo(t *testing.T) {
	for _, c := range []Config{{MaxInFlight: 100}, {MaxInFlight: 100, Track: true}} {
		g := gateOf(t, c)
		var leases []Lease
		for range 100 {
			leases = append(leases, take(t, g, 1))
		}
		if n := len(tablesOf(g)); n < 2 {
			t.Fatalf("tables %v: nothing grew", tablesOf(g))
		}
		shows(t, g, "100/100, accepted 100")
		for i, l := range leases { // also those of the old tables are known
			if !l.Live() || i%2 == 0 {
				l.Release()
			}
		}
		shows(t, g, "50/100, accepted 100")
		machineCounts(t, g)
		for _, l := range leases {
			l.Release()
		}
		shows(t, g, "0/100, accepted 100, stale 50")
		admitsFullSet(t, g)
		take(t, g, 1).Release()
		g.lock()
		g.unlock()
		if n := len(tablesOf(g)); n != 1 {
			t.Errorf("tables %v; want one once all leases are back", tablesOf(g))
		}
	}
}

// A lease of an old table, given back while slots are lent, leaves a slot that
// nobody looks for; its room comes back with the next collect.
// A table that goes leaves a gap in the sizes of those that stay.
func TestATableGoesBetweenTwoThatStay(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 200})
	oldest := take(t, g, 1)
	var leases []Lease
	for range 150 {
		leases = append(leases, take(t, g, 1))
	}
	for _, l := range leases[:len(leases)-1] {
		l.Release()
	}
	for range 2 { // the first time it goes, the second time it is missed
		take(t, g, 1).Release()
		g.lock()
		g.unlock()
	}
	shows(t, g, "2/200, accepted 153")
	machineCounts(t, g)
	oldest.Release()
	leases[len(leases)-1].Release()
	shows(t, g, "0/200, accepted 153")
}

func TestReleaseIntoAnOldTable(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 20})
	var leases []Lease
	for range 16 {
		leases = append(leases, take(t, g, 1))
	}
	leases = append(leases, take(t, g, 1)) // grows, and lends what is left
	if len(tablesOf(g)) != 2 || g.slots.open.Load() == 0 {
		t.Fatalf("tables %v, open %d", tablesOf(g), g.slots.open.Load())
	}
	for _, l := range leases {
		l.Release()
	}
	admitsFullSet(t, g)
	machineCounts(t, g)
}

func TestWideLeasesAcrossALoan(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 10})
	wide := take(t, g, 4)
	for range 3 {
		take(t, g, 1).Release() // lends again each time
		if g.slots.open.Load() == 0 {
			t.Fatal("nothing is lent")
		}
		if st := g.Stats(); st.InUse != 4 || st.Calls != 1 || st.Available != 6 {
			t.Errorf("%+v, want 4 units in 1 call", st)
		}
		machineCounts(t, g)
	}
	narrow := take(t, g, 1)
	again := take(t, g, 5)
	shows(t, g, "10/10, accepted 6")
	wide.Release()
	wide.Release()
	narrow.Release()
	shows(t, g, "5/10, accepted 6, stale 1")
	again.Release()
	admitsFullSet(t, g)
}

// What is lent grows with every loan up to a bound, and never beyond the room.
func TestLentBatches(t *testing.T) {
	free := func(g *Gate) (n int) {
		for tab := g.slots.table.Load(); tab != nil; tab = tab.older.Load() {
			for i := range tab.slots {
				if stateOf(tab.slots[i].word.Load()) == slotFree {
					n++
				}
			}
		}
		return n
	}
	g := gateOf(t, Config{MaxInFlight: 10_000})
	for _, want := range []int{16, 32, 64, 128, 256, 256} {
		if n := free(g); n != want {
			t.Errorf("%d slots are lent, want %d", n, want)
		}
		g.lock()
		g.lend = true
		g.unlock()
	}
	small := gateOf(t, Config{MaxInFlight: 5})
	l := take(t, small, 2)
	take(t, small, 1).Release()
	if n := free(small); n != 3 {
		t.Errorf("%d slots are lent, want the room of 3", n)
	}
	l.Release()
}

// Slots of leases that are out are within reach once they are given back.
func TestOpenReachesWhatIsOut(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 3})
	leases := []Lease{take(t, g, 1), take(t, g, 1), take(t, g, 1)}
	top := 0
	for _, l := range leases {
		top = max(top, l.slot.index+1)
	}
	for _, l := range leases {
		if l.slot.index+1 < top {
			l.Release()
		}
	}
	g.lock()
	g.lend = true
	g.unlock()
	if open := int(g.slots.open.Load()); open != top {
		t.Errorf("%d slots are looked through, want %d", open, top)
	}
}

// The second look of a release: slots were lent when it looked first, and the
// machine has counted its lease as out before the swap.
func TestFreeLooksAgain(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	l := take(t, g, 1)
	g.lock()
	g.unlock()
	l.endFree()
	machineCounts(t, g)
	shows(t, g, "0/1, accepted 1")
	admitsFullSet(t, g)
}
