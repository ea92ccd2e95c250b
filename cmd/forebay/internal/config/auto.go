package config

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/adaptive"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// auto reads a limit that finds itself: auto, or a mapping with the one key auto.
func (r *gatesReader) auto(v value, g *Gate) {
	var c adaptive.ProbeConfig
	before := len(r.problems)
	if v.Kind == yaml.MappingNode {
		r.mapping(v, "gates.NAME.max_in_flight", []key{{"auto", func(v value) {
			r.mapping(v, "gates.NAME.max_in_flight.auto", []key{
				{"min", func(v value) { c.Min, _ = r.number(v, 1, maxUnits) }},
				{"max", func(v value) { c.Max, _ = r.number(v, 1, maxUnits) }},
				{"start", func(v value) { c.Start, _ = r.number(v, 1, maxUnits) }},
				{"deadline", func(v value) { r.durationInto(&c.Deadline, v, shortest, "1s") }},
			})
		}}})
	}
	p, err := adaptive.NewProbe(c)
	if err != nil {
		if len(r.problems) == before {
			// The library's names in small letters are the keys.
			said := strings.ToLower(strings.NewReplacer("adaptive: ", "", "\n", ", ").Replace(err.Error()))
			r.wrongValue(v, "let start be from min to max", "cannot be used: %s", said)
		}
		return
	}
	g.MaxInFlight, g.Auto = int(p.State().Centre), &c // where it starts
}

// limiters returns what makes the limiter of each instance of a gate, the same in every
// run.
func limiters(c adaptive.ProbeConfig, seed uint64) func(instance int) admit.Limiter {
	return func(instance int) admit.Limiter {
		c := c
		c.Seed = seed + uint64(instance) + 1
		p, err := adaptive.NewProbe(c)
		if err != nil {
			panic("config: a limiter that could be made cannot be made again: " + err.Error())
		}
		return simulate.Limiter(p)
	}
}
