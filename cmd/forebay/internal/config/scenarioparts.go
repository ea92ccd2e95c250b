package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/internal/simulate"
)

const (
	maxRate   = 10_000_000 // calls a second
	maxFactor = 1_000_000
)

// resource reads something behind the gates.
func (r *scenarioReader) resource(v value, name string) {
	b := simulate.Resource{Name: name}
	number := func(f *float64) func(v value) { return func(v value) { *f, _ = r.decimal(v, 0, maxFactor) } }
	r.mapping(v, "resources.NAME", []key{
		{"servers", func(v value) { b.Servers, _ = r.number(v, 1, maxUnits) }},
		{"cores", number(&b.Cores)},
		{"contention", func(v value) {
			r.mapping(v, "resources.NAME.contention", []key{{"sigma", number(&b.Sigma)}, {"kappa", number(&b.Kappa)}})
		}},
		{"cliff", func(v value) {
			there := r.mapping(v, "resources.NAME.cliff", []key{
				{"at", func(v value) { b.Cliff.At, _ = r.number(v, 1, maxUnits) }}, {"power", number(&b.Cliff.Power)},
			})
			r.both(v, there, "at", "power", "{at: 30, power: 1.5}")
		}},
		{"throughput", func(v value) { r.throughput(v, &b) }},
		{"changes", func(v value) { r.list(v, func(v value) { r.change(v, &b) }) }},
		{"pauses", func(v value) {
			there := r.mapping(v, "resources.NAME.pauses", []key{
				{"every", func(v value) { r.durationInto(&b.Pauses.Every, v, shortest, "5s") }},
				{"for", func(v value) { r.durationInto(&b.Pauses.For, v, shortest, "200ms") }},
			})
			if r.both(v, there, "every", "for", "{every: 5s, for: 200ms}") && b.Pauses.For >= b.Pauses.Every {
				r.wrongValue(v, "write a longer every", "lasts %s of every %s", FormatDuration(b.Pauses.For), FormatDuration(b.Pauses.Every))
			}
		}},
	})
	r.sc.Resources = append(r.sc.Resources, b)
}

// both complains if one of two keys is missing.
func (r *scenarioReader) both(v value, there map[string]Pos, a, b, example string) bool {
	_, one := there[a]
	_, other := there[b]
	if one && other || v.Kind != yaml.MappingNode || r.partial {
		return one && other
	}
	r.wrongValue(v, "write "+example, "needs %s and %s", a, b)
	return false
}

// throughput reads a table of how much is done by how many.
func (r *scenarioReader) throughput(v value, b *simulate.Resource) {
	table := map[int]float64{}
	r.entries(v, "resources.NAME.throughput", func(name string, k, child *yaml.Node) {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || n > maxUnits {
			r.wrong(k, fmt.Sprintf("%s is no number of calls", shorten(name)), "write {1: 1, 10: 9.5, 40: 25}")
			return
		}
		c := v.child(name, child)
		if r.given(c) {
			table[n], _ = r.decimal(c, 0, maxFactor)
		}
	})
	for _, n := range slices.Sorted(maps.Keys(table)) {
		b.Throughput = append(b.Throughput, simulate.Rate{Calls: n, Does: table[n]})
	}
	if len(table) > 0 && b.Throughput[len(table)-1].Does == 0 {
		r.wrongValue(v, "let the last number be more than 0", "ends in nothing, so calls would never end")
	}
}

func (r *scenarioReader) change(v value, b *simulate.Resource) {
	var c simulate.Change
	there := r.mapping(v, "resources.NAME.changes[]", []key{
		{"at", func(v value) { r.durationInto(&c.At, v, 0, "40s") }},
		{"speed", func(v value) { c.Speed, _ = r.decimal(v, 0.001, 1000) }},
		{"servers", func(v value) { c.Servers, _ = r.number(v, 1, maxUnits) }},
	})
	if _, ok := there["at"]; (!ok || len(there) < 2) && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongValue(v, "write {at: 40s, speed: 0.5}", "needs at, and speed or servers")
	}
	if n := len(b.Changes); n > 0 && c.At < b.Changes[n-1].At {
		r.wrongValue(v, "write the earlier one first", "comes at %s, before the one above", FormatDuration(c.At))
	}
	b.Changes = append(b.Changes, c)
}

// client reads who calls.
func (r *scenarioReader) client(v value, name string) {
	c := simulate.Client{Name: name}
	a := &c.Arrivals
	there := r.mapping(v, "clients.NAME", []key{
		{"route", func(v value) {
			if s, ok := r.text(v, "the name of a route"); ok {
				c.Route = s
				r.uses = append(r.uses, use{v, "route", &r.routes})
			}
		}},
		{"rate", func(v value) { a.Rate, _ = r.decimal(v, 0, maxRate) }},
		{"even", func(v value) { a.Even, _ = r.boolean(v) }},
		{"batch", func(v value) { a.Batch, _ = r.number(v, 1, maxUnits) }},
		{"bursts", func(v value) { r.bursts(v, a) }},
		{"steps", func(v value) { r.list(v, func(v value) { r.step(v, a) }) }},
		{"trace", func(v value) { r.trace(v, a) }},
		{"callers", func(v value) { c.Callers, _ = r.number(v, 1, maxUnits) }},
		{"deadline", func(v value) { r.durationInto(&c.Deadline, v, shortest, "1s") }},
		{"tells", func(v value) { c.Tells, _ = r.boolean(v) }},
		{"cancels", func(v value) { c.Cancels, _ = r.boolean(v) }},
		{"retries", func(v value) { r.retries(v, &c.Retries) }},
	})
	if v.Kind == yaml.MappingNode && !r.partial {
		if _, ok := there["route"]; !ok {
			r.wrongValue(v, "write route: NAME", "does not say what it calls")
		}
		_, rate := there["rate"]
		if _, trace := there["trace"]; !rate && !trace {
			r.wrongValue(v, "write rate: NUMBER, in calls a second, or trace: FILE", "does not say how often it calls")
		}
	}
	r.sc.Clients = append(r.sc.Clients, c)
}

func (r *scenarioReader) bursts(v value, a *simulate.Arrivals) {
	b := simulate.Bursts{High: 1.75, Low: 0.25, Mean: 200 * time.Millisecond}
	r.mapping(v, "clients.NAME.bursts", []key{
		{"high", func(v value) { b.High, _ = r.decimal(v, 0, maxFactor) }},
		{"low", func(v value) { b.Low, _ = r.decimal(v, 0, maxFactor) }},
		{"mean", func(v value) { r.durationInto(&b.Mean, v, shortest, "200ms") }},
	})
	a.Bursts = b
}

func (r *scenarioReader) step(v value, a *simulate.Arrivals) {
	var s simulate.Step
	there := r.mapping(v, "clients.NAME.steps[]", []key{
		{"at", func(v value) { r.durationInto(&s.At, v, 0, "10s") }},
		{"times", func(v value) { s.Times, _ = r.decimal(v, 0, maxFactor) }},
	})
	r.both(v, there, "at", "times", "{at: 10s, times: 5}")
	if n := len(a.Steps); n > 0 && s.At < a.Steps[n-1].At {
		r.wrongValue(v, "write the earlier one first", "comes at %s, before the one above", FormatDuration(s.At))
	}
	a.Steps = append(a.Steps, s)
}

func (r *scenarioReader) retries(v value, t *simulate.Retries) {
	*t = simulate.Retries{Max: 3, Backoff: 100 * time.Millisecond, Factor: 2, Jitter: 0.5}
	r.mapping(v, "clients.NAME.retries", []key{
		{"max", func(v value) { t.Max, _ = r.number(v, 0, 1000) }},
		{"backoff", func(v value) { r.durationInto(&t.Backoff, v, 0, "100ms") }},
		{"factor", func(v value) { t.Factor, _ = r.decimal(v, 1, 10) }},
		{"jitter", func(v value) { t.Jitter, _ = r.decimal(v, 0, 1) }},
		{"honours", func(v value) { t.Honours, _ = r.boolean(v) }},
	})
}
