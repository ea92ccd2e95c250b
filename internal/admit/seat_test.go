package admit

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// overload lets calls come at a machine of limit 1 whose calls take 10 ms: so many for
// each that can run. It returns the longest line of the last second, and what was decided
// in it.
func overload(c Config, times int) (longest int, decided [Verdicts]uint64) {
	now := time.Unix(0, 0)
	m := New(now, c)
	var before Counts
	for step := range 400 {
		if step == 300 {
			before, longest = m.Counts(), 0
		}
		now = now.Add(10 * ms)
		m.ExpireDue(now)
		if m.InFlight() > 0 {
			m.Release(now, Claim{Cost: 1}, End{})
		}
		for range times {
			arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
			longest = max(longest, m.Waiting())
		}
		m.Decided()
	}
	for v, n := range m.Counts().Decisions {
		decided[v] = n - before.Decisions[v]
	}
	return longest, decided
}

// A line that nobody has bounded is as short as the backend needs it, once it stands:
// who is in it is served, everybody else is refused at once.
func TestStandingLineIsShort(t *testing.T) {
	for _, c := range []struct{ times, longest int }{
		{2, 10}, // ln(1 + 1/.002) ÷ ln 2 = 9, and one for the step in which it is measured
		{5, 5},
		{10, 4},
	} {
		longest, decided := overload(Config{Limit: 1, MaxWait: 200 * ms}, c.times)
		if longest != c.longest {
			t.Errorf("at %d × the load %d wait, %d would do", c.times, longest, c.longest)
		}
		if decided[Timeout] > 0 || decided[Granted] != 100 {
			t.Errorf("at %d × the load %d run and %d wait in vain", c.times, decided[Granted], decided[Timeout])
		}
	}
}

// A number that is given is a promise.
func TestStandingLineThatIsPromised(t *testing.T) {
	longest, decided := overload(Config{Limit: 1, MaxWait: 200 * ms, MaxWaiting: 30}, 2)
	if longest != 30 || decided[Timeout] == 0 {
		t.Errorf("%d wait at most, %d in vain", longest, decided[Timeout])
	}
}

// As many as leave within a patience may wait in a burst, and never fewer than twice the
// limit.
func TestBurstMayWait(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 2, MaxWait: 100 * ms})
	waits := func() (n int) {
		for {
			if v, _ := arrive(m, now, Arrival{Claim: Claim{Cost: 1}}); v == Busy {
				return m.Waiting()
			}
		}
	}
	if n := waits(); n != 4 {
		t.Errorf("%d wait while nothing is known, twice the limit would be 4", n)
	}
	for m.InFlight() > 0 { // 500 a second
		now = now.Add(2 * ms)
		m.Release(now, Claim{Cost: 1}, End{})
	}
	for range 100 {
		arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
		arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
		now = now.Add(2 * ms)
		m.Release(now, Claim{Cost: 1}, End{})
		now = now.Add(2 * ms)
		m.Release(now, Claim{Cost: 1}, End{})
	}
	now = now.Add(time.Second)
	if n := waits(); n < 40 || n > 60 {
		t.Errorf("%d wait in a burst, about 50 leave within their patience", n)
	}
}

// QU-13: an unbroken stream of urgent calls, three of which always wait. A call of low
// rank runs after 50 of them at the latest, and one whose time is up never.
func TestQU13LowestLaneHasItsTurn(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 2, MaxWait: time.Minute, MaxWaiting: 8, Lanes: []LaneConfig{{Name: "urgent", Rank: 1}, {Name: "low", Rank: 2}}})
	urgent, low := m.Lane("urgent"), m.Lane("low")
	var out []Claim
	come := func(l *Lane) *Waiter {
		a := Arrival{Claim: Claim{Cost: 1, Lane: l}}
		v, w := arrive(m, now, a)
		if v == Granted {
			out = append(out, a.Claim)
		}
		return w
	}
	for range 5 {
		come(urgent)
	}
	waits := come(low)
	late, _ := arrive(m, now, Arrival{Claim: Claim{Cost: 1, Lane: low}, Until: now.Add(20 * ms)})
	if late != Queued {
		t.Fatalf("the impatient one is %v", late)
	}
	started := 0
	for waits.Verdict() == Queued {
		now = now.Add(ms)
		m.Release(now, out[0], End{})
		out = out[1:]
		for w := m.Decided(); w != nil; w = w.Next() {
			if w.Verdict() == Granted {
				out = append(out, w.Claim())
				started++
			}
		}
		come(urgent)
		m.ExpireDue(now)
		if started > 2*turn {
			t.Fatalf("it waits after %d others", started)
		}
	}
	if started != turn+1 || waits.Verdict() != Granted {
		t.Errorf("it is %v after %d others", waits.Verdict(), started-1)
	}
	if got := m.Lanes()[1]; got.Refused != 1 || m.Counts().Decisions[Timeout] != 1 {
		t.Errorf("whose time was up: %+v", got)
	}
}

// However long the lanes above fill the line, the lowest gets its 2 %.
func TestLowestLaneGetsIntoAFullLine(t *testing.T) {
	for _, waiting := range []int{0, 1, 4} {
		now := time.Unix(0, 0)
		m := New(now, Config{Limit: 2, MaxWait: 50 * ms, MaxWaiting: waiting, Lanes: []LaneConfig{{Name: "top", Rank: 1}}})
		var out []Claim
		for range 5000 {
			for _, l := range []*Lane{m.Lane("top"), m.Lane("top"), nil} {
				a := Arrival{Claim: Claim{Cost: 1, Lane: l}}
				if v, _ := arrive(m, now, a); v == Granted {
					out = append(out, a.Claim)
				}
			}
			now = now.Add(ms)
			m.ExpireDue(now)
			m.Release(now, out[0], End{})
			out = out[1:]
			for w := m.Decided(); w != nil; w = w.Next() {
				if w.Verdict() == Granted {
					out = append(out, w.Claim())
				}
			}
		}
		lanes := m.Lanes()
		top, low := lanes[0].Granted, lanes[1].Granted
		if low < 5000/60 || low > 5000/40 || top+low < 5000 {
			t.Errorf("with %d places in line the lowest lane has %d of %d starts; 2 %% would be 100", waiting, low, top+low)
		}
	}
}

// Whoever was refused before comes in below those who come first, while others wait.
func TestRetriesComeBelow(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 1, MaxWait: time.Second, MaxWaiting: 8, Lanes: []LaneConfig{{Name: "high", Rank: 1}, {Name: "alike", Rank: 1}, {Name: "low", Rank: 2}}})
	high, low := m.Lane("high"), m.Lane("low")
	if got := m.Below(high); got != high {
		t.Errorf("nobody waits, and it comes in by %q", got.Name)
	}
	arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	for _, c := range []struct{ from, to *Lane }{{high, low}, {low, &m.rest}, {nil, &m.rest}} {
		if got := m.Below(c.from); got != c.to {
			t.Errorf("a retry comes in by %q", got.Name)
		}
	}
}

// No work is begun for a caller whose deadline would pass while it is half done.
func TestNoDoomedWork(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 1, MaxWait: time.Second, MaxWaiting: 50})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	for range 30 { // held for 100 ms each
		arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
		now = now.Add(100 * ms)
		m.Release(now, Claim{Cost: 1}, End{})
	}
	if v, _ := arrive(m, now, Arrival{Claim: Claim{Cost: 1}, Deadline: now.Add(40 * ms)}); v != Deadline {
		t.Errorf("40 ms until its deadline, work of 100 ms: %v", v)
	}
	_, w := arrive(m, now, Arrival{Claim: Claim{Cost: 1}, Deadline: now.Add(100 * ms)})
	if got := w.Until().Sub(now); got < 48*ms || got > 52*ms {
		t.Errorf("100 ms until its deadline, work of 100 ms: it may wait for %v", got)
	}
	now = now.Add(60 * ms)
	m.Release(now, Claim{Cost: 1}, End{})
	if w.Verdict() != Deadline {
		t.Errorf("a slot came 40 ms before its deadline: %v", w.Verdict())
	}
}

// QU-14: light calls of a low lane do not slip past a heavy one of a high lane, in line or
// without waiting; only what is reserved for a lane is not kept from it.
func TestQU14HeavyCallIsNotPassed(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 10, MaxWait: time.Second, MaxWaiting: 8, Lanes: []LaneConfig{{Name: "high", Rank: 1}, {Name: "own", Rank: 3, Reserved: 1}}})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 8}})
	_, heavy := arrive(m, now, Arrival{Claim: Claim{Cost: 2, Lane: m.Lane("high")}})
	for range 100 {
		if v, w := arrive(m, now, Arrival{Claim: Claim{Cost: 1}, NoWait: true}); v != Busy || w != nil {
			t.Fatalf("a light call: %v", v)
		}
	}
	_, light := arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	if v, _ := arrive(m, now, Arrival{Claim: Claim{Cost: 1, Lane: m.Lane("own")}}); v != Granted {
		t.Errorf("a call for which a unit is reserved: %v", v)
	}
	m.Release(now, Claim{Cost: 8}, End{})
	if heavy.Verdict() != Granted || light.Verdict() != Granted || m.InFlight() != 4 {
		t.Errorf("heavy %v, light %v, in flight %d", heavy.Verdict(), light.Verdict(), m.InFlight())
	}
}
