package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// LoadScenario reads the file of a scenario. Its error is [Problems] where the content
// is wrong. Relative paths in it are meant from its directory.
// Each of sets, "gates.orders.max_in_flight=24", is another value for a key.
func LoadScenario(path string, sets ...string) (*simulate.Scenario, error) {
	text, err := Read(path)
	if err != nil {
		return nil, err
	}
	return ParseScenario(path, text, sets...)
}

// ParseScenario reads the content of the file of a scenario, as [LoadScenario] does.
func ParseScenario(path string, text []byte, sets ...string) (*simulate.Scenario, error) {
	d := newDecoder(path)
	d.kind = scenarioFile
	r := scenarioReader{decoder: d, sc: &simulate.Scenario{
		Name: filepath.Base(path), For: defaultFor, Seed: 1, Instances: 1,
	}}
	if s, ok := d.normalise(text); ok {
		if root := d.parse(s); root != nil {
			for _, set := range sets {
				d.set(root, set)
			}
			r.whole(value{Node: root})
		}
	}
	if len(d.problems) > 0 {
		return nil, d.problems.sorted()
	}
	return r.sc, nil
}

const (
	defaultFor   = time.Minute
	maxInstances = 1000
	maxPoints    = 100_000
)

// scenarioReader reads a scenario. Names that were read are known even if what they stand
// for is wrong, so that it is said once.
type scenarioReader struct {
	*decoder
	sc                       *simulate.Scenario
	resources, gates, routes []string
	uses                     []use
}

// use is a name that has to be there.
type use struct {
	value
	kind string
	of   *[]string
}

func (r *scenarioReader) whole(root value) {
	sc := r.sc
	gates := gatesReader{decoder: r.decoder}
	there := r.mapping(root, "scenario", []key{
		{"for", func(v value) { r.durationInto(&sc.For, v, shortest, "60s") }},
		{"warm_up", func(v value) { r.durationInto(&sc.WarmUp, v, 0, "10s") }},
		{"every", func(v value) { r.durationInto(&sc.Every, v, shortest, "1s") }},
		{"seed", func(v value) {
			n, _ := r.number(v, 0, math.MaxInt32)
			sc.Seed = uint64(n)
		}},
		{"instances", func(v value) { sc.Instances, _ = r.number(v, 1, maxInstances) }},
		{"resources", func(v value) { r.named(v, "resources", "resource", &r.resources, r.resource) }},
		{"gates", gates.read},
		{"routes", func(v value) { r.named(v, "routes", "route", &r.routes, r.route) }},
		{"clients", func(v value) { r.named(v, "clients", "client", nil, r.client) }},
	})
	r.gates = gates.names
	for _, g := range r.config.Gates {
		sc.Gates = append(sc.Gates, r.simulated(g))
	}
	for _, u := range r.uses {
		r.mustBeThere(u)
	}
	for _, missing := range []struct{ name, remedy string }{
		{"routes", "say what a call needs: routes: {orders: {gate: orders, work: [{at: db, takes: 20ms}]}}"},
		{"clients", "say who calls: clients: {shop: {route: orders, rate: 200}}"},
	} {
		if _, ok := there[missing.name]; !ok && !r.partial && root.Kind == yaml.MappingNode {
			r.wrong(root.Node, missing.name+" is missing", missing.remedy)
		}
	}
	r.checkTimes()
}

// checkTimes finds lengths that contradict each other.
func (r *scenarioReader) checkTimes() {
	sc := r.sc
	if sc.WarmUp >= sc.For {
		r.wrongAt(r.config.at["warm_up"], fmt.Sprintf("warm_up is %s, and the whole takes %s", FormatDuration(sc.WarmUp), FormatDuration(sc.For)), "write less than for, or a longer for")
	}
	if sc.Every > 0 && sc.For/sc.Every > maxPoints {
		r.wrongAt(r.config.at["every"], fmt.Sprintf("every is %s, which makes more than %d points", FormatDuration(sc.Every), maxPoints), "write more, such as "+FormatDuration((sc.For/100).Round(time.Millisecond)))
	}
}

// named reads a mapping from names to mappings.
func (r *scenarioReader) named(v value, level, what string, names *[]string, read func(v value, name string)) {
	r.entries(v, level, func(name string, k, child *yaml.Node) {
		if names != nil {
			*names = append(*names, name)
		}
		c := v.child(name, child)
		r.config.at[c.path] = posOf(k)
		if r.name(k, what) && r.given(c) {
			read(c, name)
		}
	})
}

func (r *scenarioReader) mustBeThere(u use) {
	if r.partial || slices.Contains(*u.of, u.Value) {
		return
	}
	remedy := fmt.Sprintf("add %s to %ss", shorten(u.Value), u.kind)
	if near := r.nearest(u.Value, *u.of); near != "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	r.wrongValue(u.value, remedy, "is %s, and there is no such %s", shorten(u.Value), u.kind)
}

// simulated returns what a gate of the program is to the simulator.
func (r *scenarioReader) simulated(g Gate) simulate.Gate {
	if g.Closed {
		r.wrongAt(g.Pos, fmt.Sprintf("the gate %s is closed, so nothing would be seen of it", g.Name), "write a number for max_in_flight")
	}
	c := admit.Config{
		Limit: g.MaxInFlight, MaxWait: g.MaxWait, MaxWaiting: g.MaxWaiting, Measure: true,
		PerCaller: g.PerCaller.MaxInFlight, MaxCallers: g.PerCaller.MaxCallers,
	}
	if c.MaxCallers == 0 {
		c.MaxCallers = admit.DefaultMaxCallers
	}
	s := simulate.Gate{Name: g.Name, Config: c}
	if g.Auto != nil {
		s.Limiter = limiters(*g.Auto, r.sc.Seed)
	}
	if g.law != nil {
		s.Limiter = g.law.limiters(r.sc.Seed)
	}
	seconds := func(d time.Duration) int { return int(d / time.Second) } // whole ones only are read
	after := g.Refusal.RetryAfter
	s.RetryLo, s.RetryHi = seconds(after.Min), seconds(after.Max)
	if after.Fixed > 0 {
		s.RetryLo, s.RetryHi = seconds(after.Fixed), seconds(after.Fixed)
	}
	return s
}

// route reads one kind of call.
func (r *scenarioReader) route(v value, name string) {
	way := simulate.Route{Name: name}
	gate := func(v value) {
		if s, ok := r.text(v, "the name of a gate"); ok {
			way.Gates = append(way.Gates, s)
			r.uses = append(r.uses, use{v, "gate", &r.gates})
		}
	}
	there := r.mapping(v, "routes.NAME", []key{
		{"gate", gate},
		{"gates", func(v value) { r.list(v, gate) }},
		{"cost", func(v value) { way.Cost, _ = r.number(v, 1, maxUnits) }},
		{"work", func(v value) { r.list(v, func(v value) { r.visit(v, &way) }) }},
	})
	_, one := there["gate"]
	if at, several := there["gates"]; one && several {
		r.wrongAt(at, "gate and gates are both given", "keep one of the two")
	}
	for i, name := range way.Gates {
		if slices.Contains(way.Gates[:i], name) {
			r.wrongValue(v, "name it once", "passes the gate %s twice", name)
		}
	}
	r.sc.Routes = append(r.sc.Routes, way)
}

// visit reads one part of a call's work.
func (r *scenarioReader) visit(v value, way *simulate.Route) {
	var part simulate.Visit
	there := r.mapping(v, "routes.NAME.work[]", []key{
		{"at", func(v value) {
			if s, ok := r.text(v, "the name of a resource"); ok {
				part.At = s
				r.uses = append(r.uses, use{v, "resource", &r.resources})
			}
		}},
		{"takes", func(v value) { part.Takes = r.times(v) }},
	})
	if len(there) < 2 && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongValue(v, "write {at: RESOURCE, takes: 20ms}", "needs at and takes")
		return
	}
	way.Work = append(way.Work, part)
}
