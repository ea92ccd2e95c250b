package main

import (
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

const (
	ms    = time.Millisecond
	can   = 1000 // calls a second that the backend of every trial can carry
	right = 50   // the limit at which it does, for calls of 50 ms
)

// trial is a scenario, and what is asked of it.
type trial struct {
	id, name string
	scenario simulate.Scenario
	lines    []line
}

// line is one figure of a trial and the bound that it has to keep.
type line struct {
	what    string
	atLeast float64 // or, of one that must not be higher,
	atMost  float64
	of      func(r *simulate.Result) float64
}

func atLeast(what string, bound float64, of func(*simulate.Result) float64) line {
	return line{what: what, atLeast: bound, of: of}
}

func atMost(what string, bound float64, of func(*simulate.Result) float64) line {
	return line{what: what, atMost: bound, of: of}
}

// behind is a scenario of one gate with these lanes, for calls of the crowds given: fifty
// servers, calls of 50 ms, and the limit that is right for that.
func behind(lanes []admit.LaneConfig, crowds ...simulate.Client) simulate.Scenario {
	sc := simulate.Scenario{
		For: time.Minute, WarmUp: 10 * time.Second,
		Resources: []simulate.Resource{{Name: "backend", Servers: right}},
		Gates:     []simulate.Gate{{Name: "gate", Config: admit.Config{Limit: right, MaxWait: 100 * ms, Measure: true, Lanes: lanes, MaxCallers: admit.DefaultMaxCallers}}},
		Clients:   crowds,
	}
	for i, c := range crowds {
		sc.Routes = append(sc.Routes, simulate.Route{
			Name: c.Name, Lane: c.Name, Gates: []string{"gate"}, Work: []simulate.Visit{{At: "backend", Takes: simulate.Exponential(50 * ms)}},
		})
		sc.Clients[i].Route = c.Name
	}
	return sc
}

// crowd is callers who want an answer within a second.
func crowd(name string, load float64) simulate.Client {
	return simulate.Client{Name: name, Deadline: time.Second, Arrivals: simulate.Arrivals{Rate: load * can}}
}

var classes = []admit.LaneConfig{{Name: "top", Rank: 1}, {Name: "middle", Rank: 2}, {Name: "low", Rank: 3}}

// suite returns S9 to S13 of the design, and what is asked of every line.
func suite(short bool) []*trial {
	all := []*trial{
		priorities("5 % of 10 x", .5, 4.5, 5),
		priorities("10 % of 5 x", .5, 2, 2.5),
		priorities("40 % of 2 x", .8, .6, .6),
		starving(), fair(1000), fair(20), crowdAtOnce(), spike(), mixedCost(), deadlines(),
	}
	for _, load := range []float64{1, 2, 5, 10} {
		all = append(all, plain(load))
	}
	if short {
		for _, t := range all {
			if t.scenario.For == time.Minute {
				t.scenario.For = 25 * time.Second
			}
		}
	}
	return all
}

// plain is one crowd without lanes, for what a line costs the backend: the same calls
// before a line of hundreds give the backend all that it could do.
func plain(load float64) *trial {
	t := &trial{id: "line", name: times(load), scenario: behind(nil, crowd("all", load))}
	t.lines = []line{atLeast("goodput, less what an endless line gives", -.01, func(r *simulate.Result) float64 {
		best := t.scenario
		best.Seed = r.Seed
		best.Gates = []simulate.Gate{t.scenario.Gates[0]}
		best.Gates[0].Config.MaxWaiting = 1 << 20
		b, err := simulate.Run(&best, nil)
		if err != nil {
			panic(err)
		}
		return r.Goodput - b.Goodput
	})}
	if load >= 2 {
		t.lines = append(t.lines, atMost("of the refused, who waited for it in vain", .001, func(r *simulate.Result) float64 {
			return part(float64(r.Gates[0].Decisions["rejected_timeout"]), float64(r.Attempts)-float64(r.Gates[0].Decisions["accepted"]))
		}))
	}
	return t
}

func priorities(name string, top, middle, low float64) *trial {
	return &trial{
		id: "S9", name: "top is " + name, scenario: behind(classes, crowd("top", top), crowd("middle", middle), crowd("low", low)),
		lines: []line{
			atLeast("of top, answered", .999, answered(0)),
			atLeast("goodput", .98, func(r *simulate.Result) float64 { return r.Goodput }),
		},
	}
}

func starving() *trial {
	return &trial{
		id: "S9", name: "top alone is 1.5 x", scenario: behind(classes, crowd("top", 1.5), crowd("low", .2)),
		lines: []line{
			atLeast("low's part of what runs", .01, accepted(1)),
			atMost("low's part of what runs", .03, accepted(1)),
			atLeast("goodput", .98, func(r *simulate.Result) float64 { return r.Goodput }),
		},
	}
}

// fair is a caller who sends nine of ten calls of five times the load, and others who
// together want half of the backend, which is their max-min share.
func fair(others int) *trial {
	light, heavy := crowd("light", .5), crowd("heavy", 4.5)
	light.Callers, heavy.Callers = others, 1
	sc := behind(nil, light, heavy)
	sc.Gates[0].Config.Fair = true
	return &trial{id: "S10", name: plural(others) + " against one", scenario: sc, lines: []line{
		atLeast("of the light, answered", .85, answered(0)),
		atLeast("goodput", .98, func(r *simulate.Result) float64 { return r.Goodput }),
	}}
}

// crowdAtOnce is three thousand calls at one moment, as a cron job makes them, beside
// half of the load. Whoever is refused comes back when he is told to.
func crowdAtOnce() *trial {
	job := crowd("job", 0)
	for range 3000 {
		job.Arrivals.Times = append(job.Arrivals.Times, 20*time.Second)
	}
	job.Retries = simulate.Retries{Max: 5, Honours: true}
	sc := behind(nil, crowd("others", .5), job)
	sc.Every = time.Second
	sc.For = 80 * time.Second
	return &trial{id: "S11", name: "3000 calls at once", scenario: sc, lines: []line{
		atLeast("of the job, answered", .99, answered(1)),
		atLeast("of the others, answered", .97, answered(0)),
		atMost("the most that comes again in a second, of what can run", 1.5, func(r *simulate.Result) float64 {
			most := 0.0
			for _, p := range r.Points {
				if p.From > 20.5 {
					most = max(most, (p.Attempts-p.Offered)/can)
				}
			}
			return most
		}),
	}}
}

// spike is five times the load for ten seconds. Appointments reach for two minutes.
func spike() *trial {
	c := crowd("all", 1)
	c.Arrivals.Steps = []simulate.Step{{At: 0, Times: .5}, {At: 20 * time.Second, Times: 5}, {At: 30 * time.Second, Times: .5}}
	c.Retries = simulate.Retries{Max: 5, Honours: true}
	sc := behind(nil, c)
	sc.For = 3 * time.Minute
	sc.Gates[0].RetryHi = 120
	return &trial{id: "S11", name: "5 x for 10 s", scenario: sc, lines: []line{
		atMost("attempts a call", 1.4, func(r *simulate.Result) float64 { return part(float64(r.Attempts), float64(r.Calls)) }),
		atLeast("answered", .85, answered(0)),
	}}
}

// mixedCost is calls of 5 ms beside reports of 500 ms that alone would be ten times what
// the backend can do; they may use a third of it.
func mixedCost() *trial {
	orders, reports := crowd("orders", 4), crowd("reports", .7)
	sc := behind([]admit.LaneConfig{{Name: "orders", Rank: 1}, {Name: "reports", Rank: 2, MaxShare: .3}}, orders, reports)
	sc.Routes[0].Work[0].Takes = simulate.Exponential(5 * ms)
	sc.Routes[1].Work[0].Takes = simulate.Exponential(500 * ms)
	return &trial{id: "S12", name: "1 : 100 in cost", scenario: sc, lines: []line{
		atLeast("of the cheap, answered", .97, answered(0)),
		atLeast("goodput of the reports' third", .85, func(r *simulate.Result) float64 {
			return float64(r.Clients[1].Accepted) / r.Seconds / (.3 * right / .5)
		}),
	}}
}

// deadlines is callers of all kinds of patience, who say it, and calls of 5 ms.
func deadlines() *trial {
	var crowds []simulate.Client
	for _, d := range []struct {
		name string
		time.Duration
	}{{"50 ms", 50 * ms}, {"200 ms", 200 * ms}, {"1 s", time.Second}, {"5 s", 5 * time.Second}} {
		c := crowd(d.name, .5)
		c.Deadline, c.Tells = d.Duration, true
		crowds = append(crowds, c)
	}
	sc := behind(nil, crowds...)
	sc.Resources[0].Servers, sc.Gates[0].Config.Limit = 5, 5
	for i := range sc.Routes {
		sc.Routes[i].Work[0].Takes = simulate.Exponential(5 * ms)
	}
	return &trial{id: "S13", name: "deadlines of 50 ms to 5 s", scenario: sc, lines: []line{
		atMost("of the work, for callers who had left", .01, func(r *simulate.Result) float64 { return r.Wasted }),
		atLeast("goodput", .97, func(r *simulate.Result) float64 { return r.Goodput }),
	}}
}
