package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/internal/simulate"
)

// times reads a distribution of times.
func (r *scenarioReader) times(v value) simulate.Times {
	const example = "20ms"
	if v.Kind == yaml.ScalarNode {
		d, _ := r.duration(v, 0, longest, example)
		return simulate.Fixed(d)
	}
	var found []simulate.Times
	var mean time.Duration
	var shape float64
	of := func(shapeName string, least, most float64, level string) func(v value) {
		return func(v value) {
			there := r.mapping(v, level, []key{
				{"mean", func(v value) { r.durationInto(&mean, v, 0, example) }},
				{shapeName, func(v value) { shape, _ = r.decimal(v, least, most) }},
			})
			if len(there) < 2 && v.Kind == yaml.MappingNode && !r.partial {
				r.wrongValue(v, fmt.Sprintf("write {mean: 20ms, %s: 1.5}", shapeName), "needs mean and %s", shapeName)
			}
			if shapeName == "sigma" {
				found = append(found, simulate.Lognormal{Average: mean, Sigma: shape})
			} else {
				found = append(found, simulate.Pareto{Average: mean, Shape: shape})
			}
		}
	}
	r.mapping(v, "takes", []key{
		{"exponential", func(v value) {
			d, _ := r.duration(v, 0, longest, example)
			found = append(found, simulate.Exponential(d))
		}},
		{"uniform", func(v value) { found = append(found, r.uniform(v)) }},
		{"lognormal", of("sigma", 0, 4, "takes.lognormal")},
		{"pareto", of("shape", 1.01, 10, "takes.pareto")},
		{"mix", func(v value) { found = append(found, r.mix(v)) }},
	})
	if len(found) != 1 {
		if v.Kind == yaml.MappingNode && !r.partial {
			r.wrongValue(v, "write a time such as 20ms, or one of exponential, uniform, lognormal, pareto and mix", "has %d distributions", len(found))
		}
		return simulate.Fixed(0)
	}
	return found[0]
}

func (r *scenarioReader) uniform(v value) simulate.Times {
	var u simulate.Uniform
	r.mapping(v, "takes.uniform", []key{
		{"from", func(v value) { r.durationInto(&u.From, v, 0, "10ms") }},
		{"to", func(v value) { r.durationInto(&u.To, v, 0, "30ms") }},
	})
	if u.To < u.From {
		r.wrongValue(v, "write the shorter one as from", "goes from %s down to %s", FormatDuration(u.From), FormatDuration(u.To))
	}
	return u
}

func (r *scenarioReader) mix(v value) simulate.Times {
	var m simulate.Mix
	sum := 0
	r.list(v, func(v value) {
		var p simulate.Part
		percent := 0
		r.mapping(v, "takes.mix[]", []key{
			{"share", func(v value) { percent, _ = r.percent(v) }},
			{"takes", func(v value) { p.Takes = r.times(v) }},
		})
		if p.Takes == nil {
			p.Takes = simulate.Fixed(0)
			r.wrongValue(v, "write {share: 10%, takes: 200ms}", "does not say what it takes")
		}
		sum += percent
		p.Share = float64(percent) / 100
		m = append(m, p)
	})
	if len(m) == 0 || sum != 100 {
		r.wrongValue(v, "let the shares be 100% together", "has %d shares of %d%% together", len(m), sum)
		return simulate.Fixed(0)
	}
	return m
}
