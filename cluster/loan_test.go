package cluster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"example.com/forebay/internal/feed"
)

// plainGate is a gate as plain as can be: the test says what runs and who waits.
type plainGate struct {
	lent, running, back int
	waiting             []uint64 // numbers of calls in line, each of cost 1
	next                uint64
	returns             bool
	until               time.Time
	alone               *feed.Alone
	limit               int
	slots               []feed.Slot // idle ones
	did                 []string
	lapses              uint64
}

func (g *plainGate) note(format string, args ...any) {
	g.did = append(g.did, fmt.Sprintf(format, args...))
}

func (g *plainGate) Name() string { return "g" }
func (g *plainGate) Limit() int   { return 10 }
func (g *plainGate) Fenced()      {}

func (g *plainGate) Look(after uint64, _ int) feed.View {
	v := feed.View{Slots: g.lent, InFlight: g.running, Back: g.back, Waiting: len(g.waiting), Peak: g.running, Lapses: g.lapses}
	v.BackOf = g.pop(g.back)
	g.back = 0
	for _, n := range g.waiting {
		if n <= after {
			v.Standing = append(v.Standing, feed.Span{First: n, Last: n})
		} else {
			v.Arrived = append(v.Arrived, feed.Run{First: n, Calls: 1, Cost: 1})
		}
	}
	return v
}

func (g *plainGate) Lend(n int, slots []feed.Slot) {
	g.note("lend %d", n)
	g.lent += n
	g.slots = append(g.slots, slots...)
	g.serve()
}

// serve lets in whoever waits and fits.
func (g *plainGate) serve() {
	for len(g.waiting) > 0 && g.running < g.lent {
		g.waiting = g.waiting[1:]
		g.running++
	}
}

func (g *plainGate) Take(n int) (int, []feed.Slot) {
	n = min(n, max(0, g.lent-g.running))
	g.lent -= n
	return n, g.pop(n)
}

func (g *plainGate) pop(n int) []feed.Slot {
	n = min(n, len(g.slots))
	taken := slices.Clone(g.slots[:n])
	g.slots = g.slots[n:]
	return taken
}

func (g *plainGate) Return(on bool) {
	g.returns = on
	if !on {
		g.lent, g.back = g.lent+g.back, 0
		g.serve()
	}
}

func (g *plainGate) Answered(last uint64) { g.note("answered %d", last) }

func (g *plainGate) Renumber() {
	g.note("renumber")
	for i := range g.waiting {
		g.next++
		g.waiting[i] = g.next
	}
}

func (g *plainGate) Renew(until time.Time) { g.until = until }

func (g *plainGate) Lapse() {
	g.note("lapse")
	g.lent, g.back, g.slots = 0, 0, nil
	g.lapses++
}

func (g *plainGate) Alone(a feed.Alone) { g.note("alone %+v", a); g.alone = &a }
func (g *plainGate) Together()          { g.note("together"); g.alone = nil }
func (g *plainGate) SetLimit(n int)     { g.note("limit %d", n); g.limit = n }

// join puts n calls in line.
func (g *plainGate) join(n int) {
	for range n {
		g.next++
		g.waiting = append(g.waiting, g.next)
	}
	g.serve()
}

// end ends n calls.
func (g *plainGate) end(n int) {
	g.running -= n
	if g.returns {
		g.lent -= n
		g.back += n
	}
	g.serve()
}

// bench is a loan, its gate, and a clock.
type bench struct {
	*testing.T
	*loan
	gate *plainGate
	now  time.Time
}

func newBench(t *testing.T, terms Terms) *bench {
	g := &plainGate{}
	if terms.IdleHold == 0 {
		terms.IdleHold = defaultIdleHold
	}
	l := newLoan(g, Request{Key: "k", Instance: "i", Limit: 10, Lease: defaultLease}, terms)
	return &bench{t, l, g, time.Now()}
}

// asks expects a request now.
func (b *bench) asks() *Request {
	b.Helper()
	b.poked = true
	b.now = b.now.Add(10 * time.Millisecond)
	r, _ := b.step(b.now)
	if r == nil {
		b.Fatal("no request")
	}
	return r
}

// told has the ledger answer r, a millisecond later.
func (b *bench) told(r *Request, rep Reply) {
	b.now = b.now.Add(time.Millisecond)
	if rep.Limit == 0 {
		rep.Limit = 10
	}
	if rep.Override == (Override{}) {
		rep.Override.Limit = -1
	}
	rep.Instances = max(rep.Instances, 2)
	b.replied(b.now, r, rep)
}

// started is a bench whose instance holds n units, of which all are in use.
func started(t *testing.T, terms Terms, n int) *bench {
	b := newBench(t, terms)
	b.gate.join(n)
	b.told(b.asks(), Reply{Epoch: 5, Granted: uint64(n), Contended: true, Heard: b.gate.next})
	if b.gate.running != n || b.held() != n {
		t.Fatalf("%d run, %d are held", b.gate.running, b.held())
	}
	return b
}

var errLostReply = errors.New("lost")

// TestLeaseBeginsBeforeSending: what an exchange is good for counts from before it was
// sent, however late the answer comes.
func TestLeaseBeginsBeforeSending(t *testing.T) {
	b := started(t, Terms{}, 1)
	r := b.asks()
	sent := b.now
	b.now = b.now.Add(90 * time.Millisecond)
	b.told(r, Reply{Epoch: 5, Granted: 1})
	if got := b.gate.until; !got.Equal(sent.Add(defaultLease)) {
		t.Errorf("until %v after it was sent", got.Sub(sent))
	}
}

// TestSuspendedMachine: the wall clock ends a lease as well, although the monotonic one
// stood still; and a wall clock that was set back does not make it longer.
func TestSuspendedMachine(t *testing.T) {
	b := started(t, Terms{}, 1)
	if !b.valid(b.now) || b.valid(walled(b.now, time.Hour)) {
		t.Error("the lease outlives an hour of the wall clock")
	}
	if b.valid(walled(b.now.Add(time.Hour), -time.Hour)) {
		t.Error("the lease outlives an hour of the monotonic clock")
	}
}

// walled moves the wall clock of a time, and not its monotonic one.
func walled(t time.Time, d time.Duration) time.Time {
	t = t.Add(d)
	type parts struct { // of a time.Time that has both
		wall uint64
		ext  int64 // the monotonic clock, in ns
	}
	(*parts)(unsafe.Pointer(&t)).ext -= int64(d)
	return t
}

// TestAmbiguousReturns: what an exchange took back of which nothing was heard is neither
// used nor claimed any more; what was given back later is.
func TestAmbiguousReturns(t *testing.T) {
	b := started(t, Terms{}, 6)
	b.gate.end(2)
	b.asks() // it takes 2 back, and is lost
	b.gate.end(1)
	b.now = b.now.Add(time.Millisecond)
	b.failed(b.now, errLostReply)
	if b.gate.lent != 4 || b.gate.returns {
		t.Errorf("%d are lent, of the 4 that are surely ours; returns: %v", b.gate.lent, b.gate.returns)
	}
	b.now = b.now.Add(time.Second)
	r := b.asks()
	if r.Claim != 4 || r.Returned != 2 {
		t.Errorf("claims %d, returned %d", r.Claim, r.Returned)
	}
	b.told(r, Reply{Epoch: 9, Granted: 4, Learning: time.Second})
	if b.gate.lent != 4 || b.held() != 4 {
		t.Errorf("%d are lent, %d are held", b.gate.lent, b.held())
	}
}

// TestClaimsWhatItWasGivingBack: what a request gives back for the first time is claimed
// by it as well, and used again if the ledger has lost everything.
func TestClaimsWhatItWasGivingBack(t *testing.T) {
	b := started(t, Terms{}, 6)
	b.gate.end(4)
	b.gate.join(3)
	r := b.asks()
	if r.Claim != 6 || r.Returned != 4 {
		t.Errorf("claims %d, returned %d", r.Claim, r.Returned)
	}
	b.told(r, Reply{Epoch: 9, Granted: 6, Heard: b.gate.next, Queued: 3, Learning: time.Second})
	if b.gate.running != 5 || b.gate.lent != 6 || b.gate.returns {
		t.Errorf("%d run, %d are lent; returns: %v", b.gate.running, b.gate.lent, b.gate.returns)
	}
}

// TestEarlierClaimIsNotUsed: the ledger counts more as ours than was claimed, because an
// earlier claim came through: part of it may have gone to others.
func TestEarlierClaimIsNotUsed(t *testing.T) {
	b := started(t, Terms{}, 6)
	b.gate.end(4)
	b.asks() // claims 6, and came through in both epochs; the answer is lost
	b.failed(b.now, errLostReply)
	b.now = b.now.Add(time.Second)
	r := b.asks()
	b.told(r, Reply{Epoch: 9, Granted: 6, Learning: time.Second})
	if b.gate.lent != 2 || b.held() != 2 {
		t.Errorf("%d are lent, %d are held, of the 2 that are surely ours", b.gate.lent, b.held())
	}
	if r := b.asks(); r.Granted-r.Returned != 2 || r.Claim != 2 {
		t.Errorf("says that it holds %d and claims %d", r.Granted-r.Returned, r.Claim)
	}
}

// TestPushedJustBeforeTheLoss: units that were pushed while a claim was under way are
// claimed once more, and given up if the ledger does not have them then.
func TestPushedJustBeforeTheLoss(t *testing.T) {
	for _, accepted := range []bool{true, false} {
		b := started(t, Terms{}, 3)
		b.gate.join(2)
		r := b.asks()
		b.hear(News{Kind: 'g', Epoch: 5, Granted: 5})
		b.told(r, Reply{Epoch: 9, Granted: 3, Heard: b.gate.next, Learning: time.Second})
		if b.gate.lent != 5 {
			t.Errorf("%d are lent while the rest is claimed", b.gate.lent)
		}
		r = b.asks()
		if r.Claim != 5 || r.Granted != 3 {
			t.Errorf("claims %d of %d", r.Claim, r.Granted)
		}
		granted := uint64(3)
		if accepted {
			granted = 5
		}
		b.told(r, Reply{Epoch: 9, Granted: granted, Learning: time.Second})
		if b.gate.lent != int(granted) || slices.Contains(b.gate.did, "lapse") == accepted {
			t.Errorf("accepted %v: %d are lent after %v", accepted, b.gate.lent, b.gate.did)
		}
	}
}

// TestLostUnitsAreGivenUp: what the ledger has given to others is used no more.
func TestLostUnitsAreGivenUp(t *testing.T) {
	b := started(t, Terms{}, 3)
	b.gate.join(2)
	b.told(b.asks(), Reply{Epoch: 5, Granted: 9, Returned: 8, Lost: 3, Heard: b.gate.next, Queued: 1})
	if !slices.Contains(b.gate.did, "lapse") || b.gate.lent != 1 || b.held() != 1 {
		t.Errorf("%d are lent, %d are held after %v", b.gate.lent, b.held(), b.gate.did)
	}
	if r := b.asks(); r.Spare != 2 || r.InUse != 3 {
		t.Errorf("wants %d for %d that run on 1", r.Spare, r.InUse)
	}
}

// TestUnitsThatWentElsewhere: what the ledger counts as returned, or does not know, is not
// used any more; each of the two says so alone.
func TestUnitsThatWentElsewhere(t *testing.T) {
	for what, rep := range map[string]Reply{
		"given up": {Epoch: 5, Granted: 3, Returned: 3},
		"unknown":  {Epoch: 5, Lost: 3},
		"of an epoch that is over, and another lends already": {Epoch: 6},
	} {
		b := started(t, Terms{}, 3)
		if b.told(b.asks(), rep); b.held() != 0 || b.gate.lent != 0 || b.gate.lapses != 1 {
			t.Errorf("%s: %d are held, %d lent, after %d lapses", what, b.held(), b.gate.lent, b.gate.lapses)
		}
	}
}

// TestPushedWhileAsking: a push is newer than the answer that was under way.
func TestPushedWhileAsking(t *testing.T) {
	b := started(t, Terms{}, 1)
	r := b.asks()
	b.hear(News{Kind: 'g', Epoch: 5, Granted: 3})
	if b.told(r, Reply{Epoch: 5, Granted: 1}); b.held() != 3 || b.gate.lent != 3 {
		t.Errorf("%d are held, %d lent; want 3", b.held(), b.gate.lent)
	}
}

// TestWithheldAsHeard: the ledger withholds for as long as the request said, and not as the
// terms say by the time of its answer.
func TestWithheldAsHeard(t *testing.T) {
	b := started(t, Terms{}, 1)
	b.setTerms(b.now, Terms{Withhold: time.Minute})
	r := b.asks()
	b.setTerms(b.now, Terms{Withhold: time.Hour})
	b.told(r, Reply{Epoch: 5, Granted: 1, Share: 5})
	if got := b.shareEnds().Sub(b.until); got != time.Minute {
		t.Errorf("a share ends %v after the lease, want a minute", got)
	}
}

// TestForgottenCallsAreToldAgain: calls that the ledger has heard of and does not know any
// more get new numbers, at once in a new epoch.
func TestForgottenCallsAreToldAgain(t *testing.T) {
	b := started(t, Terms{}, 2)
	b.gate.join(3)
	r := b.asks()
	if calls(r.Arrived) != 3 {
		t.Fatalf("%+v", r.Arrived)
	}
	b.told(r, Reply{Epoch: 5, Granted: 2, Heard: 5, Queued: 3})
	r = b.asks()
	b.told(r, Reply{Epoch: 9, Granted: 2, Heard: 5, Learning: time.Second})
	r = b.asks()
	if calls(r.Arrived) != 3 || r.Arrived[0].First != 6 {
		t.Errorf("told are %+v", r.Arrived)
	}
	b.told(r, Reply{Epoch: 9, Granted: 2, Heard: 8, Queued: 3, Learning: time.Second})
	if r := b.asks(); calls(r.Arrived) != 0 || spanned(r.Standing) != 3 {
		t.Errorf("told are %+v and %+v", r.Arrived, r.Standing)
	}
}

// TestRecallWhileAsking: somebody waits elsewhere, and says so while an answer is under way
// that does not know it yet.
func TestRecallWhileAsking(t *testing.T) {
	b := started(t, Terms{}, 2)
	r := b.asks()
	b.hear(News{Kind: 'c'})
	b.told(r, Reply{Epoch: 5, Granted: 2})
	if !b.gate.returns {
		t.Error("what ends stays here although somebody waits elsewhere")
	}
	b.told(b.asks(), Reply{Epoch: 5, Granted: 2})
	if b.gate.returns {
		t.Error("what ends goes back although nobody waits")
	}
}

// TestOldPushes: a push counts once, of this epoch only, and in any order.
func TestOldPushes(t *testing.T) {
	b := started(t, Terms{}, 2)
	for _, n := range []News{
		{Kind: 'g', Epoch: 5, Granted: 4}, {Kind: 'g', Epoch: 5, Granted: 4}, {Kind: 'g', Epoch: 5, Granted: 3},
		{Kind: 'g', Epoch: 4, Granted: 9}, {Kind: 'g', Epoch: 6, Granted: 9},
	} {
		b.hear(n)
	}
	if b.gate.lent != 4 {
		t.Errorf("%d are lent", b.gate.lent)
	}
}

// TestAcknowledges: pushes are acknowledged before the ledger stops to push.
func TestAcknowledges(t *testing.T) {
	b := started(t, Terms{}, 2)
	b.told(b.asks(), Reply{Epoch: 5, Granted: 2})
	b.hear(News{Kind: 'g', Epoch: 5, Granted: 4})
	if b.poked {
		t.Error("two pushes want an exchange of their own")
	}
	b.hear(News{Kind: 'g', Epoch: 5, Granted: 5})
	if !b.poked {
		t.Error("three pushes want none")
	}
}

// TestOwnLimitIsNotUndone: an answer that is older than the limit that was set here does
// not bring the old one back.
func TestOwnLimitIsNotUndone(t *testing.T) {
	b := started(t, Terms{}, 2)
	r := b.asks()
	b.setLimit(b.now, 4, 0)
	b.told(r, Reply{Epoch: 5, Granted: 2, Limit: 10})
	if slices.Contains(b.gate.did, "limit 10") {
		t.Error("the limit goes back to 10")
	}
	r = b.asks()
	if r.Override != (Override{Version: 1, Limit: 4}) {
		t.Errorf("tells %+v", r.Override)
	}
	b.told(r, Reply{Epoch: 5, Granted: 2, Limit: 7, Override: Override{Version: 3, Limit: 7}})
	b.setLimit(b.now, 8, time.Minute)
	if r := b.asks(); r.Override.Version != 4 || r.Override.Limit != 8 || r.Override.For > time.Minute || r.Override.For < 59*time.Second {
		t.Errorf("tells %+v", r.Override)
	}
}

// TestHeardOfNobody: a ledger says that it has heard of calls that there never were. Those
// that come later are told all the same.
func TestHeardOfNobody(t *testing.T) {
	b := started(t, Terms{}, 1)
	b.told(b.asks(), Reply{Epoch: 5, Granted: 1, Heard: 1 << 40})
	b.gate.join(1)
	if r := b.asks(); len(r.Arrived) != 1 {
		t.Errorf("it is told of %v, and of %v as if it had heard", r.Arrived, r.Standing)
	}
}

// TestSlowStore: while an exchange takes long, what ends is used here again, up to a fair
// share; the rest goes back.
func TestSlowStore(t *testing.T) {
	b := started(t, Terms{}, 6)
	b.told(b.asks(), Reply{Epoch: 5, Granted: 6, Contended: true, Share: 3})
	b.gate.join(6)
	b.asks()
	b.gate.end(5)
	b.late(b.now.Add(keepAfter))
	if b.gate.lent != 3 || b.gate.running != 3 {
		t.Errorf("%d are lent and %d run, of a share of 3", b.gate.lent, b.gate.running)
	}
	if b.gate.end(1); b.gate.lent != 3 {
		t.Errorf("a call ends, and %d stay here", b.gate.lent)
	}
}

// TestLentBeforeTogether: who goes on alone has nothing lent while it does, and gets what
// the ledger lends before it stops doing so.
func TestLentBeforeTogether(t *testing.T) {
	b := started(t, Terms{WhenAway: Open}, 3)
	for range 2 {
		b.asks()
		b.now = b.now.Add(time.Second)
		b.failed(b.now, errLostReply)
	}
	b.now = b.now.Add(time.Second)
	b.gate.did = nil
	b.step(b.now)
	r := b.asks()
	if r.Spare != 3 || r.Claim != 0 {
		t.Errorf("wants %d, claims %d", r.Spare, r.Claim)
	}
	b.told(r, Reply{Epoch: 5, Granted: 9, Returned: 6, Lost: 3})
	if want := "[lapse alone {Refuse:false Slots:10} lend 3 together answered 3]"; fmt.Sprint(b.gate.did) != want {
		t.Errorf("did %v, want %s", b.gate.did, want)
	}
}

// TestSubscribedLate: what was published before a subscription began is asked for.
func TestSubscribedLate(t *testing.T) {
	b := started(t, Terms{}, 1)
	b.told(b.asks(), Reply{Epoch: 5, Granted: 1})
	b.hearing(b.now, true)
	if !b.poked {
		t.Error("nothing is asked")
	}
}

// withheld is a bench whose instance goes on with its share, which is withheld for a minute.
func withheld(t *testing.T) *bench {
	b := newBench(t, Terms{Withhold: time.Minute})
	b.me.Withhold = time.Minute
	b.told(b.asks(), Reply{Epoch: 5, Clock: 1, Share: 3})
	b.hear(News{Kind: 'n', Count: 1})
	for b.now = b.now.Add(time.Second / 10); b.gate.alone == nil; b.now = b.now.Add(time.Second / 10) {
		if r, _ := b.step(b.now); r != nil {
			b.failed(b.now, errLostReply)
		}
	}
	if since := b.now.Sub(b.lastAt); b.gate.alone.Slots != 3 || since < 8*defaultLease/5 {
		t.Fatalf("%+v after %v", b.gate.alone, since)
	}
	return b
}

// TestTellsOfItsShare: who uses its share says so until all that runs is lent to it, and
// names an answer from then on.
func TestTellsOfItsShare(t *testing.T) {
	b := newBench(t, Terms{Withhold: time.Minute})
	b.me.Withhold = time.Minute
	if r := b.asks(); r.Contact >= 0 || r.Share != 0 {
		t.Errorf("who knows of nothing tells %d, %d", r.Contact, r.Share)
	}
	b = withheld(t)
	b.probe(b.now)
	for _, c := range []struct {
		granted uint64
		pause   time.Duration
		contact int64
		share   int
	}{{0, 0, 0, 3}, {1, time.Second, 0, 3}, {1, 0, 0, 2}, {2, 0, 0, 2}, {2, 0, 50, 1}} {
		r := b.asks()
		if r.Contact != c.contact || r.Share != c.share {
			t.Errorf("it tells %d and %d, not %+v", r.Contact, r.Share, c)
		}
		b.gate.running = 2
		b.now = b.now.Add(c.pause)
		b.told(r, Reply{Epoch: 5, Granted: c.granted, Share: 1, Clock: 50})
		if c.granted == 0 && !b.gate.until.Equal(b.until.Add(time.Minute)) {
			t.Errorf("while it rejoins, the gate ends its share %v late", b.gate.until.Sub(b.until.Add(time.Minute)))
		}
		if c.pause > 0 && !b.poked {
			t.Error("that it is back is told no sooner than anything else")
		}
	}
	if b.gate.alone != nil {
		t.Error("it still goes on alone")
	}
	b.gate.running = 3
	if b.told(b.asks(), Reply{Epoch: 5, Granted: 2, Share: 3, Clock: 5000}); b.poked {
		t.Error("what runs beside what is lent asks without end")
	}
}

// TestShareEndsByItself: as the ledger was told, whatever the terms say meanwhile, and by
// either clock.
func TestShareEndsByItself(t *testing.T) {
	b := withheld(t)
	over := b.until.Add(time.Minute)
	if !b.gate.until.Equal(over) {
		t.Errorf("the gate ends it %v late", b.gate.until.Sub(over))
	}
	b.setTerms(b.now, Terms{Withhold: time.Hour})
	if got := b.shareEnds(); !got.Equal(over) {
		t.Errorf("it ends %v late", got.Sub(over))
	}
	woken := b.now.Round(0).Add(2 * time.Minute) // it has no monotonic clock, as if that stood still
	b.step(woken)
	if !b.gate.alone.Refuse || b.gate.lapses != 1 {
		t.Errorf("it goes on after two minutes of the wall clock")
	}
	b.probe(b.now)
	if r := b.asks(); r.Contact >= 0 || r.Share != 0 {
		t.Errorf("afterwards it tells %d, %d", r.Contact, r.Share)
	}
}
