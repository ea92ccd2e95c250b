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
			said := strings.ReplaceAll(strings.ReplaceAll(err.Error(), "adaptive: ", ""), "\n", ", ")
			r.wrongValue(v, "correct it", "cannot be used: %s", said)
		}
		return
	}
	g.MaxInFlight, g.Auto = p.State().Limit, &c
}

// limiters returns what makes the limiter of each instance of a gate.
func limiters(c adaptive.ProbeConfig, seed uint64) func() admit.Limiter {
	return func() admit.Limiter {
		seed++
		c.Seed = seed
		p, err := adaptive.NewProbe(c)
		if err != nil {
			panic("config: a limiter that could be made cannot be made again: " + err.Error())
		}
		return simulate.Limiter(p)
	}
}
