package check

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
)

// Explanation is what one request meets, and why.
type Explanation struct {
	Request  string       `json:"request"` // as it was understood: "GET /reports/7"
	Route    string       `json:"route"`   // the pattern; empty: none
	Pos      config.Pos   `json:"pos"`     // of the pattern
	Gates    []PassedGate `json:"gates"`   // in the order in which they are passed
	Lane     string       `json:"lane,omitempty"`
	Answer   string       `json:"answer,omitempty"`
	Patience Duration     `json:"patience_ms"`
	Why      []string     `json:"why"`
}

// PassedGate is a gate that a request passes.
type PassedGate struct {
	Name        string   `json:"name"`
	MaxInFlight int      `json:"max_in_flight"` // 0: closed; of a limit that finds itself where it starts
	Auto        *Auto    `json:"auto,omitempty"`
	MaxWait     Duration `json:"max_wait_ms"`
	MaxWaiting  int      `json:"max_waiting"`
	Pool        string   `json:"pool,omitempty"`
	Cluster     string   `json:"cluster,omitempty"` // which has the slots; empty: they are this program's own
}

// Auto is between what a limit finds itself, and for which deadline.
type Auto struct {
	Min      int      `json:"min"`
	Max      int      `json:"max"`
	Deadline Duration `json:"deadline_ms"`
}

// Duration is a time that is whole milliseconds in JSON.
type Duration time.Duration

// String returns it as a file has it.
func (d Duration) String() string { return config.FormatDuration(time.Duration(d)) }

// MarshalJSON returns whole milliseconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d", time.Duration(d).Milliseconds()), nil
}

// Explain says what a request meets. It is written as "/path", "GET /path",
// "GET host/path" or "GET http://host/path".
func Explain(c *config.Config, request string) (Explanation, error) {
	r, err := parseRequest(request)
	if err != nil {
		return Explanation{}, err
	}
	groups, err := groupsOf(c, c.Routes...)
	if err != nil {
		return Explanation{}, err
	}
	passage := groups.Lookup(r)
	e := Explanation{Request: r.Method + " " + r.Host + r.URL.RequestURI(), Route: passage.Route, Lane: passage.Lane, Gates: []PassedGate{}}
	for _, g := range passage.Gates {
		p := passedGate(c.Gate(g.Name()))
		if c.Gate(g.Name()).Terms != nil {
			p.Cluster = c.Cluster.Name
		}
		e.Gates = append(e.Gates, p)
	}
	e.route(c, r)
	e.patience()
	return e, nil
}

func parseRequest(s string) (*http.Request, error) {
	method, target := http.MethodGet, strings.TrimSpace(s)
	if before, after, found := strings.Cut(target, " "); found {
		method, target = before, strings.TrimSpace(after)
	}
	if method == "" || strings.ToUpper(method) != method {
		return nil, fmt.Errorf("check: the method %q is not in upper case; write a request such as GET /reports/7", method)
	}
	host := ""
	if _, rest, found := strings.Cut(target, "://"); found {
		target = rest
	}
	slash := strings.IndexByte(target, '/')
	if slash < 0 {
		return nil, fmt.Errorf("check: %q has no path; write a request such as GET /reports/7", s)
	}
	host, target = target[:slash], target[slash:]
	u, err := url.ParseRequestURI(target)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, fmt.Errorf("check: %q is no path: %w; write a request such as GET /reports/7", target, err)
	}
	return &http.Request{Method: method, Host: host, URL: u, Header: http.Header{}}, nil
}

func passedGate(g *config.Gate) PassedGate {
	p := PassedGate{Name: g.Name, MaxInFlight: g.MaxInFlight, MaxWait: Duration(g.MaxWait), MaxWaiting: g.MaxWaiting, Pool: g.Pool}
	if g.MaxWait > 0 && g.MaxWaiting == 0 {
		p.MaxWaiting = 2 * g.MaxInFlight
	}
	if g.Closed {
		p.MaxInFlight, p.MaxWaiting = 0, 0
	}
	if a := g.Auto; a != nil {
		p.Auto = &Auto{Min: a.Min, Max: a.Max, Deadline: Duration(a.Deadline)}
	}
	return p
}

// route says which pattern won, over which others, and which gates came by another
// reading of the path.
func (e *Explanation) route(c *config.Config, r *http.Request) {
	var route *config.Route
	for i := range c.Routes {
		if c.Routes[i].Match == e.Route {
			route = &c.Routes[i]
		}
	}
	if route == nil {
		e.why("no route matches it, so it passes without a gate")
		return
	}
	e.Pos, e.Answer = route.Pos, route.Answer
	e.why("%s matches it", route.Match)
	for i := range c.Routes {
		if other := &c.Routes[i]; other != route {
			e.compare(c, route, other, r)
		}
	}
	if route.Lane != "" && e.Lane == "" {
		e.why("its readings name routes of several lanes, so it has none: it comes after all that have")
	}
	switch {
	case route.Answer != "":
		e.why("the program answers it itself, from its own health")
	case len(route.Gates) == 0 && len(e.Gates) == 0:
		e.why("the route is exempt: it goes to the upstream without a slot, uncounted in any line")
	case len(route.Gates) > 1:
		e.why("the route is a chain: it takes a slot of each gate in this order, all or none")
	}
}

// compare says why another route that matches did not win.
func (e *Explanation) compare(c *config.Config, route, other *config.Route, r *http.Request) {
	matches, asSent := matching(c, *other, r)
	if !matches {
		return
	}
	if asSent {
		e.why("%s matches as well, but is less specific", other.Match)
		return
	}
	var adds []string
	for _, name := range other.Gates {
		if !slices.Contains(route.Gates, name) && slices.ContainsFunc(e.Gates, func(g PassedGate) bool { return g.Name == name }) {
			adds = append(adds, name)
		}
	}
	if len(adds) == 0 {
		e.why("read in another way, the path is one of %s as well, which changes nothing", other.Match)
		return
	}
	e.why("read in another way, the path is one of %s as well, and so it also passes %s", other.Match, strings.Join(adds, ", "))
}

// matching tells whether a route matches at all, and whether it does so with the path
// as it was sent: then it wins over a route that matches everything.
func matching(c *config.Config, route config.Route, r *http.Request) (matches, asSent bool) {
	alone, err := groupsOf(c, route)
	if err != nil || alone.Lookup(r).Route == "" {
		return false, false
	}
	rest := config.Route{Match: "/", Exempt: true}
	both, err := groupsOf(c, route, rest)
	if err != nil { // it matches everything itself
		return true, true
	}
	return true, both.Lookup(r).Route == route.Match
}

// patience says how long it waits in line.
func (e *Explanation) patience() {
	if len(e.Gates) == 0 {
		return
	}
	least := e.Gates[0]
	for _, g := range e.Gates {
		if g.MaxInFlight == 0 {
			e.why("the gate %s is closed: everybody is refused at once", g.Name)
			return
		}
		if g.MaxWait < least.MaxWait {
			least = g
		}
	}
	e.Patience = least.MaxWait
	of := "of " + least.Name
	if len(e.Gates) > 1 {
		of = "the smallest max_wait, that of " + least.Name
	}
	if least.MaxWait == 0 && slices.ContainsFunc(e.Gates, func(g PassedGate) bool { return g.Cluster != "" }) {
		e.Patience = Duration(askPatience)
		e.why("it waits for nothing but the cluster's answer, at most %v (%s): without a free slot it is refused", e.Patience, of)
		return
	}
	if least.MaxWait == 0 {
		e.why("it waits for nothing (%s): without a free slot it is refused at once", of)
		return
	}
	e.why("it waits in line for at most %v (%s), then it is refused", least.MaxWait, of)
}

func (e *Explanation) why(format string, args ...any) {
	e.Why = append(e.Why, fmt.Sprintf(format, args...))
}

// String returns the explanation as `forebay check FILE --route` prints it.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "request   %s\n", e.Request)
	route := e.Route
	if route == "" {
		route = "none"
	}
	if e.Pos.Line > 0 {
		route = fmt.Sprintf("%s   (line %d)", route, e.Pos.Line)
	}
	fmt.Fprintf(&b, "route     %s\n", route)
	switch {
	case e.Answer != "":
		fmt.Fprintf(&b, "answer    %s, by the program itself\n", e.Answer)
	case len(e.Gates) == 0:
		b.WriteString("gates     none\n")
	}
	for i, g := range e.Gates {
		label := "gates"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-9s %s\n", label, g)
	}
	if e.Lane != "" {
		fmt.Fprintf(&b, "lane      %s\n", e.Lane)
	}
	if len(e.Gates) > 0 {
		fmt.Fprintf(&b, "patience  %v\n", e.Patience)
	}
	for i, w := range e.Why {
		label := "why"
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(&b, "%-9s %s\n", label, w)
	}
	return b.String()
}

// Limit returns the limit in words.
func (g PassedGate) Limit() string {
	switch {
	case g.MaxInFlight == 0:
		return "closed"
	case g.Auto != nil:
		return fmt.Sprintf("auto from %d to %d, at first %d, deadline %v", g.Auto.Min, g.Auto.Max, g.MaxInFlight, g.Auto.Deadline)
	}
	return fmt.Sprint(g.MaxInFlight)
}

// String returns the gate with its figures.
func (g PassedGate) String() string {
	s := fmt.Sprintf("%s: max_in_flight %s", g.Name, g.Limit())
	if g.MaxInFlight == 0 {
		s = g.Name + ": closed"
	}
	if g.MaxWait > 0 && g.MaxInFlight > 0 {
		s += fmt.Sprintf(", max_wait %v, max_waiting %d", g.MaxWait, g.MaxWaiting)
	}
	if g.Pool != "" {
		s += ", pool " + g.Pool
	}
	if g.Cluster != "" {
		s += ", of the cluster " + g.Cluster
	}
	return s
}
