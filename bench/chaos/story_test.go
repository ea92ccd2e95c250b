//go:build linux

package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func begin(at instant, lease uint64, patience time.Duration) record {
	return record{kind: started, at: at, lease: lease, value: uint64(patience)}
}

func enter(at instant, lease uint64) record {
	return record{kind: entered, at: at, lease: lease, cost: 1}
}

func leave(at instant, lease uint64, how outcome) record {
	return record{kind: left, at: at, lease: lease, how: how}
}

func refuse(at instant, lease uint64) record {
	return record{kind: refused, at: at, lease: lease, how: full}
}

// A worker that is killed holds what it held until it is gone, and no longer; what it
// wrote before is not lost.
func TestKilledWorkerHoldsUntilItIsGone(t *testing.T) {
	s := tell([]life{
		{worker: 0, ended: 50, killed: true, records: []record{begin(0, 1, 1), enter(10, 1)}},
		{worker: 1, ended: 99, records: []record{begin(0, 1, 1), enter(49, 1), leave(60, 1, done)}},
		{worker: 2, ended: 99, records: []record{begin(0, 1, 1), enter(60, 1), leave(70, 1, done)}},
	})
	if o := overlapOf(s.holds, always(1)); o.violations != 1 || o.above != 1 {
		t.Errorf("%+v, want one violation, of the nanosecond before the death", o)
	}
	if s.holds[0].how != 0 || s.holds[0].to != 50 {
		t.Errorf("the killed hold ended %+v", s.holds[0])
	}
	if n := len(s.forgotten()); n != 0 {
		t.Errorf("%d forgotten, want 0", n)
	}
}

// A hold whose lease is lost ends when its work does.
func TestLostLeaseEndsTheHold(t *testing.T) {
	s := tell([]life{{ended: 99, records: []record{begin(0, 1, 1), enter(10, 1), leave(40, 1, lost)}}})
	if h := s.holds[0]; h.to != 40 || h.how != lost {
		t.Errorf("%+v", h)
	}
	if s.ends()[lost] != 1 || s.rate(span{0, 99}) != 0 {
		t.Error("a lost lease counts as work that was done")
	}
}

func TestForgottenAndRepeated(t *testing.T) {
	s := tell([]life{
		{worker: 0, ended: 99, records: []record{
			begin(0, 1, 1), begin(1, 2, 1), begin(2, 3, 1), refuse(5, 1), enter(6, 3), refuse(7, 3), leave(8, 3, done),
		}},
		{worker: 1, ended: 99, killed: true, records: []record{begin(0, 1, 1)}},
	})
	if f := s.forgotten(); len(f) != 1 || f[0].worker != 0 || f[0].lease != 2 {
		t.Errorf("forgotten: %+v, want the second of worker 0", f)
	}
	if s.repeated != 1 {
		t.Errorf("%d repeated, want 1", s.repeated)
	}
}

// A call is late by what its own process cannot account for.
func TestOverdue(t *testing.T) {
	ms := instant(time.Millisecond)
	for _, c := range []struct {
		name string
		lags []record
		end  instant
		want []time.Duration
	}{
		{"in time", nil, 100 * ms, nil},
		{"within the allowance", nil, 149 * ms, nil},
		{"late", nil, 170 * ms, []time.Duration{20 * time.Millisecond}},
		{"as late as its timers", []record{{kind: late, at: 130 * ms, value: uint64(20 * ms)}}, 170 * ms, nil},
		{"later than its timers", []record{{kind: late, at: 130 * ms, value: uint64(5 * ms)}}, 170 * ms, []time.Duration{15 * time.Millisecond}},
		{"its timers were late before", []record{{kind: late, at: 90 * ms, value: uint64(50 * ms)}}, 170 * ms, []time.Duration{20 * time.Millisecond}},
	} {
		records := append([]record{begin(0, 1, 100*time.Millisecond), refuse(c.end, 1)}, c.lags...)
		s := tell([]life{{worker: 0, ended: 999 * ms, records: records}, {worker: 1, ended: 999 * ms, records: []record{{kind: late, at: 170 * ms, value: uint64(70 * ms)}}}})
		var got []time.Duration
		for _, q := range s.overdue() {
			got = append(got, q.by)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	s := tell([]life{{worker: 0, ended: 999 * ms, records: []record{begin(0, 1, 100*time.Millisecond)}}})
	if got := s.overdue(); len(got) != 1 {
		t.Errorf("a call that was never decided is late by %v", got)
	}
}

func firstFrozen(h hold) bool { return h.worker == 0 }

func TestFenced(t *testing.T) {
	touch := func(at instant, number, fence uint64, k kind) record {
		return record{kind: k, at: at, lease: 1, number: number, value: fence}
	}
	frozen := []record{begin(0, 1, 1), enter(1, 1), touch(2, 1, 7, touched), touch(10, 1, 7, touched), touch(50, 1, 7, rejected), leave(51, 1, lost)}
	after := []record{begin(0, 1, 1), enter(20, 1), touch(21, 1, 8, touched), touch(40, 1, 8, touched), leave(41, 1, done)}
	s := tell([]life{{worker: 0, ended: 99, records: frozen}, {worker: 1, ended: 99, records: after}})
	a := fenced(s.holds, 1, firstFrozen)
	if a.refusals != 1 || a.alive != 0 || len(a.faults) != 0 {
		t.Errorf("%d refusals, %d alive, %q", a.refusals, a.alive, a.faults)
	}
	if o := overlapOf(a.holds, always(1)); o.violations != 0 || len(a.holds) != 2 {
		t.Errorf("%+v of %d holds: the resource let only one in at a time", o, len(a.holds))
	}
	if o := overlapOf(s.holds, always(1)); o.violations != 1 {
		t.Errorf("%+v: without the resource both held", o)
	}
	if a := fenced(s.holds, 0, firstFrozen); len(a.faults) != 1 {
		t.Errorf("%q of a number above the limit", a.faults)
	}
	if a := fenced(tell([]life{{worker: 0, ended: 99, records: slices.Concat(frozen[:3], []record{touch(30, 1, 7, touched)})}, {worker: 1, ended: 99, records: after}}).holds, 1, firstFrozen); len(a.faults) != 1 {
		t.Errorf("%q of two in one slot", a.faults)
	}
	after[2].value, after[3].value = 7, 7
	if a := fenced(tell([]life{{worker: 0, ended: 99, records: frozen}, {worker: 1, ended: 99, records: after}}).holds, 1, firstFrozen); len(a.faults) != 1 {
		t.Errorf("%q of a fence that two workers show", a.faults)
	}
	after[3] = touch(40, 1, 7, rejected)
	if a := fenced(tell([]life{{worker: 1, ended: 99, records: after}}).holds, 1, firstFrozen); a.alive != 1 {
		t.Error("a holder with a lease that the resource refused went unseen")
	}
}

func TestTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	written, err := newTape(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer written.close()
	all := []record{
		{kind: entered, cost: 3, caller: 70_000, at: 1 << 50, lease: 1 << 40, number: 9, value: 1<<64 - 1},
		{kind: left, how: done, at: 5, lease: 2},
	}
	written.write(all[0])
	written.head.next.Add(1) // a writer that was killed before it had written anything
	written.write(all[1])
	seen, err := openTape(path)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.close()
	if got := seen.read(); !slices.Equal(got, all) {
		t.Errorf("read %+v, want %+v", got, all)
	}
	if n := seen.head.done.Load(); n != 1 {
		t.Errorf("%d done, want 1", n)
	}
	written.write(all[0])
	defer func() {
		if recover() == nil {
			t.Error("a full tape took another record")
		}
	}()
	written.write(all[0])
}

// Two processes' instants can be compared: the clock is the machine's.
func TestInstant(t *testing.T) {
	other := readOrigin()
	if d := time.Duration(other.at - origin.at - instant(other.when.Sub(origin.when))); d.Abs() > 100*time.Microsecond {
		t.Errorf("two ties are %v apart", d)
	}
	a := now()
	if b := now(); b < a {
		t.Errorf("%d after %d", b, a)
	}
}
