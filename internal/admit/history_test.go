package admit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// history drives a machine and the model through the same random events and
// compares everything that shows after each.
type history struct {
	t     testing.TB
	next  func(n int) int
	now   time.Time
	m     *Machine
	model *model
	out   []outCall // the leases that are out
	seen  []*modelWaiter
	asked uint64 // calls that arrived; links have no decision of their own
	links uint64
	busy  bool
	log   []string
}

// outCall is a lease that is out.
type outCall struct {
	modelCall
	claim Claim
}

func newHistory(t testing.TB, next func(n int) int) *history {
	h := &history{t: t, next: next, now: time.Unix(0, 0)}
	c := h.config()
	h.m, h.model = New(h.now, c), newModel(c)
	h.busy = h.next(3) == 0
	h.say("new %+v", c)
	return h
}

func (h *history) say(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf("%v ", h.now.Sub(time.Unix(0, 0)))+fmt.Sprintf(format, args...))
}

func (h *history) config() Config {
	c := Config{Limit: 1 + h.next(5), MaxWait: time.Duration(h.next(4)) * 30 * time.Millisecond, Measure: h.next(2) == 0}
	if c.MaxWait > 0 && h.next(2) == 0 {
		c.MaxWaiting = 1 + h.next(5)
	}
	c.MaxCallers = 1 + h.next(3)
	if h.next(2) == 0 {
		c.PerCaller = 1 + h.next(4)
	}
	c.Fair = h.next(2) == 0
	if h.next(2) == 0 {
		c.Lanes = h.lanes(c.Limit)
	}
	if h.model != nil {
		c.Ledger = h.model.cfg.Ledger
	} else {
		c.Ledger = h.next(2) == 0
	}
	return c
}

// lanes are some of three, with something left for whoever has none.
func (h *history) lanes(limit int) (lanes []LaneConfig) {
	left := limit - 1
	for _, name := range []string{"x", "y", "z"}[:1+h.next(3)] {
		c := LaneConfig{Name: name, Rank: 1 + h.next(2)}
		if left > 0 && h.next(2) == 0 {
			c.Reserved = 1 + h.next(left)
			left -= c.Reserved
		}
		if h.next(3) == 0 {
			c.Share = 0.5
		}
		if h.next(3) == 0 {
			c.MaxShare = 0.75
		}
		lanes = append(lanes, c)
	}
	return lanes
}

// pass lets less than so many milliseconds pass.
func (h *history) pass(n int) {
	h.now = h.now.Add(time.Duration(h.next(n)) * time.Millisecond)
	h.model.now = h.now
}

func (h *history) step() {
	if h.busy {
		h.stepBusy()
		return
	}
	h.pass(40)
	if h.model.cfg.Ledger && h.next(3) == 0 {
		h.hearFromLedger()
		h.compare()
		return
	}
	switch h.next(16) {
	case 0, 1, 2, 3, 4, 5:
		h.arrive()
	case 6, 7, 8:
		h.release()
	case 9, 10, 11:
		h.quit()
	case 12:
		h.setLimit()
	case 13:
		h.hearFromLedger()
	case 14:
		h.drainOrConfigure()
	case 15:
		h.lend()
	}
	h.compare()
}

// stepBusy is one of a gate that has more to do than it can, for long.
func (h *history) stepBusy() {
	h.pass(10)
	switch n := h.next(64); {
	case n < 40:
		h.arrive()
	case n < 56:
		h.release()
	case n < 62:
		h.due()
	case h.model.cfg.Ledger:
		h.hearFromLedger()
	case n == 63 && h.next(4) == 0:
		h.drainOrConfigure()
	}
	h.compare()
}

func (h *history) arrive() {
	a := Arrival{Claim: Claim{Cost: 1}, NoWait: h.next(8) == 0, Link: h.next(6) == 0}
	lane := ""
	if l := h.m.Lane(string(rune('w' + h.next(4)))); l != nil {
		a.Lane, lane = l, l.Name
	}
	if h.next(3) == 0 {
		a.Cost = 1 + h.next(6)
	}
	if h.next(5) == 0 {
		a.Deadline = h.now.Add(time.Duration(h.next(6)-1) * 10 * time.Millisecond)
	}
	if a.Link && h.next(2) == 0 {
		a.Until = h.now.Add(time.Duration(h.next(6)) * 10 * time.Millisecond)
	}
	h.asked++
	who := ""
	if h.next(4) > 0 {
		name := string(rune('a' + h.next(4)))
		who, a.Caller = h.model.callerOf(name), h.m.Caller(name)
		if (who == "shared") != (a.Caller == &h.m.callers.shared) {
			h.fail("%s counts as %s, and not in the machine", name, who)
		}
	}
	refuses, sure := h.m.Refuses()
	v, w := arrive(h.m, h.now, a)
	if sure && a.Cost == 1 && a.Deadline.IsZero() && a.Until.IsZero() && v != refuses && h.m.decided == nil {
		h.fail("the machine says that it refuses with %v, and answers %v", refuses, v)
	}
	mv, mw := h.model.arrive(h.now, a, who, lane)
	h.say("arrive %+v of %s -> %v", a, who, v)
	if v != mv || (w == nil) != (mw == nil) {
		h.fail("arrival %+v: machine says %v, model %v", a, v, mv)
	}
	if v == Granted {
		h.granted(modelCall{a.Cost, who, lane}, a.Claim, a.Link)
	}
	if mw != nil {
		mw.w = w
		h.seen = append(h.seen, mw)
	}
}

func (h *history) granted(c modelCall, claim Claim, link bool) {
	h.out = append(h.out, outCall{c, claim})
	if link {
		h.links++
	}
}

func (h *history) release() {
	if len(h.out) == 0 {
		return
	}
	i := h.next(len(h.out))
	c := h.out[i]
	h.out = slices.Delete(h.out, i, i+1)
	if h.next(5) == 0 {
		h.say("unwind %+v", c)
		h.m.Unwind(h.now, c.claim)
		h.model.unwind(h.now, c.modelCall)
		return
	}
	h.say("release %+v", c)
	h.m.Release(h.now, c.claim, End{})
	h.model.release(h.now, c.modelCall)
}

func (h *history) quit() {
	if len(h.seen) == 0 {
		return
	}
	w := h.seen[max(0, len(h.seen)-1-h.next(8))]
	v := []Verdict{Canceled, Deadline}[h.next(2)]
	switch h.next(3) {
	case 0:
		h.say("leave %v", v)
		if got, want := h.m.Leave(h.now, w.w, v), h.model.quit(h.now, w, v); got != want {
			h.fail("Leave = %v, model %v", got, want)
		}
	case 1:
		h.due()
	case 2:
		if w.verdict == Granted {
			// Only a lease that is still out can be disowned, and only once.
			i := slices.IndexFunc(h.out, func(c outCall) bool { return c.cost == w.cost && c.claim == w.w.Claim() })
			if i < 0 {
				return
			}
			h.out = slices.Delete(h.out, i, i+1)
			if w.link {
				h.links--
			}
		}
		h.say("disown %v", v)
		h.m.Disown(h.now, w.w, v)
		h.model.disown(h.now, w, v)
	}
}

func (h *history) due() {
	h.say("due")
	next, ok := h.m.ExpireDue(h.now)
	for _, w := range slices.Clone(h.model.line) {
		if !h.now.Before(w.until) {
			h.model.decide(h.now, w, h.model.late(w))
		}
	}
	h.model.dispatch(h.now)
	h.model.settle(h.now)
	if ok != (len(h.model.line) > 0) {
		h.fail("somebody waits: %v, model has %d", ok, len(h.model.line))
	}
	for _, w := range h.model.line {
		if w.until.Before(next) {
			h.fail("the next wait ends at %v, model knows one at %v", next, w.until)
		}
	}
}

// arrive is an arrival that joins the line if it may.
func arrive(m *Machine, now time.Time, a Arrival) (Verdict, *Waiter) {
	v := m.Arrive(now, a)
	if v != Queued {
		return v, nil
	}
	w := &Waiter{}
	m.Join(now, a, w)
	return v, w
}

func (h *history) setLimit() {
	n := h.next(7)
	h.say("limit %d", n)
	h.m.SetLimit(h.now, n)
	h.model.setLimit(h.now, n)
}

func (h *history) drainOrConfigure() {
	switch h.next(4) {
	case 0:
		h.say("drain")
		h.m.Drain(h.now)
		h.model.drain(h.now)
	case 1, 2:
		h.say("resume")
		h.m.Resume(h.now)
		h.model.draining = false
	case 3:
		c := h.config()
		n := c.Limit
		if h.next(3) == 0 {
			n = h.next(7)
		}
		h.say("configure %+v, limit %d", c, n)
		h.m.Configure(h.now, c, n)
		h.model.configure(c)
		for i := range h.out { // those of a lane that is no more
			if h.model.lanes.of[h.out[i].lane] == nil {
				h.out[i].lane = ""
			}
		}
		for _, w := range h.seen {
			if h.model.lanes.of[w.lane] == nil {
				w.lane = ""
			}
		}
		h.model.setLimit(h.now, n)
	}
}

// lend lets the gate around the machine count for a while.
func (h *history) lend() {
	room, ok := h.m.Lend()
	if !ok {
		return
	}
	if want := min(h.model.limit, h.model.slots()) - h.model.inFlight(); h.model.ledger.returning && !h.model.ledger.away || room != want || room <= 0 || len(h.model.line) > 0 || h.model.draining {
		h.fail("lent %d, model has %d", room, want)
	}
	loan := Loan{Units: h.m.InFlight(), Calls: h.m.Calls()}
	for range h.next(10) {
		if h.next(2) == 0 && room > 0 {
			room--
			h.asked++
			loan.Units, loan.Calls, loan.Grants = loan.Units+1, loan.Calls+1, loan.Grants+1
			h.out = append(h.out, outCall{modelCall{cost: 1}, Claim{Cost: 1}})
			h.model.lanes.log = append(h.model.lanes.log, modelDemand{at: h.m.rate.since, offered: 1})
			h.model.start(h.m.rate.since, 1, false, "", "") // when is not known: as the last event
		} else if i := slices.Index(h.out, outCall{modelCall{cost: 1}, Claim{Cost: 1}}); i >= 0 {
			room++
			h.out = slices.Delete(h.out, i, i+1)
			loan.Units, loan.Calls = loan.Units-1, loan.Calls-1
			h.model.stop(modelCall{cost: 1})
		}
	}
	h.say("lent %+v", loan)
	h.m.Collect(loan)
}

func (h *history) compare() {
	m, want := h.m, h.model
	for w := m.Decided(); w != nil; w = w.Next() {
		if len(want.decided) == 0 {
			h.fail("the machine decided one more: %v", w.Verdict())
		}
		mw := want.decided[0]
		want.decided = want.decided[1:]
		if mw.w != w || mw.verdict != w.Verdict() && w.Verdict() != Canceled && w.Verdict() != Deadline || mw.waited != w.Waited() {
			h.fail("decided %v after %v, model %v after %v", w.Verdict(), w.Waited(), mw.verdict, mw.waited)
		}
		if mw.verdict == Granted {
			h.granted(modelCall{mw.cost, mw.who, mw.lane}, w.Claim(), mw.link)
		}
	}
	if len(want.decided) > 0 {
		h.fail("the machine did not decide %+v", want.decided[0])
	}
	if m.InFlight() != want.inFlight() || m.Calls() != len(want.running) || m.Waiting() != len(want.line) || m.Limit() != want.limit {
		h.fail("machine %+v in %d calls, model %d in %d, waiting %d, limit %d",
			m.Gauge(), m.Calls(), want.inFlight(), len(want.running), len(want.line), want.limit)
	}
	h.compareCallers()
	if want.cfg.Ledger {
		h.compareLedger()
	}
	if m.Counts() != want.counts {
		h.fail("machine counts %+v, model %+v", m.Counts(), want.counts)
	}
	h.conserved()
}

// compareCallers: the machine knows those who have calls in it and nobody else, and
// each of them as the model does.
func (h *history) compareCallers() {
	known := map[string]bool{}
	for _, c := range h.model.running {
		known[c.who] = true
	}
	for _, w := range h.model.line {
		known[w.who] = true
	}
	delete(known, "")
	for who := range known {
		c := h.m.callers.known[who]
		if who == "shared" {
			c = &h.m.callers.shared
		}
		running, waiting := h.model.has(who)
		if c == nil || c.units != running || c.line != waiting {
			h.fail("of %s the machine knows %+v, the model %d running and %d in line", who, c, running, waiting)
		}
	}
	delete(known, "shared")
	if n, _ := h.m.Callers(); n != len(known) {
		h.fail("the machine knows %d callers, the model %d", n, len(known))
	}
	if c := h.m.callers.shared; !known["shared"] && c.calls < 0 {
		h.fail("those who share have %+v", c)
	}
}

func (h *history) conserved() {
	c := h.m.Counts()
	decisions := h.links
	for _, n := range c.Decisions {
		decisions += n
	}
	if h.asked != decisions+uint64(h.m.Waiting()) {
		h.fail("%d calls, %d decisions and links, %d waiting", h.asked, decisions, h.m.Waiting())
	}
	if c.Granted != c.Released+uint64(h.m.Calls()) {
		h.fail("granted %d, released %d, out %d", c.Granted, c.Released, h.m.Calls())
	}
	if h.m.Calls() != len(h.out) {
		h.fail("machine has %d leases out, the history %d", h.m.Calls(), len(h.out))
	}
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	tail := h.log[max(0, len(h.log)-30):]
	h.t.Fatalf(format+"\n%s", append(args, strings.Join(tail, "\n"))...)
}

func TestRandomHistories(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for run := range 400 {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		h := newHistory(t, rng.IntN)
		for range 500 {
			h.step()
		}
	}
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte("a few calls, some of which wait, and a limit that moves"))
	f.Fuzz(func(t *testing.T, data []byte) {
		i := 0
		next := func(n int) int {
			if i == len(data) {
				return 0
			}
			i++
			return int(data[i-1]) % n
		}
		h := newHistory(t, next)
		for i < len(data) {
			h.step()
		}
	})
}

// A run that was written down plays again to the letter.
func TestRecordedRunReplays(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h := newHistory(t, rng.IntN)
		if seed%2 == 0 {
			c := h.config()
			c.Limiter = &wobble{rng: rng}
			h.m, h.model = New(h.now, c), nil
		}
		var script, again bytes.Buffer
		h.m.Record(&script, h.now)
		for range 200 {
			h.stepRecorded()
		}
		if err := Play(bytes.NewReader(script.Bytes()), &again); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if script.String() != again.String() {
			compareLines(t, script.String(), again.String())
			t.Fatalf("seed %d plays differently", seed)
		}
	}
}

// wobble is a limiter that wants something else every time.
type wobble struct{ rng *rand.Rand }

func (w *wobble) Observe(*Observation) int { return w.rng.IntN(8) }

// stepRecorded is a step on the machine alone.
func (h *history) stepRecorded() {
	h.now = h.now.Add(time.Duration(h.next(40)) * time.Millisecond)
	if h.m.cfg.Ledger && h.next(2) == 0 {
		h.tellAlone()
		h.m.Decided()
		return
	}
	switch h.next(8) {
	case 0, 1, 2:
		a := Arrival{Claim: Claim{Cost: 1 + h.next(3), Lane: h.m.Lane(string(rune('w' + h.next(4))))}, NoWait: h.next(8) == 0, Link: h.next(6) == 0}
		if h.next(2) == 0 {
			a.Caller = h.m.Caller(string(rune('a' + h.next(4))))
		}
		v, w := arrive(h.m, h.now, a)
		if v == Granted {
			h.out = append(h.out, outCall{modelCall{cost: a.Cost}, a.Claim})
		}
		if w != nil {
			h.seen = append(h.seen, &modelWaiter{w: w})
		}
	case 3, 4:
		if n := len(h.out); n > 0 && h.next(2) == 0 {
			c := h.out[n-1]
			h.out = h.out[:n-1]
			h.m.Release(h.now, c.claim, End{Held: 5 * time.Millisecond, Outcome: Outcome(h.next(4))})
		}
	case 5:
		if len(h.seen) > 0 {
			if h.next(2) == 0 {
				h.m.Leave(h.now, h.seen[h.next(len(h.seen))].w, Canceled)
			} else {
				h.m.ExpireDue(h.now)
			}
		}
	case 6:
		h.m.SetLimit(h.now, h.next(8))
	case 7:
		if h.next(3) == 0 {
			h.m.Drain(h.now)
		} else {
			h.m.Resume(h.now)
		}
	}
	h.m.Decided()
}
