package adaptive

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// known are the limiters after published laws, each with bounds and nothing else, and
// with what tells them what is healthy.
var known = []struct {
	name string
	make func(least, most, start int, healthy time.Duration) (forebay.Limiter, error)
}{
	{"AIMD", func(least, most, start int, healthy time.Duration) (forebay.Limiter, error) {
		return NewAIMD(AIMDConfig{Min: least, Max: most, Start: start, Timeout: 3 * healthy})
	}},
	{"Vegas", func(least, most, start int, healthy time.Duration) (forebay.Limiter, error) {
		return NewVegas(VegasConfig{Min: least, Max: most, Start: start, Healthy: healthy})
	}},
	{"Gradient2", func(least, most, start int, healthy time.Duration) (forebay.Limiter, error) {
		return NewGradient2(Gradient2Config{Min: least, Max: most, Start: start, Healthy: healthy})
	}},
}

// eachKnown runs a test for each of them.
func eachKnown(t *testing.T, test func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter)) {
	for _, k := range known {
		t.Run(k.name, func(t *testing.T) {
			test(t, func(least, most, start int, healthy time.Duration) forebay.Limiter {
				l, err := k.make(least, most, start, healthy)
				if err != nil {
					t.Fatal(err)
				}
				return l
			})
		})
	}
}

// TestKnownBoundsHold: whatever happens the limit is from Min to Max, and a refusal of
// the backend's own never raises it.
func TestKnownBoundsHold(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		for seed := range uint64(100) {
			dice := rand.New(rand.NewPCG(seed, 1))
			least := 1 + dice.IntN(20)
			most := least + dice.IntN(200)
			healthy := time.Duration(dice.IntN(2)) * 30 * ms
			w := newWorld(limiter(least, most, 0, healthy), max(least, min(20, most)))
			for range 2000 {
				w.now = w.now.Add(time.Duration(dice.Int64N(int64(1) << dice.IntN(31))))
				if w.inFlight < w.limit && dice.IntN(2) == 0 {
					w.start()
				} else if w.inFlight > 0 {
					was, o := w.limit, forebay.Outcome(dice.IntN(4))
					is := w.finish(time.Duration(dice.Int64N(int64(1)<<dice.IntN(40))), o)
					if o == forebay.OutcomeOverloaded && is > was {
						t.Fatalf("seed %d: a refusal raises the limit from %d to %d", seed, was, is)
					}
				}
				if w.limit < least || w.limit > most {
					t.Fatalf("seed %d: the limit is %d, of %d to %d", seed, w.limit, least, most)
				}
			}
		}
	})
}

// TestKnownStartAtTheGatesLimit: what was configured holds until more is known.
func TestKnownStartAtTheGatesLimit(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		for _, c := range []struct{ least, most, start, want int }{{0, 0, 0, 4}, {0, 0, 12, 12}, {6, 0, 0, 6}, {0, 3, 0, 3}} {
			g, err := forebay.New(forebay.Config{MaxInFlight: 4, Limiter: limiter(c.least, c.most, c.start, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Stats().Capacity; got != c.want {
				t.Errorf("%+v: the gate has %d", c, got)
			}
		}
	})
}

// A gate that is not half full teaches nothing upwards.
func TestKnownNothingIsLearntOfAnEmptyGate(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		w := newWorld(limiter(0, 0, 40, 0), 40)
		for range 20_000 {
			w.now = w.now.Add(10 * ms)
			w.start()
			if got := w.finish(10*ms, forebay.OutcomeDone); got != 40 {
				t.Fatalf("with one call at a time the limit went from 40 to %d", got)
			}
		}
		w.full(20*time.Second, 10*ms)
		if w.limit <= 40 {
			t.Errorf("a full gate whose calls take no longer stays at %d", w.limit)
		}
	})
}

// AD-08: many refusals at once are one sign of overload, and the limit is lower before
// the slot is handed on.
func TestAD08KnownManyRefusalsAtOnceCutOnce(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		w := newWorld(limiter(0, 128, 128, 0), 128)
		for w.inFlight < 128 {
			w.start()
		}
		w.now = w.now.Add(50 * ms)
		for range 10 {
			w.finish(50*ms, forebay.OutcomeOverloaded)
		}
		if want := 115; w.limit != want {
			t.Errorf("ten at once: from 128 to %d, not %d", w.limit, want)
		}
		w.now = w.now.Add(time.Second)
		if w.finish(50*ms, forebay.OutcomeOverloaded); w.limit != 103 {
			t.Errorf("one more, later: %d, not 103", w.limit)
		}
	})
}

// AD-11: what was ignored or cut off teaches nothing, however long it took.
func TestAD11KnownWhatSaysNothingTeachesNothing(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		play := func(noise bool) []int {
			w := newWorld(limiter(0, 0, 20, 0), 20)
			var limits []int
			for i := range 4000 {
				w.now = w.now.Add(5 * ms)
				w.start()
				if noise && i%3 == 0 {
					w.start()
					w.finish(time.Duration(i)*time.Second, []forebay.Outcome{forebay.OutcomeIgnored, forebay.OutcomeAborted}[i%2])
				}
				if w.inFlight >= 15 {
					w.finish(time.Duration(40+i%50)*ms, forebay.OutcomeDone)
				}
				limits = append(limits, w.limit)
			}
			return limits
		}
		plain, noisy := play(false), play(true)
		for i := range plain {
			if plain[i] != noisy[i] {
				t.Fatalf("after %d calls the limit is %d, and %d with calls that say nothing", i, plain[i], noisy[i])
			}
		}
	})
}

// AD-09: a limit that is right at its maximum stays there.
func TestAD09KnownTheMaximumIsNoFault(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		w := newWorld(limiter(0, 20, 10, 0), 10)
		w.full(time.Minute, 50*ms)
		if w.limit != 20 {
			t.Fatalf("after a minute it is %d of 20", w.limit)
		}
		for range 1000 {
			w.full(200*ms, 50*ms)
			if w.limit != 20 {
				t.Fatalf("at its maximum it falls to %d", w.limit)
			}
		}
	})
}

const usual = 4 * time.Second // that calls take in the tests of an hour

// slowly plays a backend of 50 servers to a limiter, with so many calls in that time.
func slowly(t *testing.T, l forebay.Limiter, rate float64, length time.Duration, changes ...simulate.Change) *simulate.Result {
	b := backend{"hour", 50, 50, simulate.Resource{Servers: 50, Changes: changes}, simulate.Uniform{From: usual / 2, To: 3 * usual / 2}, 0}
	sc := b.scenario(rate/50/usual.Seconds(), func(int) admit.Limiter { return simulate.Limiter(l) })
	sc.Clients[0].Deadline = 10 * usual
	sc.For, sc.WarmUp, sc.Every = length, 0, 10*time.Second
	return run(t, sc)
}

// AD-03: in an hour of mild overload the limit does not climb for ever: what is healthy
// bounds it, and Max where nobody has said that.
func TestAD03KnownMildOverload(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		for _, c := range []struct {
			most    int
			healthy time.Duration
			bound   float64
		}{{120, 0, 120}, {5000, usual, 160}} {
			r := slowly(t, limiter(1, c.most, 20, c.healthy), 60, time.Hour)
			last := r.Points[len(r.Points)-1].Limit[0]
			if last > c.bound+.5 { // a mean, and not to the last digit
				t.Errorf("at most %d, healthy is %v: after an hour the limit is %.0f", c.most, c.healthy, last)
			}
		}
	})
}

// AD-02, AD-06: a backend that is 20 times slower for half an hour teaches nothing that
// lasts, if the limiter was told what is healthy; and it goes on to learn.
func TestAD02KnownLongIncident(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		r := slowly(t, limiter(1, 5000, 20, usual), 40, 45*time.Minute,
			simulate.Change{At: 5 * time.Minute, Speed: .05}, simulate.Change{At: 35 * time.Minute, Speed: 1})
		at := func(when time.Duration) simulate.Point { return r.Points[when/(10*time.Second)] }
		before, sick, after := at(5*time.Minute-10*time.Second), at(34*time.Minute), at(45*time.Minute-10*time.Second)
		if sick.Limit[0] >= before.Limit[0]*.8 {
			t.Errorf("the limit went from %.0f to %.0f while calls took 20 times as long", before.Limit[0], sick.Limit[0])
		}
		if after.Goodput < .8*before.Goodput {
			t.Errorf("%.1f calls a second before, %.1f ten minutes after it", before.Goodput, after.Goodput)
		}
	})
}

// QU-18: a limit of 4.9 does not let a fifth call in.
func TestQU18FractionsAdmitNobody(t *testing.T) {
	l, err := NewAIMD(AIMDConfig{Start: 4})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(l, 4)
	for w.inFlight < 4 {
		w.start()
	}
	for range 3 {
		w.now = w.now.Add(ms)
		if got := w.finish(ms, forebay.OutcomeDone); got != 4 || l.limit <= 4 || l.limit >= 5 {
			t.Fatalf("%v is a limit of %d", l.limit, got)
		}
		w.start()
	}
}

func TestKnownWhatIsWrongIsSaid(t *testing.T) {
	for _, c := range []struct {
		config interface{ fill() error }
		want   string
	}{
		{&AIMDConfig{Timeout: -1}, "adaptive: Timeout is -1ns; it must be 0 (meaning 1s) to 24h"},
		{&AIMDConfig{Backoff: 1}, "adaptive: Backoff is 1; it must be 0 (meaning 0.9) or from 0.5 to less than 1"},
		{&AIMDConfig{Min: 3, Max: 2}, "adaptive: Max is 2; it must be from Min, 3, to 1048575"},
		{&VegasConfig{Healthy: -1}, "adaptive: Healthy is -1ns; it must be 0 (meaning unknown) to 24h"},
		{&VegasConfig{Min: -1}, "adaptive: Min is -1, Max 0, Start 0; none may be below 0"},
		{&Gradient2Config{Tolerance: .5}, "adaptive: Tolerance is 0.5; it must be 0 (meaning 1.5) or from 1 to 10"},
		{&Gradient2Config{Headroom: -1}, "adaptive: Headroom is -1; it must be 0 (meaning 4) to 1000"},
		{&Gradient2Config{Max: 10, Start: 11}, "adaptive: Start is 11; it must be from Min, 1, to Max, 10"},
	} {
		if err := c.config.fill(); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
	_, a := NewAIMD(AIMDConfig{Min: -1})
	_, v := NewVegas(VegasConfig{Min: -1})
	_, g := NewGradient2(Gradient2Config{Min: -1})
	if err := errors.Join(a, v, g); a == nil || v == nil || g == nil {
		t.Errorf("of three mistakes these are said: %v", err)
	}
}

func TestKnownAllocateNothing(t *testing.T) {
	eachKnown(t, func(t *testing.T, limiter func(least, most, start int, healthy time.Duration) forebay.Limiter) {
		w := newWorld(limiter(0, 0, 20, 0), 20)
		w.full(time.Second, 20*ms)
		if n := testing.AllocsPerRun(1000, func() {
			w.now = w.now.Add(ms)
			w.finish(20*ms, forebay.OutcomeDone)
			w.start()
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}
