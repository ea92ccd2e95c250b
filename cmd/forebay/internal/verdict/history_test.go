package verdict

import (
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"example.com/forebay"
)

// TestHistoryIsBounded: an hour of a gate, older times in less detail, in a size that does
// not grow: 1,000 gates take 17 MB.
func TestHistoryIsBounded(t *testing.T) {
	if size := unsafe.Sizeof(History{}); size > 17<<10 {
		t.Errorf("a history has %d bytes, want at most %d", size, 17<<10)
	}
	h := NewHistory()
	if got := h.Samples(); len(got) != 0 {
		t.Errorf("%d samples of nothing", len(got))
	}
	const seconds = 3 * 3600
	for range seconds {
		h.Add(Sample{Limit: 4, Accepted: 1, CPU: .5}, Terms{}, nil)
	}
	all := h.Samples()
	total, shortest := 0, int32(60)
	for i, s := range all {
		if s.Seconds > shortest {
			t.Errorf("sample %d is of %d seconds, after one of %d", i, s.Seconds, shortest)
		}
		shortest = s.Seconds
		total += int(s.Seconds)
		if s.Accepted != uint32(s.Seconds) || s.CPU != .5 {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
	if total < 3590 || total > 3660 {
		t.Errorf("%d seconds in all, want an hour", total)
	}
	if n := len(all); n > fineLen+middleLen+coarseLen {
		t.Errorf("%d samples", n)
	}
}

// TestHistoryOfEveryLength: no second is there twice, and none of the last minutes is
// missing, however long the gate has run.
func TestHistoryOfEveryLength(t *testing.T) {
	h := NewHistory()
	for n := 1; n <= 1500; n++ {
		h.Add(Sample{Accepted: uint32(n)}, Terms{}, nil)
		seconds := 0
		for _, s := range h.Samples() {
			seconds += int(s.Seconds)
		}
		if seconds > n || seconds < min(n, 540)-middleSec {
			t.Fatalf("after %d s there are %d", n, seconds)
		}
	}
}

func TestSpread(t *testing.T) {
	var s spread
	if s.quantile(.5) != 0 {
		t.Error("of nothing there is a time")
	}
	for ms := range 100 {
		s.add(time.Duration(ms+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{.05: 5 * time.Millisecond, .5: 50 * time.Millisecond, .95: 95 * time.Millisecond, 1: 100 * time.Millisecond} {
		if got := s.quantile(q); got < want || got > want*5/4 {
			t.Errorf("quantile %v is %v, want %v to a quarter more", q, got, want)
		}
	}
	for us := range int64(5000) {
		class := classOf(time.Duration(us) * time.Microsecond)
		if end := endOf(class).Microseconds(); us > end || class > 0 && endOf(class-1).Microseconds() > us {
			t.Fatalf("%d us is of class %d, which ends at %d us", us, class, end)
		}
	}
	if class := classOf(1 << 62); class != spreadLen-1 {
		t.Errorf("what is too long is of class %d", class)
	}
	for range 10 * halveAbove {
		s.add(time.Hour)
	}
	if s.n() > 2*halveAbove || s.quantile(.01) < time.Second {
		t.Errorf("%d times are kept, 1 %% of them up to %v", s.n(), s.quantile(.01))
	}
}

// storm is a second of one.
var storm = Sample{Limit: 4, Accepted: 10, Short: 90, Early: 50, CPU: .1}

// TestHysteresis: a verdict comes up when its condition has held, and stays while it comes
// and goes.
func TestHysteresis(t *testing.T) {
	h := NewHistory()
	upIn := func(s Sample) bool {
		h.Add(s, Terms{}, nil)
		return h.at(0).up&RetryStorm.bit() != 0
	}
	calm := Sample{Limit: 4, Accepted: 250, CPU: .1}
	if upIn(storm) {
		t.Error("it is up at once")
	}
	for n := 2; !upIn(storm); n++ {
		if n > 10 {
			t.Fatal("it does not come up")
		}
	}
	for range window {
		upIn(storm)
	}
	held, gone := 0, 0
	for i := range 120 {
		s := storm
		if i%12 < 3 {
			s = calm
		}
		if !upIn(s) {
			t.Fatalf("it is gone after %d seconds of coming and going", i)
		}
		if h.at(0).holds&RetryStorm.bit() != 0 {
			held++
		} else {
			gone++
		}
	}
	if held < 20 || gone < 20 {
		t.Errorf("the condition held for %d s and did not for %d s; it is to come and go", held, gone)
	}
	n := 1
	for upIn(calm) {
		if n++; n > 2*(window+clearAfter) {
			t.Fatal("it stays")
		}
	}
	if n < clearAfter {
		t.Errorf("it is gone after %d seconds", n)
	}
}

// TestFastLane: it is in danger when its calls have to wait, though slots are kept for
// them, and not once only; of other lanes nothing is said.
func TestFastLane(t *testing.T) {
	for name, c := range map[string]struct {
		lane    string
		decided forebay.Decision
		waited  time.Duration
		late    int // seconds of the last 20 in which it is so
		want    bool
	}{
		"waits":                 {"orders", forebay.Accepted, time.Millisecond, 20, true},
		"is refused":            {"orders", forebay.RejectedBusy, 0, 20, true},
		"gives up its place":    {"orders", forebay.RejectedShed, time.Millisecond, 20, true},
		"runs at once":          {"orders", forebay.Accepted, 0, 20, false},
		"waits for a moment":    {"orders", forebay.Accepted, time.Millisecond, 2, false},
		"leaves":                {"orders", forebay.Canceled, 0, 20, false},
		"another lane waits":    {"bulk", forebay.Accepted, time.Millisecond, 20, false},
		"no lane, and it waits": {"", forebay.Accepted, time.Millisecond, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRecorder()
			g, err := forebay.New(forebay.Config{Name: "a", MaxInFlight: 4, MaxWait: time.Second,
				Lanes: []forebay.Lane{{Name: "orders", Rank: 1, Reserved: 2}, {Name: "bulk", Rank: 2}}})
			if err != nil {
				t.Fatal(err)
			}
			r.Watch(g)
			for second := range 20 {
				e := forebay.Event{Gate: "a", Lane: c.lane, Decision: c.decided, Waited: c.waited, Limit: 4}
				if second < 20-c.late {
					e.Decision, e.Waited = forebay.Accepted, 0
				}
				for range 3 {
					r.Observe(e)
				}
				r.Tick(.1)
			}
			got := r.Verdicts()
			if len(got) > 0 != c.want || c.want && (len(got) != 1 || got[0].Verdict != "fast_lane_in_danger" || got[0].Text == "" || got[0].Remedy == "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestHanging: a backend that answers nothing any more is no leak.
func TestHanging(t *testing.T) {
	staged(t, 3, forebay.Config{}, func(s *stage) {
		s.quick()
		s.run(30)
		s.hang = 1
		s.run(12)
		got := s.Verdicts()
		if len(got) != 1 || got[0].Verdict != "bottleneck_elsewhere" || got[0].Limit != 0 {
			t.Errorf("%v: %+v\n%s", s, got, s.lately())
		}
	})
}

// TestSlowReadersAreNoLeak: they hold their slots for long, and it is known why.
func TestSlowReadersAreNoLeak(t *testing.T) {
	for want, blocked := range map[string]int32{"leak_suspected": 0, "slow_readers": 4} {
		h := NewHistory()
		for range 20 {
			h.Add(Sample{Limit: 4, InFlight: 4, Accepted: 10, Short: 10, Ended: 10, Held: 1, Stale: 4, Blocked: blocked, Oldest: 15, CPU: .1}, Terms{}, nil)
		}
		if got := h.verdicts("reports"); len(got) != 1 || got[0].Verdict != want {
			t.Errorf("with %d slow readers: %+v, want %s", blocked, got, want)
		}
	}
}

// TestSlotsThatGoBackEarly: readers cost nothing where their slots are back before.
func TestSlotsThatGoBackEarly(t *testing.T) {
	h := NewHistory()
	for range 20 {
		h.Add(Sample{Limit: 4, InFlight: 4, Accepted: 10, Short: 10, Ended: 10, Blocked: 4, CPU: .1}, Terms{EarlyBack: true}, nil)
	}
	if got := h.verdicts("reports"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestWaitsForOnesOwn: where each caller has a bound of its own, who waits may wait for
// itself, and the gate has slots.
func TestWaitsForOnesOwn(t *testing.T) {
	for _, own := range []bool{false, true} {
		h := NewHistory()
		for range 20 {
			h.Add(Sample{Limit: 4, InFlight: 2, Accepted: 10, WaitP95: .09, CPU: .1}, Terms{MaxWait: .1, PerCaller: own}, nil)
		}
		if up := h.at(0).up&waitsLong != 0; up == own {
			t.Errorf("with a bound of each caller %v: waits long is %v", own, up)
		}
	}
}

// TestAmongHowMany: a call is counted with those that it ran beside, not with the one that
// has got its slot.
func TestAmongHowMany(t *testing.T) {
	r := NewRecorder()
	g, err := forebay.New(forebay.Config{Name: "a", MaxInFlight: 7})
	if err != nil {
		t.Fatal(err)
	}
	r.Watch(g)
	end := forebay.Event{Kind: forebay.EventReleased, Gate: "a", Held: time.Second, Cost: 1, Limit: 7}
	for inFlight, level := range map[int]int{7: 2, 6: 2, 3: 2, 2: 1, 0: 0, 9: 3} {
		end.InFlight = inFlight
		r.Observe(end)
		r.Tick(0)
		h := (*r.gates.Load())["a"].history
		if h.levels[level].N != 1 {
			t.Errorf("%d after it: counted at %+v, want level %d", inFlight, h.levels, level)
		}
		h.levels = Levels{}
	}
}

// TestWaitsLong: the early warning comes before anything is refused, and is told once.
func TestWaitsLong(t *testing.T) {
	staged(t, 3, forebay.Config{MaxInFlight: 20}, func(s *stage) {
		s.spread = 0
		s.run(20)
		if long := s.WaitLong(); len(long) != 0 {
			t.Fatalf("calls of %v wait long while there is room", long)
		}
		s.rate = 1.05 * s.carries()
		s.run(20)
		if long := s.WaitLong(); !slices.Equal(long, []string{"reports"}) {
			t.Fatalf("calls of %v wait long, want those of reports\n%s", long, s.lately())
		}
		s.rate = .2 * s.carries()
		s.run(30)
		told := 0
		for _, c := range s.changes {
			if c.WaitsLong {
				told++
			}
		}
		if len(s.WaitLong()) != 0 || told != 2 {
			t.Errorf("%d lines are told of it, want 2: %+v", told, s.changes)
		}
	})
}

// TestGatesComeAndGo: one that stays keeps its history, one that goes takes its verdicts
// along, and what is not watched is not counted.
func TestGatesComeAndGo(t *testing.T) {
	r := NewRecorder()
	gate := func(name string) *forebay.Gate {
		g, err := forebay.New(forebay.Config{Name: name, MaxInFlight: 1, Track: true})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	a, b := gate("a"), gate("b")
	r.Watch(a, b)
	for range 10 {
		for range 100 {
			r.Observe(forebay.Event{Gate: "b", Decision: forebay.RejectedBusy})
			r.Early("b")
		}
		r.Tick(.1)
	}
	if got := r.Verdicts(); len(got) != 1 || got[0].Gate != "b" || got[0].Seconds < 2 {
		t.Fatalf("%+v", got)
	}
	r.Watch(a, b)
	if got := r.History("b"); len(got) != 10 || r.EarlyRetries()["b"] != 1000 {
		t.Errorf("%d samples are left of 10", len(got))
	}
	r.Watch(a)
	r.Observe(forebay.Event{Gate: "b", Decision: forebay.RejectedBusy})
	r.Early("b")
	r.Tick(.1)
	if got := r.Verdicts(); len(got) != 0 || r.History("b") != nil || r.Blocked("b") != nil || r.Blocked("a") == nil {
		t.Errorf("of a gate that is gone: %+v", got)
	}
}

// TestRecorderAtOnce is for the race detector.
func TestRecorderAtOnce(t *testing.T) {
	r := NewRecorder()
	g, err := forebay.New(forebay.Config{Name: "a", MaxInFlight: 2, Track: true, Observers: []forebay.Observer{r}})
	if err != nil {
		t.Fatal(err)
	}
	r.Watch(g)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 300 {
				if lease, err := g.Acquire(t.Context(), forebay.Call{Route: "/"}); err == nil {
					lease.Release()
				}
				if n%50 == 0 {
					r.Early("a")
					r.Watch(g)
					r.Tick(.5)
					r.Verdicts()
					r.History("a")
				}
			}
		})
	}
	all.Wait()
	r.Tick(.5)
	sum := uint32(0)
	for _, s := range r.History("a") {
		sum += s.Arrived()
	}
	if sum != 1200 {
		t.Errorf("%d calls are counted, want 1200", sum)
	}
}

// TestRecorderAllocatesNothing per call.
func TestRecorderAllocatesNothing(t *testing.T) {
	r := NewRecorder()
	g, err := forebay.New(forebay.Config{Name: "a", MaxInFlight: 2})
	if err != nil {
		t.Fatal(err)
	}
	r.Watch(g)
	in := forebay.Event{Gate: "a", Route: "/", Decision: forebay.Accepted, InFlight: 1, Limit: 2, Cost: 1}
	out := forebay.Event{Kind: forebay.EventReleased, Gate: "a", Route: "/", Held: time.Millisecond, Limit: 2, Cost: 1}
	if got := testing.AllocsPerRun(1000, func() { r.Observe(in); r.Observe(out) }); got > 0 {
		t.Errorf("%v allocations a call", got)
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := NewRecorder()
	g, err := forebay.New(forebay.Config{Name: "a", MaxInFlight: 2})
	if err != nil {
		b.Fatal(err)
	}
	r.Watch(g)
	in := forebay.Event{Gate: "a", Route: "/", Decision: forebay.Accepted, InFlight: 1, Limit: 2, Cost: 1}
	out := forebay.Event{Kind: forebay.EventReleased, Gate: "a", Route: "/", Held: time.Millisecond, Limit: 2, Cost: 1}
	b.ReportAllocs()
	for b.Loop() {
		r.Observe(in)
		r.Observe(out)
	}
}

func BenchmarkTickOfAThousandGates(b *testing.B) {
	r := NewRecorder()
	var gates []*forebay.Gate
	for range 1000 {
		g, err := forebay.New(forebay.Config{Name: "g" + string(rune('a'+len(gates)%26)) + time.Duration(len(gates)).String(), MaxInFlight: 10, Track: true})
		if err != nil {
			b.Fatal(err)
		}
		gates = append(gates, g)
	}
	r.Watch(gates...)
	b.ReportAllocs()
	for b.Loop() {
		r.Tick(.5)
	}
}
