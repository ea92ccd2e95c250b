package verdict

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/forebay"
)

// seeds are how many draws of numbers each situation is played with; the first is 1. The
// thresholds were chosen on seeds from 1001 on.
var (
	seeds = flag.Uint64("seeds", 1, "how many draws of numbers each staged situation gets")
	from  = flag.Uint64("from", 1, "the first of them")
)

// situation is one that has a verdict: a calm minute, then the trouble.
type situation struct {
	want    string
	gate    forebay.Config
	calm    func(s *stage)
	trouble func(s *stage)
	remedy  func(s *stage, v Verdict) // what the verdict says
}

// lower does what a verdict with a limit says.
func lower(s *stage, v Verdict) { s.setLimit(v.Limit) }

func (s *stage) setLimit(n int) {
	if err := s.gate.SetLimit(n); err != nil {
		s.Error(err)
	}
}

var situations = map[string]situation{
	"pool too small": {
		want: "bottleneck_elsewhere", gate: forebay.Config{},
		calm: func(s *stage) {
			s.pool = make(chan struct{}, max(1, s.gate.Config().MaxInFlight/4))
			s.rate = .3 * float64(cap(s.pool)) / s.service.Seconds()
		},
		trouble: func(s *stage) { s.rate *= 8 },
		remedy:  lower,
	},
	"limit too strict": {
		want:    "limit_too_strict",
		calm:    func(s *stage) { s.rate = .25 * s.carries() },
		trouble: func(s *stage) { s.rate = 1.6 * s.carries() },
		remedy:  lower,
	},
	"limit too lax": {
		want: "limit_too_lax", gate: forebay.Config{MaxInFlight: 40},
		calm: func(s *stage) {
			s.quick()
			s.cores = float64(2 + s.dice.IntN(5))
			s.rate = .3 * s.cores / s.service.Seconds()
		},
		trouble: func(s *stage) { s.rate *= 5 },
		remedy:  lower,
	},
	"leak": {
		want:    "leak_suspected",
		calm:    func(s *stage) { s.quick() },
		trouble: func(s *stage) { s.hang = min(.5, 2*float64(s.gate.Config().MaxInFlight)/(10*s.rate)) },
		remedy:  func(s *stage, _ Verdict) { s.restart() },
	},
	"retry storm": {
		want: "retry_storm",
		calm: func(s *stage) { s.rate = .4 * s.carries() },
		trouble: func(s *stage) {
			s.rate = 1.3 * s.carries()
			s.refused = s.comeBack(6)
		},
		remedy: func(s *stage, _ Verdict) { s.rate, s.refused = .5*s.carries(), nil },
	},
	"slow readers": {
		want: "slow_readers",
		calm: func(s *stage) { s.rate = .4 * s.carries() },
		trouble: func(s *stage) {
			s.reader = func() time.Duration {
				return time.Duration(s.dice.Float64() * 12 * float64(s.service) * max(1, 1/s.service.Seconds()))
			}
		},
		remedy: func(s *stage, _ Verdict) { s.reader = nil }, // hold: upstream_done
	},
}

// restart ends the calls that hang, as a time limit or a restart of the backend does.
func (s *stage) restart() {
	s.hang = 0
	close(s.hung)
	s.hung = make(chan struct{})
}

// quick: calls take 20 to 150 ms, so that in ten seconds there is something to see.
func (s *stage) quick() {
	s.service = time.Duration(20+s.dice.IntN(130)) * time.Millisecond
	s.rate = min(100, .5*s.carries())
}

// comeBack makes callers that are refused come back at once, so many times.
func (s *stage) comeBack(times int) func(dice *rand.Rand, again func()) {
	return func(dice *rand.Rand, again func()) {
		if dice.IntN(times) == 0 {
			return // some give up
		}
		time.Sleep(time.Duration(50+dice.IntN(300)) * time.Millisecond)
		s.Early("reports")
		again()
	}
}

// TestSituations: within ten seconds of trouble the verdict names the gate and the cause,
// and nothing else; what it says to do, done, takes it back.
func TestSituations(t *testing.T) {
	for name, sit := range situations {
		for seed := *from; seed < *from+*seeds; seed++ {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				t.Parallel()
				staged(t, seed, sit.gate, func(s *stage) {
					if sit.calm != nil {
						sit.calm(s)
					}
					s.run(60)
					if found := s.found(); len(found) > 0 {
						t.Fatalf("%v: %v before anything is wrong", s, s.Verdicts())
					}
					sit.trouble(s)
					s.run(10)
					found := s.Verdicts()
					if len(found) != 1 || found[0].Gate != "reports" || found[0].Verdict != sit.want {
						t.Fatalf("%v: after 10 s of it %+v, want %s\n%s", s, found, sit.want, s.lately())
					}
					t.Logf("%v: %s; %s", s, found[0].Text, found[0].Remedy)
					s.run(10)
					found = s.Verdicts()
					if len(found) != 1 || found[0].Verdict != sit.want {
						t.Fatalf("%v: later %+v, want %s\n%s", s, found, sit.want, s.lately())
					}
					s.cure(sit, found[0])
				})
			})
		}
	}
}

// cure does what a verdict says until it is gone, and others with it.
func (s *stage) cure(sit situation, v Verdict) {
	for range 4 {
		sit.remedy(s, v)
		s.run(30)
		found := s.Verdicts()
		if len(found) == 0 {
			return
		}
		if found[0].Verdict != sit.want {
			s.Fatalf("%v: the remedy of %s makes %+v\n%s", s, sit.want, found[0], s.lately())
		}
		v = found[0]
	}
	s.Fatalf("%v: %+v is still up\n%s", s, v, s.lately())
}

// lately shows the last seconds, for whoever looks into a failure.
func (s *stage) lately() (told string) {
	h := (*s.gates.Load())["reports"].history
	for ago := 12; ago >= 0; ago-- {
		told += fmt.Sprintf("%+v\n", *h.at(ago))
	}
	for i, l := range h.levels {
		if l.N > 0 {
			told += fmt.Sprintf("level %d: %.0f calls, %.3f s, %.3f s\n", i, l.N, l.Held/l.N, math.Exp(float64(l.Log/l.N)))
		}
	}
	return told
}

// healthy are variations of which nothing is wrong.
var healthy = map[string]func(s *stage){
	"nobody comes":               func(s *stage) { s.rate = 0; s.run(90) },
	"night":                      func(s *stage) { s.rate = .2; s.run(180) },
	"day":                        func(s *stage) { s.run(120) },
	"day at three quarters":      func(s *stage) { s.rate = .7 * s.carries(); s.run(90) },
	"processor not known":        func(s *stage) { s.noCPU = true; s.run(90) },
	"processor busy with others": func(s *stage) { s.idle = .97; s.run(90) },
	"morning":                    func(s *stage) { s.every = func(int) { s.rate += .006 * s.carries() }; s.rate = 0; s.run(100) },
	"evening":                    func(s *stage) { s.every = func(int) { s.rate *= .95 }; s.rate = .7 * s.carries(); s.run(100) },
	"a burst that is absorbed":   func(s *stage) { s.run(60); s.flood(2, 1.5); s.run(30) },
	"a burst that is not":        func(s *stage) { s.run(60); s.flood(3, 4); s.run(30) },
	"bursts all the time":        func(s *stage) { s.every = func(n int) { s.burst(n%15 == 14) }; s.run(150) },
	"deploy":                     func(s *stage) { s.run(60); s.deploy(); s.run(60) },
	"cold start":                 func(s *stage) { s.service *= 4; s.rate = .15 * s.carries(); s.run(10); s.service /= 4; s.run(60) },
	"one slow route":             func(s *stage) { s.rate = .1 * s.carries(); s.route = s.slowRoute(20, .1); s.run(120) },
	"a slow route begins":        func(s *stage) { s.rate = .2 * s.carries(); s.run(60); s.route = s.slowRoute(10, .1); s.run(60) },
	"a batch at full processor":  func(s *stage) { s.cores = float64(s.gate.Config().MaxInFlight); s.rate = .8 * s.carries(); s.run(90) },
	"streams that last":          func(s *stage) { s.run(30); s.streams(); s.run(90) },
	"a stall of a second":        func(s *stage) { s.run(60); s.stall(time.Second); s.run(30) },
	"a few slow clients":         func(s *stage) { s.rate = .3 * s.carries(); s.reader = s.someRead(.01, 10*time.Second); s.run(120) },
	"callers that wait as told": func(s *stage) {
		s.refused = func(_ *rand.Rand, again func()) { time.Sleep(3 * time.Second); again() }
		s.rate = .3 * s.carries()
		s.run(60)
		s.flood(2, 2)
		s.run(40)
	},
	"somebody closes the gate":  func(s *stage) { s.run(30); s.setLimit(0); s.run(60) },
	"somebody raises the limit": func(s *stage) { s.run(30); s.setLimit(3 * s.gate.Config().MaxInFlight); s.run(60) },
	"very uneven calls":         func(s *stage) { s.spread = 1; s.rate = .4 * s.carries(); s.run(120) },
	"one call that hangs": func(s *stage) {
		s.run(40)
		s.hang = 1
		s.come()
		s.hang = 0
		s.rate *= .8
		s.run(60)
	},
	"callers that leave":      func(s *stage) { s.run(60); s.leavers(); s.run(30) },
	"a drain":                 func(s *stage) { s.run(60); s.drain(); s.run(40) },
	"one caller has too much": func(s *stage) { s.caller = s.greedy(); s.run(90) },
}

func (s *stage) flood(seconds int, times float64) {
	was := s.rate
	s.rate = times * s.carries()
	s.run(seconds)
	s.rate = was
}

func (s *stage) burst(on bool) {
	s.rate = .4 * s.carries()
	if on {
		s.rate = 2 * s.carries()
	}
}

// deploy: the backend is away for two seconds, errors come fast, then it is cold.
func (s *stage) deploy() {
	was := s.service
	s.service = time.Millisecond
	s.run(2)
	s.service = 3 * was
	s.rate *= .6
	s.run(4)
	s.rate /= .6
	s.service = was
}

func (s *stage) slowRoute(times, share float64) func() (string, float64) {
	return func() (string, float64) {
		if s.dice.Float64() < share {
			return "GET /slow", times
		}
		return "GET /reports/", 1
	}
}

// streams: a fifth of the slots are held for as long as the test lasts.
func (s *stage) streams() {
	was, hang := s.route, s.hang
	s.route, s.hang = func() (string, float64) { return "GET /events", 1 }, 1
	for range s.gate.Config().MaxInFlight / 5 {
		s.come()
	}
	s.route, s.hang = was, hang
	s.rate *= .7
}

// stall: the whole program stands still, nobody decides and nobody judges.
func (s *stage) stall(d time.Duration) { time.Sleep(d) }

func (s *stage) someRead(share float64, d time.Duration) func() time.Duration {
	return func() time.Duration {
		if s.dice.Float64() < share && s.Blocked("reports").Load() < int64(s.gate.Config().MaxInFlight/5) {
			return d
		}
		return 0
	}
}

func (s *stage) leavers() {
	s.rate *= .9
	s.every = func(int) {
		for range 10 {
			s.Observe(forebay.Event{Gate: "reports", Decision: forebay.Canceled, Limit: s.gate.Config().MaxInFlight})
		}
	}
}

func (s *stage) drain() {
	s.calls.Go(func() { _ = s.gate.Drain(s.ctx) })
	s.run(10)
	s.gate.Resume()
}

// greedy: a third of the calls are one caller's, who may have two at once.
func (s *stage) greedy() func() string {
	c := s.gate.Config()
	c.PerCaller.MaxInFlight = 2
	if err := s.gate.Reconfigure(c); err != nil {
		s.Error(err)
	}
	s.Watch(s.gate, s.beside)
	n := 0
	return func() string {
		if s.dice.IntN(3) == 0 {
			return "greedy"
		}
		n++
		return fmt.Sprint(n)
	}
}

// TestHealthy: of a gate that does its work nothing is said.
func TestHealthy(t *testing.T) {
	if len(healthy) < 20 {
		t.Errorf("%d variations, want 20 at least", len(healthy))
	}
	for name, play := range healthy {
		for seed := *from; seed < *from+*seeds; seed++ {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				t.Parallel()
				staged(t, seed, forebay.Config{}, func(s *stage) {
					play(s)
					for _, c := range s.changes {
						if !c.WaitsLong {
							t.Errorf("%v: %+v\n%s", s, c, s.lately())
							break
						}
					}
				})
			})
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k := range kindCount {
		if name := k.String(); name == "" || kindOf(name) != k || !slices.Contains(Kinds(), name) {
			t.Errorf("kind %d is called %q", k, name)
		}
	}
	if kindCount.String() != "unknown" || kindOf("x") != kindCount {
		t.Error("a kind that is none has a name")
	}
}
