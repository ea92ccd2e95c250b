package admit

import (
	"testing"
	"time"
)

// limits is a limiter that answers by kind.
type limits map[Kind]int

func (l limits) Observe(o *Observation) int {
	if n, ok := l[o.Kind]; ok {
		return n
	}
	return o.Limit
}

// A limit that the limiter raises as somebody joins the line lets that one in at
// once, and one that it lowers at the end of a call comes before the hand-over.
func TestLimiterActsAtOnce(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 1, MaxWait: time.Second, MaxWaiting: 10, Limiter: limits{Joined: 2}})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	_, w := arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	if w.Verdict() != Granted || m.Limit() != 2 || m.InFlight() != 2 {
		t.Errorf("%v, limit %d, in flight %d", w.Verdict(), m.Limit(), m.InFlight())
	}

	m = New(now, Config{Limit: 2, MaxWait: time.Second, MaxWaiting: 10, Limiter: limits{Finished: 1}})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	_, w = arrive(m, now, Arrival{Claim: Claim{Cost: 1}})
	m.Release(now, Claim{Cost: 1}, End{})
	if w.Verdict() != Queued || m.InFlight() != 1 {
		t.Errorf("handed on before the limit fell: %v, in flight %d", w.Verdict(), m.InFlight())
	}
}

// A closed machine stays closed whatever the limiter wants, and nothing below 1 is
// ever in force by its word.
func TestLimiterDoesNotOpenNorClose(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 3, Limiter: limits{Changed: 5, Started: -7}})
	if m.Limit() != 5 {
		t.Errorf("limit %d at first, want 5", m.Limit())
	}
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	if m.Limit() != 1 {
		t.Errorf("limit %d, want 1", m.Limit())
	}
	m.SetLimit(now, 0)
	m.Release(now, Claim{Cost: 1}, End{})
	if v := m.Arrive(now, Arrival{Claim: Claim{Cost: 1}}); v != Busy || m.Limit() != 0 {
		t.Errorf("%v, limit %d", v, m.Limit())
	}
}

// A drain that empties a line behind which there was room ends the time that counts
// as full.
func TestDrainEndsFullTime(t *testing.T) {
	now := time.Unix(0, 0)
	m := New(now, Config{Limit: 2, MaxWait: time.Second})
	m.Arrive(now, Arrival{Claim: Claim{Cost: 1}})
	arrive(m, now, Arrival{Claim: Claim{Cost: 2}}) // one unit is free, and too little
	if !m.rate.full {
		t.Error("somebody waits, and the time does not count as full")
	}
	m.Drain(now)
	if m.rate.full {
		t.Error("nobody waits and a unit is free, and the time counts as full")
	}
}
