package config

import (
	"strings"

	"example.com/forebay"
	"example.com/forebay/adaptive"
	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// law makes a limiter after a published law. Scenarios have these besides auto, to
// compare.
type law func(seed uint64) (forebay.Limiter, error)

// limiters returns what makes the limiter of each instance of a gate in a scenario, the
// same in every run.
func (l law) limiters(seed uint64) func(instance int) admit.Limiter {
	return func(instance int) admit.Limiter {
		limiter, err := l(seed + uint64(instance) + 1)
		if err != nil {
			panic("config: a limiter that could be made cannot be made again: " + err.Error())
		}
		return simulate.Limiter(limiter)
	}
}

// laws are the keys of max_in_flight for them.
func (r *gatesReader) laws(g *Gate) []key {
	return []key{
		{"aimd", func(v value) {
			var c adaptive.AIMDConfig
			make := func(uint64) (forebay.Limiter, error) { return adaptive.NewAIMD(c) }
			r.law(v, g, make, &c.Min, &c.Max, &c.Start,
				key{"timeout", func(v value) { r.durationInto(&c.Timeout, v, shortest, "1s") }},
				key{"backoff", func(v value) { c.Backoff, _ = r.decimal(v, 0.5, 0.999) }})
		}},
		{"vegas", func(v value) {
			var c adaptive.VegasConfig
			make := func(seed uint64) (forebay.Limiter, error) {
				c := c
				c.Seed = seed
				return adaptive.NewVegas(c)
			}
			r.law(v, g, make, &c.Min, &c.Max, &c.Start,
				key{"healthy", func(v value) { r.durationInto(&c.Healthy, v, shortest, "50ms") }})
		}},
		{"gradient2", func(v value) {
			var c adaptive.Gradient2Config
			make := func(uint64) (forebay.Limiter, error) { return adaptive.NewGradient2(c) }
			r.law(v, g, make, &c.Min, &c.Max, &c.Start,
				key{"healthy", func(v value) { r.durationInto(&c.Healthy, v, shortest, "50ms") }},
				key{"tolerance", func(v value) { c.Tolerance, _ = r.decimal(v, 1, 10) }},
				key{"headroom", func(v value) { c.Headroom, _ = r.number(v, 1, 1000) }})
		}},
	}
}

// law reads the settings of one, those that all have and more.
func (r *gatesReader) law(v value, g *Gate, l law, least, most, start *int, more ...key) {
	number := func(n *int) func(v value) { return func(v value) { *n, _ = r.number(v, 1, maxUnits) } }
	before := len(r.problems)
	r.mapping(v, "gates.NAME.max_in_flight."+v.name, append(more,
		key{"min", number(least)}, key{"max", number(most)}, key{"start", number(start)}))
	if len(r.problems) > before {
		return
	}
	if *start == 0 {
		*start = max(20, *least)
		if *most > 0 {
			*start = min(*start, *most)
		}
	}
	if _, err := l(0); err != nil { // the library's names in small letters are the keys
		said := strings.ToLower(strings.NewReplacer("adaptive: ", "", "\n", ", ").Replace(err.Error()))
		r.wrongValue(v, "let start be from min to max", "cannot be used: %s", said)
		return
	}
	g.MaxInFlight, g.law = *start, l
}
