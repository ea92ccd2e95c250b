package simulate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/forebay/internal/admit"
)

// queue is one gate of limit n before a resource that serves everybody at full speed.
func queue(limit int, c admit.Config, rate float64, takes Times) *Scenario {
	c.Limit, c.Measure = limit, true
	return &Scenario{
		Name: "queue", For: 60 * time.Second, Seed: 1,
		Resources: []Resource{{Name: "db"}},
		Gates:     []Gate{{Name: "g", Config: c}},
		Routes:    []Route{{Name: "r", Gates: []string{"g"}, Work: []Visit{{"db", takes}}}},
		Clients:   []Client{{Name: "c", Route: "r", Arrivals: Arrivals{Rate: rate}}},
	}
}

func run(t *testing.T, sc *Scenario) *Result {
	t.Helper()
	r, err := Run(sc, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by*want {
		t.Errorf("%s is %.4f; theory says %.4f", what, got, want)
	}
}

// erlangB is the part of calls that c servers without a line refuse, offered a.
func erlangB(c int, a float64) float64 {
	b := 1.0
	for i := 1; i <= c; i++ {
		b = a * b / (float64(i) + a*b)
	}
	return b
}

// TestLossIsErlangs: without a line the part that is refused is Erlang's formula,
// whatever the distribution of the times.
func TestLossIsErlangs(t *testing.T) {
	const mean = 50 * time.Millisecond
	for _, takes := range []Times{
		Exponential(mean), Fixed(mean), Lognormal{mean, 1}, Uniform{0, 2 * mean},
		Mix{{.9, Fixed(15 * time.Millisecond)}, {.1, Fixed(365 * time.Millisecond)}},
	} {
		r := run(t, queue(20, admit.Config{}, 400, takes))
		refused := float64(r.Gates[0].Decisions["rejected_busy"]) / float64(r.Attempts)
		near(t, fmt.Sprintf("the part refused with %T", takes), refused, erlangB(20, 20), .08)
	}
}

// TestWaitIsErlangs: who may wait for ever waits as Erlang says, and for 1 of c servers
// of a resource just as long as for 1 of c slots of a gate.
func TestWaitIsErlangs(t *testing.T) {
	const servers, rate, mean = 10, 160.0, .05
	a := rate * mean
	b := erlangB(servers, a)
	wait := b / (1 - a/servers*(1-b)) * mean / (servers - a)
	sc := queue(servers, admit.Config{MaxWait: time.Hour, MaxWaiting: 1 << 20}, rate, Exponential(50*time.Millisecond))
	sc.For = 500 * time.Second
	r := run(t, sc)
	near(t, "the mean wait in line", r.Clients[0].Waited.Mean, wait, .1)

	sc = queue(1, admit.Config{}, rate, Exponential(50*time.Millisecond))
	sc.For = 500 * time.Second
	sc.Resources[0].Servers, sc.Routes[0].Gates = servers, nil
	r = run(t, sc)
	near(t, "the mean time at a pool", r.Clients[0].Took.Mean, wait+mean, .05)
	near(t, "what the pool does", r.Resources[0].Busy, a/servers, .02)
}

// TestSharingIsFair: a processor that is shared is busy for the part that is asked of it,
// and a call takes 1 ÷ (1 - that) of its time, whatever the distribution.
func TestSharingIsFair(t *testing.T) {
	for _, takes := range []Times{Exponential(10 * time.Millisecond), Pareto{10 * time.Millisecond, 2.5}} {
		sc := queue(1, admit.Config{}, 70, takes)
		sc.Resources[0].Cores, sc.Routes[0].Gates, sc.For = 1, nil, 700*time.Second
		r := run(t, sc)
		near(t, fmt.Sprintf("the mean time with %T", takes), r.Clients[0].Took.Mean, .01/(1-.7), .08)
	}
}

// TestContention: n callers that are always there get what the law of scalability says.
func TestContention(t *testing.T) {
	for _, n := range []int{1, 20, 80} {
		for name, b := range map[string]Resource{
			"contention": {Name: "db", Sigma: .02, Kappa: .0006},
			"cliff":      {Name: "db", Cliff: Cliff{30, 1.5}},
			"table":      {Name: "db", Throughput: []Rate{{1, 1}, {10, 9}, {50, 20}}},
		} {
			k := float64(n)
			want := map[string]float64{
				"contention": k / (1 + .02*(k-1) + .0006*k*(k-1)),
				"cliff":      min(k, 30*math.Pow(30/max(k, 30), 1.5)),
				"table":      map[int]float64{1: 1, 20: 9 + 11*.25, 80: 20}[n],
			}[name]
			sc := queue(n, admit.Config{MaxWait: time.Hour, MaxWaiting: 1 << 20}, 1500, Exponential(50*time.Millisecond))
			sc.Resources[0], sc.For = b, 10*time.Second
			r := run(t, sc)
			near(t, fmt.Sprintf("%s: answers a second by %d at once", name, n), float64(r.Answered)/r.Seconds, want/.05, .1)
		}
	}
}

// TestMeans: what is drawn has the mean that is said.
func TestMeans(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	const mean = 20 * time.Millisecond
	for _, takes := range []Times{
		Fixed(mean), Exponential(mean), Uniform{mean / 2, mean}, Lognormal{mean, 1}, Pareto{mean, 2.5},
		Mix{{.25, Fixed(mean)}, {.75, Exponential(mean / 2)}},
	} {
		sum := 0.0
		const n = 100_000
		for range n {
			sum += takes.Draw(dice)
		}
		near(t, fmt.Sprintf("the mean of %T", takes), sum/n, takes.Mean(), .03)
	}
}

// everything is a scenario with all there is.
func everything() *Scenario {
	return &Scenario{
		Name: "everything", For: 20 * time.Second, WarmUp: 2 * time.Second, Every: 500 * time.Millisecond, Seed: 7, Instances: 2,
		Resources: []Resource{
			{Name: "web", Cores: 4, Sigma: .01},
			{Name: "db", Servers: 20, Changes: []Change{{5 * time.Second, .5, 0}, {8 * time.Second, 1, 10}, {12 * time.Second, 0, 20}}},
			{Name: "disk", Cliff: Cliff{5, 1}, Pauses: Pauses{3 * time.Second, 200 * time.Millisecond}},
		},
		Gates: []Gate{
			{Name: "orders", Config: admit.Config{Limit: 10, MaxWait: 100 * time.Millisecond, Measure: true, PerCaller: 3, MaxCallers: 8}},
			{Name: "reports", Config: admit.Config{Limit: 3, MaxWait: 200 * time.Millisecond, MaxWaiting: 4, Measure: true}},
		},
		Routes: []Route{
			{Name: "orders", Gates: []string{"orders"}, Work: []Visit{{"web", Exponential(time.Millisecond)}, {"db", Exponential(20 * time.Millisecond)}}},
			{Name: "export", Gates: []string{"orders", "reports"}, Cost: 2, Work: []Visit{{"db", Lognormal{50 * time.Millisecond, 1}}, {"disk", Fixed(5 * time.Millisecond)}}},
			{Name: "page", Work: []Visit{{"web", Uniform{0, time.Millisecond}}}},
		},
		Clients: []Client{
			{Name: "shoppers", Route: "orders", Callers: 20, Deadline: time.Second, Arrivals: Arrivals{Rate: 1200, Bursts: Bursts{1.75, .25, 200 * time.Millisecond}}, Retries: Retries{Max: 2, Backoff: 50 * time.Millisecond, Jitter: .5}},
			{Name: "office", Route: "export", Deadline: 300 * time.Millisecond, Tells: true, Cancels: true, Arrivals: Arrivals{Rate: 60, Batch: 10, Steps: []Step{{5 * time.Second, 4}, {10 * time.Second, 0}, {11 * time.Second, 1}}}, Retries: Retries{Max: 3, Honours: true, Backoff: 100 * time.Millisecond}},
			{Name: "pages", Route: "page", Arrivals: Arrivals{Rate: 100, Even: true, Times: []time.Duration{0, time.Second, time.Second}}},
			{Name: "hasty", Route: "orders", Deadline: 15 * time.Millisecond, Arrivals: Arrivals{Rate: 50}, Retries: Retries{Max: 1, Backoff: 7 * time.Millisecond, Jitter: 1}},
		},
	}
}

// TestRerunsAreIdentical: bit for bit, and another seed is another run.
func TestRerunsAreIdentical(t *testing.T) {
	told := func(seed uint64) string {
		sc := everything()
		sc.Seed = seed
		text, err := json.Marshal(run(t, sc))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := told(7)
	if again := told(7); again != first {
		t.Error("two runs of one seed differ")
	}
	if told(8) == first {
		t.Error("two seeds give the same run")
	}
}

// TestCallsAreConserved: of many random scenarios, every call is answered, given up or on
// its way, and every attempt ran, was refused or waits. Run itself checks the machines.
func TestCallsAreConserved(t *testing.T) {
	for seed := range uint64(4) {
		sc := everything()
		sc.Seed, sc.WarmUp, sc.For = seed, 0, 15*time.Second
		for i := range sc.Clients {
			sc.Clients[i].Arrivals.Times = nil
		}
		s := newSim(sc)
		s.until(instant(sc.For))
		for i := range s.crowds {
			s.crowds[i].Arrivals.Rate, s.crowds[i].mean = 0, 0
			s.agenda.set(s.crowds[i].comes, never)
		}
		// All that came ends, now that nobody comes any more.
		for range 600 {
			for i := range s.crowds {
				s.crowds[i].mean = 0
				s.crowds[i].Arrivals.Steps = nil
			}
			s.until(s.now + instant(time.Second))
		}
		r := s.result()
		for _, c := range r.Clients {
			refused := uint64(0)
			for _, n := range c.Refused {
				refused += n
			}
			if c.Calls != c.Answered+c.GivenUp || c.Calls == 0 {
				t.Errorf("seed %d: %s: %d calls, %d answered, %d given up", seed, c.Client, c.Calls, c.Answered, c.GivenUp)
			}
			if c.Attempts != c.Accepted+refused {
				t.Errorf("seed %d: %s: %d attempts, %d ran, %d refused", seed, c.Client, c.Attempts, c.Accepted, refused)
			}
		}
		for _, in := range s.instances {
			for _, g := range in.order {
				if g.machine.InFlight() != 0 || g.machine.Waiting() != 0 {
					t.Errorf("seed %d: %s: %d in flight, %d waiting, though nobody is there", seed, g.Name, g.machine.InFlight(), g.machine.Waiting())
				}
			}
		}
		for _, err := range s.conservation() {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestGatesMeetTheSameCalls: another limit changes neither when calls come nor what work
// they are.
func TestGatesMeetTheSameCalls(t *testing.T) {
	calls := func(limit int) (list []string) {
		sc := everything()
		sc.Gates[0].Config.Limit = limit
		s := newSim(sc)
		s.told = func(c *call, _ admit.Verdict) {
			if c.tries == 1 {
				list = append(list, fmt.Sprint(c.crowd.Name, c.born, c.work, c.caller, c.home))
			}
		}
		s.until(instant(sc.For) - instant(time.Second))
		return list
	}
	count := func(list []string) map[string]int {
		m := map[string]int{}
		for _, l := range list {
			if !strings.HasPrefix(l, "office") { // those whose work ends early are told of less of it
				m[l]++
			}
		}
		return m
	}
	few, many := count(calls(5)), count(calls(15))
	differ := 0
	for l := range few {
		if many[l] == 0 {
			differ++
		}
	}
	if len(few) < 10_000 || differ > 20 { // some have no decision yet at the end
		t.Errorf("%d of %d calls are others", differ, len(few))
	}
}

// TestEndOfWork: the last call of a backend that got slower is served to its end, at the
// pace that holds meanwhile, and one that stands still serves nobody.
func TestEndOfWork(t *testing.T) {
	sc := queue(10, admit.Config{}, 0, Fixed(time.Second))
	sc.For = 30 * time.Second
	sc.Clients[0].Arrivals.Times = []time.Duration{time.Second, 5500 * time.Millisecond, 9500 * time.Millisecond}
	sc.Resources[0].Changes = []Change{{At: 6 * time.Second, Speed: .25}, {At: 9 * time.Second, Speed: 1}}
	sc.Resources[0].Pauses = Pauses{10 * time.Second, 2 * time.Second}
	var ends []time.Duration
	s := newSim(sc)
	s.crowds[0].Deadline = 0
	for s.now < instant(sc.For) {
		was := s.crowds[0].tally.Answered
		s.until(s.now + instant(time.Millisecond))
		if s.crowds[0].tally.Answered > was {
			ends = append(ends, time.Duration(s.now))
		}
	}
	want := []time.Duration{2 * time.Second, 8 * time.Second, 12500 * time.Millisecond}
	if fmt.Sprint(ends) != fmt.Sprint(want) {
		t.Errorf("calls end at %v, not at %v", ends, want)
	}
}

// TestRetryStorm: callers who come again at once keep a backend down that is slow for a
// while and starts work for whoever comes; with a gate it recovers.
func TestRetryStorm(t *testing.T) {
	sc := queue(20, admit.Config{MaxWait: 100 * time.Millisecond}, 280, Exponential(50*time.Millisecond))
	sc.Resources[0] = Resource{Name: "db", Servers: 20, Changes: []Change{{20 * time.Second, .25, 0}, {25 * time.Second, 1, 0}}}
	sc.For, sc.WarmUp = 100*time.Second, 60*time.Second
	sc.Clients[0].Deadline = time.Second
	sc.Clients[0].Retries = Retries{Max: 5, Backoff: 100 * time.Millisecond}
	with := run(t, sc)
	sc.Routes[0].Gates = nil
	without := run(t, sc)
	if with.Goodput < .98 || without.Goodput > .2 {
		t.Errorf("of what could be, %.2f with a gate, %.2f without", with.Goodput, without.Goodput)
	}
	if without.Wasted < .5 {
		t.Errorf("%.2f of the work was for callers who had left", without.Wasted)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	sc := everything()
	sc.For, sc.WarmUp = 0, -1
	sc.Resources[0].Sigma, sc.Resources[2].Pauses.For = -1, time.Hour
	sc.Gates[0].Config.Limit = 0
	sc.Routes[0].Gates = []string{"nobody"}
	sc.Routes[1].Work[0].At, sc.Routes[1].Work[1].Takes = "nowhere", nil
	sc.Clients[0].Route, sc.Clients[1].Name = "none", "shoppers"
	sc.Clients[3].Arrivals = Arrivals{}
	_, err := Run(sc, nil)
	for _, part := range []string{
		"For is 0s", "WarmUp is", `resource "web" has a number below 0`, `resource "disk" pauses for 1h0m0s`, `gate "orders" has Limit 0`,
		`names the gate "nobody"`, `names the resource "nowhere"`, `how long its work takes at "disk"`, `names the route "none"`,
		`client "shoppers" is there twice`, `client "hasty" never calls`,
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not said in %v", part, err)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var h histogram
	for i := range 10_000 {
		h.add(time.Duration(i+1) * 10 * time.Microsecond)
	}
	for _, q := range []float64{.01, .5, .95, .99, .999, 1} {
		near(t, fmt.Sprint("quantile ", q), h.quantile(q).Seconds(), q*.1, .017)
	}
	for d := time.Duration(0); d < 1<<40; d += d/7 + 1 {
		if up := upTo(bucket(d)); up < d || up-d > d/64 {
			t.Fatalf("%d is in the bucket up to %d", d, up)
		}
	}
}

// BenchmarkRun: an operation is one call's arrival, with all that follows from it.
func BenchmarkRun(b *testing.B) {
	sc := queue(40, admit.Config{MaxWait: 100 * time.Millisecond}, 8000, Exponential(10*time.Millisecond))
	sc.Clients[0].Deadline = time.Second
	sc.For = time.Duration(float64(time.Second)*float64(b.N)/8000) + time.Second
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := Run(sc, nil); err != nil {
		b.Fatal(err)
	}
}
