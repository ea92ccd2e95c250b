package forebay

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Route says which requests pass which gates.
type Route struct {
	// Match is a pattern of net/http.ServeMux: "[METHOD ][HOST]/path", with
	// {name}, {name...} and {$}; a path that ends in / matches all below it; GET
	// matches HEAD as well; of several patterns the most specific wins. It is
	// checked more strictly than there, and nothing is ever redirected.
	Match string
	// Gates are passed in this order, all or none; see [Chain].
	Gates []*Gate
	// Exempt lets the requests pass without a slot: health checks, metrics. A
	// route has gates or is exempt.
	Exempt bool
	// Lane is that of the requests at each gate that has it; see [Config.Lanes]. A request
	// that other readings of its path bring to routes of other lanes has none.
	Lane string
	// Cost is how many units each request takes of every gate; see [Call.Cost]. A request
	// that other readings of its path bring to routes of higher costs takes the highest.
	// 0 means 1. It must be within what every gate could ever give.
	Cost int
}

// GroupsConfig is what [NewGroups] takes.
type GroupsConfig struct {
	// Routes are matched by specificity, whatever their order.
	Routes []Route
	// Observers are told of the requests that passed without a slot: of exempt
	// routes, with the route's pattern, and of none, with an empty one. Nil: nobody.
	Observers []Observer
}

// Groups maps requests to gates by route. Make one with [NewGroups], the zero value
// is not usable; it is safe for concurrent use and never changes: a new
// configuration is a new Groups around the same gates.
//
// A path can be read in several ways: as sent, decoded, cleaned of // and .. and
// \ and ;parameters, in another case. Which one the application behind takes is
// not known here, so a request passes every gate that any reading names: whoever
// writes /x/../REPORTS%2F7 has asked for the reports. A request that no route
// matches passes without a slot; a route "/" leaves none.
type Groups struct {
	matcher   *matcher
	routes    []Route
	rank      map[*Gate]int // one order of all gates that every route's own agrees with
	observers []Observer
	tell      Gate // contains the panics of observers; it admits nobody
}

// NewGroups returns the groups, or every mistake at once.
func NewGroups(c GroupsConfig) (*Groups, error) {
	gs := &Groups{routes: make([]Route, len(c.Routes)), observers: slices.Clone(c.Observers)}
	patterns := make([]string, len(c.Routes))
	var errs []error
	for i, r := range c.Routes {
		patterns[i] = r.Match
		gs.routes[i] = Route{Match: r.Match, Gates: slices.Clone(r.Gates), Exempt: r.Exempt, Lane: r.Lane, Cost: r.Cost}
		errs = append(errs, checkRoute(i, r))
	}
	for i, o := range c.Observers {
		if o == nil {
			errs = append(errs, fmt.Errorf("forebay: Observers[%d] is nil; leave it out", i))
		}
	}
	var err error
	gs.matcher, err = newMatcher(patterns)
	errs = append(errs, err)
	gs.rank, err = rankGates(gs.routes)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return gs, nil
}

func checkRoute(i int, r Route) error {
	wrong := func(what string) error { return fmt.Errorf("forebay: Routes[%d] (%q): %s", i, r.Match, what) }
	switch {
	case r.Exempt && len(r.Gates) > 0:
		return wrong("it is exempt and has gates; drop one of the two")
	case !r.Exempt && len(r.Gates) == 0:
		return wrong("it has no gate; give it one, or set Exempt")
	case r.Exempt && r.Lane != "":
		return wrong("it is exempt and has a lane; drop one of the two")
	case r.Exempt && r.Cost != 0:
		return wrong("it is exempt and has a cost; drop one of the two")
	case r.Exempt:
		return nil
	case r.Cost < 0 || r.Cost > maxUnits:
		return wrong(fmt.Sprintf("its cost is %d; it must be 0 (meaning 1) to %d", r.Cost, maxUnits))
	case r.Lane != "" && !slices.ContainsFunc(r.Gates, func(g *Gate) bool { return g != nil && g.hasLane(r.Lane) }):
		return wrong(fmt.Sprintf("none of its gates has the lane %q; add it to Config.Lanes of one", r.Lane))
	}
	if _, err := NewChain(r.Gates...); err != nil {
		return wrong(strings.ReplaceAll(err.Error(), "forebay: ", ""))
	}
	return nil
}

// rankGates finds one order of all gates with which the order in every route
// agrees, so that two requests never wait for each other's slots.
func rankGates(routes []Route) (map[*Gate]int, error) {
	behind := map[*Gate][]*Gate{} // the gates that must come after
	var all []*Gate
	for _, r := range routes {
		for i, g := range r.Gates {
			if !slices.Contains(all, g) {
				all = append(all, g)
			}
			for _, later := range r.Gates[i+1:] {
				if later != g { // named twice: checkRoute says so
					behind[g] = append(behind[g], later)
				}
			}
		}
	}
	rank := make(map[*Gate]int, len(all))
	onTheWay := map[*Gate]bool{}
	var place func(g *Gate) error
	place = func(g *Gate) error {
		if _, placed := rank[g]; placed || g == nil {
			return nil
		}
		if onTheWay[g] {
			return fmt.Errorf("forebay: routes name the gate %q both before and after another; "+
				"name gates in one order everywhere, or two requests wait for each other", g.name)
		}
		onTheWay[g] = true
		for _, later := range behind[g] {
			if err := place(later); err != nil {
				return err
			}
		}
		rank[g] = -len(rank) // the last placed comes first
		return nil
	}
	for _, g := range all {
		if err := place(g); err != nil {
			return nil, err
		}
	}
	return rank, nil
}

// Passage is what a request meets.
type Passage struct {
	Route string  // the pattern that the path as sent matches, else one that another reading names; empty: none
	Gates []*Gate // in the order in which they are passed; none: it passes without a slot
	Cost  int     // units of each
	Lane  string  // of the path as sent, if the other readings name no other one; else empty
}

// Lookup says what a request meets, and is what [Groups.Wrap] does.
func (gs *Groups) Lookup(r *http.Request) Passage {
	var room [maxGates]*Gate
	call, gates := gs.lookup(r, room[:0])
	return Passage{Route: call.Route, Gates: slices.Clone(gates), Lane: call.Lane, Cost: call.cost()}
}

// Route returns the route that Lookup finds, without the gates.
func (gs *Groups) Route(r *http.Request) string {
	var room [maxGates]*Gate
	call, _ := gs.lookup(r, room[:0])
	return call.Route
}

const (
	maxReadings = 16 // of one path, before match allocates
	maxGates    = 8  // of one request, before a chain allocates
)

// lookup returns the gates of a request, and the call that it makes of them.
func (gs *Groups) lookup(r *http.Request, room []*Gate) (call Call, gates []*Gate) {
	var found [maxReadings]int
	named := gs.matcher.match(r.Method, r.Host, r.URL, found[:0])
	if named[0] >= 0 {
		first := &gs.routes[named[0]]
		call = Call{Route: first.Match, Lane: first.Lane, Cost: first.Cost}
		if len(named) == 1 {
			return call, first.Gates
		}
	}
	gates = room
	for _, i := range named {
		if i < 0 {
			continue
		}
		route := &gs.routes[i]
		switch {
		case call.Route == "":
			call.Route = route.Match
		case call.Lane != route.Lane:
			call.Lane = ""
		}
		call.Cost = max(call.Cost, route.Cost)
		for _, g := range route.Gates {
			if !slices.Contains(gates, g) {
				gates = append(gates, g)
			}
		}
	}
	slices.SortFunc(gates, func(a, b *Gate) int { return gs.rank[a] - gs.rank[b] })
	return call, gates
}

// Wrap puts the gates in front of next, each request passing those of its route.
// See [Gate.Wrap]; the route in events is the pattern of the Route. A CORS preflight
// passes as one of an exempt route does.
func (gs *Groups) Wrap(next http.Handler) http.Handler {
	return gs.HandlerFunc(withoutLease(next))
}

// HandlerFunc is Wrap for a function that is handed its lease: the zero lease if the
// request passes without a slot. See [Gate.HandlerFunc].
func (gs *Groups) HandlerFunc(f func(http.ResponseWriter, *http.Request, Lease)) http.Handler {
	if f == nil {
		panic("forebay: HandlerFunc of a nil function")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var room [maxGates]*Gate
		call, gates := gs.lookup(r, room[:0])
		if len(gates) == 0 || IsPreflight(r) {
			gs.exempt(call.Route, w, r)
			f(w, r, Lease{})
			return
		}
		serve(w, r, gates, call, f)
	})
}

func (gs *Groups) exempt(route string, w http.ResponseWriter, r *http.Request) {
	if len(gs.observers) == 0 {
		return
	}
	e := Event{Kind: EventDecided, Decision: Exempted, Route: route, RequestID: requestID(w, r), RemoteIP: remoteIP(r)}
	for _, o := range gs.observers {
		gs.tell.tell(o, e)
	}
}
