package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/forebay"
	"go.yaml.in/yaml/v4"
)

// routesReader reads the routes. What a pattern may be, and which two get into each
// other's way, the library decides; its errors are given their places here.
type routesReader struct {
	*decoder
	gates  *gatesReader
	lanes  *lanesReader
	refs   []value // of gates
	inLane []value // the names of lanes
	costs  []costly
	whole  *yaml.Node
	places []Pos // of the patterns, in the order of config.Routes
}

func (r *routesReader) read(v value) {
	r.whole = v.Node
	if v.Kind == yaml.MappingNode {
		r.wrongValue(v, "write a list: [{match: /reports/, gate: reports}, {match: /, gate: orders}]", "is a mapping")
		return
	}
	if v.Kind == yaml.SequenceNode && len(v.Content) > maxRoutes {
		r.wrongValue(v, "use patterns that match more, such as /reports/", "has more than %d routes", maxRoutes)
		return
	}
	r.list(v, r.route)
}

func (r *routesReader) route(v value) {
	if v.Kind == yaml.ScalarNode {
		r.wrong(v.Node, "a route is "+describe(v.Node), "write "+mappingExamples["routes[]"])
		return
	}
	var route Route
	notExempt := false
	there := r.mapping(v, "routes[]", []key{
		{"match", func(v value) {
			s, ok := r.text(v, "a pattern such as GET /reports/")
			switch {
			case ok && len(s) > maxPattern:
				r.wrongValue(v, fmt.Sprintf("write at most %d bytes", maxPattern), "is a pattern of %d bytes", len(s))
			case ok:
				route.Match, route.Pos = s, posOf(v.Node)
			}
		}},
		{"gate", func(v value) { r.oneGate(v, &route) }},
		{"gates", func(v value) { r.manyGates(v, &route) }},
		{"lane", func(v value) {
			if s, ok := r.text(v, "the name of a lane"); ok {
				route.Lane = s
				r.inLane = append(r.inLane, v)
			}
		}},
		{"cost", func(v value) {
			route.Cost, _ = r.number(v, 1, maxUnits)
			r.costs = append(r.costs, costly{v, len(r.config.Routes)})
		}},
		{"exempt", func(v value) { route.Exempt, notExempt = r.boolean(v) }},
		{"answer", func(v value) { route.Answer, _ = r.word(v, "health") }},
	})
	if notExempt {
		delete(there, "exempt")
	}
	r.checkEnds(v, there, route)
	if route.Match != "" {
		r.config.Routes = append(r.config.Routes, route)
		r.places = append(r.places, route.Pos)
	}
}

// checkEnds finds routes that lead nowhere, or to several places.
func (r *routesReader) checkEnds(v value, there map[string]Pos, route Route) {
	if v.Kind != yaml.MappingNode {
		return
	}
	if _, ok := there["match"]; !ok && !r.partial {
		r.wrong(v.Node, "the route has no match", "write "+mappingExamples["routes[]"])
	}
	var ends, meant []string
	for _, name := range []string{"gate", "gates", "exempt", "answer"} {
		switch at, ok := there[name]; {
		case ok && at == Pos{}:
			meant = append(meant, name)
		case ok:
			ends = append(ends, name)
		}
	}
	switch {
	case len(ends)+len(meant) == 0 && !r.partial:
		r.wrong(v.Node, fmt.Sprintf("the route %s leads nowhere", shorten(route.Match)), "give it gate: NAME, gates: [NAME, NAME], exempt: true, or answer: health")
	case len(ends) > 1:
		r.wrongAt(there[ends[1]], fmt.Sprintf("the route %s has %s", shorten(route.Match), strings.Join(ends, " and ")), "keep one of them")
	}
	if at, ok := there["lane"]; ok && len(ends) == 1 && len(route.Gates) == 0 && ends[0] != "gate" && ends[0] != "gates" {
		r.wrongAt(at, fmt.Sprintf("the route %s passes no gate and has a lane, which is a place in a gate's line", shorten(route.Match)), "take the lane out, or give it a gate")
	}
}

func (r *routesReader) oneGate(v value, route *Route) {
	if v.Kind == yaml.SequenceNode {
		r.wrongValue(v, "write gates for a list", "is a list")
		return
	}
	if s, ok := r.text(v, "the name of a gate"); ok {
		route.Gates = []string{s}
		r.refs = append(r.refs, v)
	}
}

func (r *routesReader) manyGates(v value, route *Route) {
	var names []string
	r.list(v, func(v value) {
		s, ok := r.text(v, "the name of a gate")
		switch {
		case !ok:
		case slices.Contains(names, s):
			r.wrong(v.Node, fmt.Sprintf("the gate %s is named twice, and a call passes a gate once", shorten(s)), "take one of the two out")
		default:
			names = append(names, s)
			r.refs = append(r.refs, v)
		}
	})
	route.Gates = names
	if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
		r.wrongValue(v, "name at least one gate, or write exempt: true", "is an empty list")
	}
}

// check finds what is wrong with the routes as a whole; at is where the key stands.
func (r *routesReader) check(at Pos) {
	if !r.partial && len(r.gates.names) > 0 {
		r.checkNames()
	}
	if !r.partial {
		r.checkLanes()
		r.checkCosts()
	}
	r.checkPatterns()
	if r.whole == nil || r.partial || r.whole.Kind != yaml.SequenceNode || len(r.whole.Content) > maxRoutes {
		return
	}
	if !slices.ContainsFunc(r.config.Routes, func(route Route) bool { return matchesEverything(route.Match) }) {
		gate := "NAME"
		if len(r.gates.names) > 0 {
			gate = shorten(r.gates.names[len(r.gates.names)-1])
		}
		r.wrongAt(at, "no route matches everything, so some requests would pass without a gate", fmt.Sprintf("add - {match: /, gate: %s}", gate))
	}
}

func (r *routesReader) checkNames() {
	for _, v := range r.refs {
		if slices.Contains(r.gates.names, v.Value) {
			continue
		}
		remedy := "declare it under gates"
		if near := r.nearest(v.Value, r.gates.names); near != "" {
			remedy = fmt.Sprintf("did you mean %s?", near)
		}
		r.wrong(v.Node, fmt.Sprintf("there is no gate %s", shorten(v.Value)), remedy)
	}
}

func (r *routesReader) checkLanes() {
	for _, v := range r.inLane {
		if slices.Contains(r.lanes.names, v.Value) {
			continue
		}
		remedy := fmt.Sprintf("declare it: lanes: {%s: {rank: 1}}", shorten(v.Value))
		if near := r.nearest(v.Value, r.lanes.names); near != "" {
			remedy = fmt.Sprintf("did you mean %s?", near)
		}
		r.wrong(v.Node, fmt.Sprintf("there is no lane %s", shorten(v.Value)), remedy)
	}
}

// costly is the cost of a route, and which one of those read it is.
type costly struct {
	value
	route int
}

// checkCosts finds routes whose requests could never run.
func (r *routesReader) checkCosts() {
	for _, c := range r.costs {
		if c.route >= len(r.config.Routes) {
			continue
		}
		route := r.config.Routes[c.route]
		if len(route.Gates) == 0 {
			r.wrong(c.Node, fmt.Sprintf("the route %s passes no gate and has a cost, which is units of a gate", shorten(route.Match)), "take the cost out, or give it a gate")
		}
		for _, name := range route.Gates {
			if g := r.config.Gate(name); g != nil && !g.Closed && g.Auto == nil && route.Cost > g.MaxInFlight {
				r.wrongValue(c.value, fmt.Sprintf("write at most %d, or raise max_in_flight", g.MaxInFlight), "is more than gate %s has: a request of this route could never run", shorten(name))
			}
		}
	}
}

var everything = regexp.MustCompile(`^/(\{[^{}/]*\.\.\.\})?$`)

// matchesEverything tells whether a pattern has neither method, host nor path.
func matchesEverything(pattern string) bool { return everything.MatchString(pattern) }

// checkPatterns asks the library. The gates given to it stand for the real ones,
// which may be wrong themselves.
func (r *routesReader) checkPatterns() {
	standIns := map[string]*forebay.Gate{}
	for _, name := range r.gates.names {
		if goodName.MatchString(name) {
			standIns[name], _ = forebay.New(forebay.Config{Name: name, MaxInFlight: 1})
		}
	}
	routes := make([]forebay.Route, len(r.config.Routes))
	for i, route := range r.config.Routes {
		routes[i].Match = route.Match
		for _, name := range route.Gates {
			if g := standIns[name]; g != nil {
				routes[i].Gates = append(routes[i].Gates, g)
			}
		}
		routes[i].Exempt = len(routes[i].Gates) == 0
	}
	_, err := forebay.NewGroups(forebay.GroupsConfig{Routes: routes})
	for _, e := range leaves(err) {
		if e != nil {
			r.placeError(e.Error())
		}
	}
}

var (
	routeError  = regexp.MustCompile(`^forebay: Routes\[([0-9]+)\] \("(?:[^"\\]|\\.)*"\): (?s:(.*))$`)
	routeInText = regexp.MustCompile(`Routes\[([0-9]+)\] `)
	gateOrder   = regexp.MustCompile(`^forebay: routes name the gate "([^"]*)" both before and after another; (.*)$`)
)

// placeError records an error of the library at the place that it speaks of.
func (r *routesReader) placeError(text string) {
	if m := gateOrder.FindStringSubmatch(text); m != nil {
		r.wrongAt(r.lastWith(m[1]), fmt.Sprintf("routes name the gate %s both before and after another", m[1]), m[2])
		return
	}
	at, rest := r.config.at["routes"], strings.TrimPrefix(text, "forebay: ")
	if m := routeError.FindStringSubmatch(text); m != nil {
		at, rest = r.place(m[1]), m[2]
	}
	rest = routeInText.ReplaceAllStringFunc(rest, func(s string) string {
		return fmt.Sprintf("the route in line %d ", r.place(routeInText.FindStringSubmatch(s)[1]).Line)
	})
	what, remedy := rest, "correct it"
	if i := strings.LastIndex(rest, "; "); i >= 0 {
		what, remedy = rest[:i], rest[i+2:]
	}
	r.wrongAt(at, what, remedy)
}

func (r *routesReader) place(index string) Pos {
	i, err := strconv.Atoi(index)
	if err != nil || i >= len(r.places) {
		return r.config.at["routes"]
	}
	return r.places[i]
}

// lastWith is the place of the last route that passes the gate and another one.
func (r *routesReader) lastWith(gate string) Pos {
	at := r.config.at["routes"]
	for _, route := range r.config.Routes {
		if len(route.Gates) > 1 && slices.Contains(route.Gates, gate) {
			at = route.Pos
		}
	}
	return at
}
