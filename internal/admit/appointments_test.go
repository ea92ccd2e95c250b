package admit

import (
	"testing"
	"time"
)

// carries returns a machine of limit 10 through which 100 calls a second go, so that it
// knows, and the time then. Nobody runs and nobody waits.
func carries(t *testing.T, lanes ...LaneConfig) (*Machine, time.Time) {
	t.Helper()
	now := time.Unix(1000, 0)
	m := New(now, Config{Limit: 10, MaxWait: 100 * ms, MaxWaiting: 10, Lanes: lanes})
	for range 11 {
		arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	}
	for range 200 {
		now = now.Add(10 * ms)
		m.ExpireDue(now)
		m.Release(now, Claim{Cost: 1}, End{})
		for m.InFlight() < 10 || m.Waiting() < 1 {
			arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
		}
		m.Decided()
	}
	for m.Waiting() > 0 || m.InFlight() > 0 {
		m.Release(now, Claim{Cost: 1}, End{})
		m.Decided()
	}
	now = now.Add(20 * time.Second)
	m.settle(now)
	return m, now
}

func never(int) int { panic("it draws") }

// A crowd that is refused at one moment comes back at one moment of each second: no more
// of it than find a place at once, ten where twenty can run or wait.
func TestAppointmentsOfACrowd(t *testing.T) {
	m, now := carries(t)
	told := map[int]int{}
	for range 100 {
		told[m.Appoint(now, nil, 1, 30, never)]++
	}
	for n := 1; n <= 10; n++ {
		if told[n] != 10 {
			t.Errorf("%d come after %d s", told[n], n)
		}
	}
}

// Those refused one after the other fill each second up to nine tenths of what leaves.
func TestAppointmentsOverTime(t *testing.T) {
	m, now := carries(t)
	comes, slots := map[int64]int{}, map[int64]int{} // by seconds, and by their twentieths
	for i := range 1600 {
		at := now.Add(time.Duration(i) * 2500 * time.Microsecond)
		n := int64(m.Appoint(at, nil, 1, 30, never))
		comes[slotOf(at)/slotsPerSecond+n]++
		if i >= 400 { // they are known to come evenly
			slots[slotOf(at)+n*slotsPerSecond]++
		}
	}
	for _, n := range slots {
		if n > 8 {
			t.Errorf("%d of 90 come in one twentieth of a second", n)
		}
	}
	most, sum := 0, 0
	for _, n := range comes {
		most, sum = max(most, n), sum+n
	}
	mu, _ := m.rate.perSecond()
	if part := bookPart * mu; float64(most) < part-5 || float64(most) > part+1 || sum != 1600 {
		t.Errorf("at most %d of %d in one second, %.0f is what may be", most, sum, part)
	}
}

// Who comes for the first time has his part of each second; who comes as he was told does
// not count for that.
func TestAppointmentsLeaveRoom(t *testing.T) {
	m, now := carries(t)
	for range 1800 { // 50 a second, for 36 s
		now = now.Add(20 * ms)
		m.rest.comes(now, 1)
	}
	comes := map[int64]int{} // by seconds
	for range 800 {
		now = now.Add(1250 * time.Microsecond)
		comes[slotOf(now)/slotsPerSecond+int64(m.Appoint(now, nil, 1, 30, never))]++
	}
	mu, _ := m.rate.perSecond()
	most, part := 0, bookPart*mu-50
	for _, n := range comes {
		most = max(most, n)
	}
	if float64(most) < part-5 || float64(most) > part+5 {
		t.Errorf("%d are told the same second, %.0f is what may be", most, part)
	}

	for range 40 { // they come, and nobody else
		now = now.Add(time.Second)
		told := m.rest.book.advance(slotOf(now))
		m.rest.newcomers.come(now, told, told)
	}
	if first := m.rest.newcomers.rate; first > 0 {
		t.Errorf("%v a second count as coming first, and all were told", first)
	}
}

// What is promised to a lane counts for the lanes below, and not for those above.
func TestAppointmentsByLane(t *testing.T) {
	m, now := carries(t, LaneConfig{Name: "high", Rank: 1})
	high := m.Lane("high")
	for range 10 {
		if n := m.Appoint(now, nil, 1, 30, never); n != 1 {
			t.Fatalf("low after %d s", n)
		}
	}
	for range 10 {
		if n := m.Appoint(now, high, 1, 30, never); n != 1 {
			t.Fatalf("high after %d s", n)
		}
	}
	if n := m.Appoint(now, nil, 1, 30, never); n != 2 {
		t.Errorf("low after %d s, the first is promised", n)
	}
}

// Who comes first in a lane below takes nothing of what the lanes above may promise.
func TestAppointmentsKnowNoLowerNewcomers(t *testing.T) {
	m, now := carries(t, LaneConfig{Name: "high", Rank: 1})
	high := m.Lane("high")
	for range 3600 { // 100 a second, for 36 s
		now = now.Add(10 * ms)
		m.rest.comes(now, 1)
	}
	told := map[*Lane]int{}
	for range 200 { // in one second
		now = now.Add(5 * ms)
		for _, l := range []*Lane{high, nil} {
			if m.Appoint(now, l, 1, 30, never) == 1 {
				told[l]++
			}
		}
	}
	if told[high] < 80 || told[nil] > 25 {
		t.Errorf("%d of the high lane are told the next second, and %d of the low one", told[high], told[nil])
	}
}

// A burst says nothing of the seconds that come after it.
func TestAppointmentsInABurst(t *testing.T) {
	m, now := carries(t)
	come := func(seconds, perSecond int) {
		for range seconds * 50 {
			now = now.Add(20 * ms)
			m.rest.comes(now, perSecond/50)
		}
	}
	come(33, 50)
	come(10, 5000)
	if rate := m.rest.newcomers.rate; rate != 50 {
		t.Errorf("ten seconds of a burst, and %v are said to come", rate)
	}
	come(10, 5000)
	if rate := m.rest.newcomers.rate; rate != 5000 {
		t.Errorf("after twenty seconds %v are said to come", rate)
	}
}

// When everything is promised it is any second, and a clock that jumps
// loses the book and nothing else.
func TestAppointmentsAtTheEnd(t *testing.T) {
	m, now := carries(t)
	for range 10 * 5 {
		m.Appoint(now, nil, 1, 5, never)
	}
	if n := m.Appoint(now, nil, 1, 5, func(n int) int { return n - 1 }); n != 5 {
		t.Errorf("all is promised, and it is told %d s", n)
	}
	for _, jump := range []time.Duration{-time.Hour, 48 * time.Hour, -100 * 365 * 24 * time.Hour} {
		if n := m.Appoint(now.Add(jump), nil, 1, 5, never); n != 1 {
			t.Errorf("after a jump of %v: %d s", jump, n)
		}
	}
	if n := m.Appoint(now, nil, 100, 200, func(n int) int { return 0 }); n != 100 {
		t.Errorf("beyond what the book reaches: %d s", n)
	}
}
