package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/adaptive"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// Auto is what a limit that finds itself is told. Defaults are filled in; its Seed is 0,
// since each limiter needs one of its own.
type Auto struct {
	Min, Max, Start int
	Deadline        time.Duration
}

const autoWord = "auto"

// otherAutoWords are what other programs call it.
var otherAutoWords = []string{"adaptive", "automatic", "dynamic"}

// auto reads a limit that finds itself: auto, or a mapping with the one key auto.
func (r *gatesReader) auto(v value, g *Gate) {
	var c adaptive.ProbeConfig
	before := len(r.problems)
	if v.Kind == yaml.MappingNode {
		keys := []key{{autoWord, func(v value) { r.autoBounds(v, &c) }}}
		if r.kind == scenarioFile {
			keys = append(keys, r.laws(g)...)
		}
		there := r.mapping(v, "gates.NAME.max_in_flight", keys)
		if len(there) == 0 && len(v.Content) == 0 {
			r.wrongValue(v, "write a number, auto, or "+mappingExamples["gates.NAME.max_in_flight"], "is empty")
		}
	}
	if len(r.problems) > before || g.law != nil {
		return
	}
	p, err := adaptive.NewProbe(c)
	if err != nil { // it is found above, if it is written in the file
		r.wrongValue(v, "let start be from min to max", "cannot be used: %v", err)
		return
	}
	start := int(p.State().Centre)
	c = p.Config()
	g.MaxInFlight, g.Auto = start, &Auto{Min: c.Min, Max: c.Max, Start: start, Deadline: c.Deadline}
}

func (r *gatesReader) autoBounds(v value, c *adaptive.ProbeConfig) {
	number := func(n *int) func(v value) {
		return func(v value) { *n, _ = r.number(v, 1, maxUnits) }
	}
	before := len(r.problems)
	r.mapping(v, "gates.NAME.max_in_flight.auto", []key{
		{"min", number(&c.Min)},
		{"max", number(&c.Max)},
		{"start", number(&c.Start)},
		{"deadline", func(v value) { r.durationInto(&c.Deadline, v, shortest, "1s") }},
	})
	if len(r.problems) > before {
		return
	}
	at := func(key string) Pos { return r.config.at[v.path+"."+key] }
	if c.Max > 0 && c.Max < c.Min {
		r.wrongAt(at("max"), fmt.Sprintf("max is %d, below min, which is %d", c.Max, c.Min), fmt.Sprintf("write a max of at least %d", c.Min))
		return
	}
	if c.Start == 0 {
		return
	}
	if c.Start < c.Min {
		r.wrongAt(at("start"), fmt.Sprintf("start is %d, below min, which is %d", c.Start, c.Min), "let start be from min to max, or leave it out")
	}
	if most := r.mostOf(c); c.Start > most {
		r.wrongAt(at("start"), fmt.Sprintf("start is %d, above max, which is %d", c.Start, most), "let start be from min to max, or leave it out")
	}
}

// mostOf is the maximum that is in force, said or not.
func (r *gatesReader) mostOf(c *adaptive.ProbeConfig) int {
	bounds := *c
	bounds.Start = 0
	p, err := adaptive.NewProbe(bounds)
	if err != nil {
		return maxUnits
	}
	return p.Config().Max
}

// Most returns the highest limit that the gate can have.
func (g Gate) Most() int {
	if g.Auto != nil {
		return g.Auto.Max
	}
	return g.MaxInFlight
}

// Probe returns the settings of a limiter of the library's.
func (a Auto) Probe(seed uint64) adaptive.ProbeConfig {
	return adaptive.ProbeConfig{Min: a.Min, Max: a.Max, Start: a.Start, Deadline: a.Deadline, Seed: seed}
}

// checkShared finds gates whose limit others share, and which are to find it all the
// same.
func (r *gatesReader) checkShared() {
	for _, g := range r.config.Gates {
		if g.Auto != nil && g.Terms != nil {
			r.wrongAt(r.config.at["gates."+g.Name+".max_in_flight"],
				fmt.Sprintf("max_in_flight of gate %s is auto, and cluster has that gate: a limit that others share is not one program's to move", shorten(g.Name)),
				"write a number, or take the gate out of cluster.gates")
		}
	}
}

// autoYAML is such a limit as a file says it.
func (a Auto) yaml() string {
	return fmt.Sprintf("{auto: {min: %d, max: %d, start: %d, deadline: %s}}", a.Min, a.Max, a.Start, FormatDuration(a.Deadline))
}

// limiters returns what makes the limiter of each instance of a gate in a scenario, the
// same in every run.
func limiters(a Auto, seed uint64) func(instance int) admit.Limiter {
	return func(instance int) admit.Limiter {
		p, err := adaptive.NewProbe(a.Probe(seed + uint64(instance) + 1))
		if err != nil {
			panic("config: a limiter that could be made cannot be made again: " + err.Error())
		}
		return simulate.Limiter(p)
	}
}

// autoKeys are those of a limit that finds itself.
var autoKeys = []Key{
	{"gates.NAME.max_in_flight.auto", "auto alone, in place of a number, or a mapping: the limit finds itself. It tries a little more and a little less while the gate is full, and keeps what ends more requests in a second", "a number has to be given",
		"a limit that moves has to be wanted. It takes no processor's load and no earlier times for a measure, so it suits backends that wait as well as those that compute", "", "{max: 200, deadline: 1s}"},
	{"gates.NAME.max_in_flight.auto.deadline", "a duration, 1ms to 24h: how long after it came an answer is still of use", "1s",
		"it is what people take for at once, and most clients wait longer. Requests may take a third of it, then the limit falls", "Half: a slow backend is used less than it could be. Twice: requests take longer before the limit falls.", "1s"},
	{"gates.NAME.max_in_flight.auto.min", "a whole number from 1: the least that the limit ever is", "1",
		"the truth may be 1", "Half: nothing, unless the limit is there. Twice the truth: the backend is overloaded, and nothing is done about it.", "4"},
	{"gates.NAME.max_in_flight.auto.max", "a whole number from min: the most that the limit ever is, what is tried included", "1000, or min if that is more",
		"a backend that takes more at once is rare, and memory is what requests take then", "Half: such a backend is not used. Twice: a mistake is twice as large.", "200"},
	{"gates.NAME.max_in_flight.auto.start", "a whole number from min to max: the limit before anything is known", "20, or what min and max leave of it",
		"it is doubled several times a second if that is too little", "Half or twice: one step up or down, in the first second.", "20"},
}
