package forebay

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// shop is a table of routes: two gates, a chain of both, health.
type shop struct {
	reports, orders *Gate
	groups          *Groups
	passed          *httpEvents // requests without a slot
	seen            *httpEvents // of both gates
}

func newShop(t testing.TB, more ...Route) *shop {
	t.Helper()
	s := &shop{passed: &httpEvents{}, seen: &httpEvents{}}
	s.reports = httpGate(t, Config{Name: "reports", MaxInFlight: 1, Observers: []Observer{s.seen}})
	s.orders = httpGate(t, Config{Name: "orders", MaxInFlight: 1, Observers: []Observer{s.seen}})
	routes := []Route{
		{Match: "/health", Exempt: true},
		{Match: "/health/", Exempt: true},
		{Match: "GET /reports/", Gates: []*Gate{s.reports}},
		{Match: "POST /reports", Gates: []*Gate{s.reports}},
		{Match: "/orders/{id}", Gates: []*Gate{s.orders}},
		{Match: "/export/", Gates: []*Gate{s.orders, s.reports}},
	}
	var err error
	s.groups, err = NewGroups(GroupsConfig{Routes: append(routes, more...), Observers: []Observer{s.passed}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request and returns the handler's view of which gates it passed.
func (s *shop) ask(t testing.TB, method, target string) (status int, inside string) {
	t.Helper()
	h := s.groups.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside = fmt.Sprintf("orders %d reports %d", s.orders.Stats().InUse, s.reports.Stats().InUse)
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w.Code, inside
}

const (
	neither     = "orders 0 reports 0"
	onlyReports = "orders 0 reports 1"
	onlyOrders  = "orders 1 reports 0"
	both        = "orders 1 reports 1"
)

func TestGroupsPassTheGatesOfTheirRoute(t *testing.T) {
	s := newShop(t)
	for _, c := range []struct{ method, target, inside, route string }{
		{"GET", "/health", neither, "/health"},
		{"GET", "/health/live", neither, "/health/"},
		{"GET", "/nowhere", neither, ""},
		{"GET", "/", neither, ""},
		{"DELETE", "/reports/7", neither, ""},
		{"GET", "/reports/7", onlyReports, "GET /reports/"},
		{"HEAD", "/reports/7", onlyReports, "GET /reports/"},
		{"GET", "/reports/", onlyReports, "GET /reports/"},
		{"POST", "/reports", onlyReports, "POST /reports"},
		{"BREW", "/orders/7", onlyOrders, "/orders/{id}"},
		{"GET", "/export/all", both, "/export/"},
	} {
		status, inside := s.ask(t, c.method, c.target)
		if status != http.StatusOK || inside != c.inside {
			t.Errorf("%s %s: %d, inside %s, want %s", c.method, c.target, status, inside, c.inside)
		}
		p := s.groups.Lookup(httptest.NewRequest(c.method, c.target, nil))
		if p.Route != c.route {
			t.Errorf("%s %s: route %q, want %q", c.method, c.target, p.Route, c.route)
		}
	}
	wantConserved(t, s.reports)
	wantConserved(t, s.orders)
}

// KR-07: whichever way the path is disguised, the gate is passed, also where the
// path as sent is exempt, and nothing is redirected.
func TestKR07DisguisedPathsPassTheGate(t *testing.T) {
	s := newShop(t)
	for _, target := range []string{
		"//reports/x", "/reports//x", "/./reports/x", "/reports/./x", "///reports///x",
		"/REPORTS/7", "/Reports/7", "/%72eports/7", "/%2572eports/7", "/reports%2f7", "/reports%2F7",
		"/x/../reports/7", "/health/../reports/7", "/health/..;/reports/7", "/health/..;x=1/reports/7",
		"/health/%2e%2e/reports/7", "/health/..%2freports/7", "/health%2f..%2freports%2f7", `/health/..\reports\7`,
		"/health/%252e%252e/reports/7", "/health;x/../reports/7", "/reports;x=1/7", "/%2freports/7",
	} {
		status, inside := s.ask(t, "GET", target)
		if status != http.StatusOK || inside != onlyReports {
			t.Errorf("%s: %d, inside %s", target, status, inside)
		}
		leave := occupy(t, s.reports)
		status, inside = s.ask(t, "GET", target)
		leave()
		if status != http.StatusServiceUnavailable || inside != "" {
			t.Errorf("%s with full reports: %d, inside %q", target, status, inside)
		}
		if p := s.groups.Lookup(httptest.NewRequest("GET", target, nil)); p.Route == "" {
			t.Errorf("%s: no route", target)
		}
	}
	for _, e := range s.passed.all() {
		t.Errorf("passed without a slot: %+v", e)
	}
	for _, e := range s.seen.all() {
		if !slices.Contains([]string{"GET /reports/", "/health/", ""}, e.Route) {
			t.Errorf("a label that is no pattern: %q", e.Route)
		}
	}
}

// A path with several readings passes every gate that any of them names, in the
// one order that all routes agree on.
func TestGroupsUnionIsInOneOrder(t *testing.T) {
	s := newShop(t)
	for _, target := range []string{"/reports/../orders/7", "/orders/x%2f..%2f..%2freports%2f7", "/export/../reports/7"} {
		p := s.groups.Lookup(httptest.NewRequest("GET", target, nil))
		if want := []*Gate{s.orders, s.reports}; !slices.Equal(p.Gates, want) {
			t.Errorf("%s: %d gates, want orders and reports", target, len(p.Gates))
		}
		if _, inside := s.ask(t, "GET", target); inside != both {
			t.Errorf("%s: inside %s", target, inside)
		}
	}
}

func TestGroupsUnionOfManyGates(t *testing.T) {
	var gates []*Gate
	var routes []Route
	for i := range 12 { // more than a request has room for
		g := httpGate(t, Config{Name: fmt.Sprint("g", i), MaxInFlight: 1})
		gates = append(gates, g)
		routes = append(routes, Route{Match: fmt.Sprintf("/a%d/", i), Gates: []*Gate{g}})
	}
	order := slices.Clone(gates)
	slices.Reverse(order)
	routes = append(routes, Route{Match: "/all/", Gates: order})
	groups, err := NewGroups(GroupsConfig{Routes: routes})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/all/../a0/../a11/../a5/x", nil)
	p := groups.Lookup(r)
	if !slices.Equal(p.Gates, order) || p.Route != "/all/" {
		t.Errorf("route %q, %d gates", p.Route, len(p.Gates))
	}
	p.Gates[0] = nil // a copy
	inside := 0
	groups.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for _, g := range gates {
			inside += g.Stats().InUse
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if inside != len(gates) {
		t.Errorf("%d slots taken", inside)
	}
	for _, g := range gates {
		wantConserved(t, g)
	}
}

// Lookup is what Wrap does, for every reading that the shop's paths can have.
func TestLookupAgreesWithWrap(t *testing.T) {
	s := newShop(t, Route{Match: "shop.example/", Gates: []*Gate{s0(t)}})
	pieces := []string{"/reports", "/orders", "/export", "/health", "/7", "/..", "/.", "//", "%2f", ";x", `\`, "/REPORTS", "%252e"}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				target := "/" + strings.TrimPrefix(a+b+c, "/")
				want := map[*Gate]int{}
				for _, g := range s.groups.Lookup(httptest.NewRequest("GET", target, nil)).Gates {
					want[g] = 1
				}
				_, inside := s.ask(t, "GET", target)
				if got := fmt.Sprintf("orders %d reports %d", want[s.orders], want[s.reports]); inside != got {
					t.Errorf("%s: Lookup says %s, Wrap passed %s", target, got, inside)
				}
			}
		}
	}
}

func s0(t *testing.T) *Gate { return httpGate(t, Config{Name: "host", MaxInFlight: 1}) }

// KR-09: the host of a route, and which route wins.
func TestKR09HostRoutes(t *testing.T) {
	host := s0(t)
	s := newShop(t, Route{Match: "shop.example/", Gates: []*Gate{host}})
	for name, want := range map[string]string{
		"shop.example": "shop.example/", "shop.example:8080": "shop.example/", "SHOP.example.": "shop.example/",
		"other.example": "GET /reports/", "xshop.example": "GET /reports/",
	} {
		r := httptest.NewRequest("GET", "/reports/7", nil)
		r.Host = name
		if p := s.groups.Lookup(r); p.Route != want {
			t.Errorf("host %s: %q, want %q", name, p.Route, want)
		}
	}
}

// KR-08: matching leaves every byte of the request as it was.
func TestKR08BytesReachTheHandlerUntouched(t *testing.T) {
	s := newShop(t)
	for _, target := range []string{
		"/x/%2F/y", "/x/https%3A%2F%2Fh%2F", "/x/a%20b", "/x/%E2%82%AC", "/reports/7?a=1;b=2", "//reports/x",
		"/health/../reports/7", "/REPORTS/%37", "/reports/;v=1/./x", "/reports/a%252Fb", "/export//",
	} {
		plain, gated := httptest.NewRequest("GET", target, nil), httptest.NewRequest("GET", target, nil)
		s.groups.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r != gated || *r.URL != *plain.URL || r.RequestURI != plain.RequestURI || r.Host != plain.Host {
				t.Errorf("%s became %+v, %s", target, r.URL, r.RequestURI)
			}
		})).ServeHTTP(httptest.NewRecorder(), gated)
	}
}

// The same on the wire, with nothing between that could clean the path.
func TestKR08BytesOnTheWire(t *testing.T) {
	s := newShop(t)
	srv, _ := listen(t, 1, s.groups.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s reports %d", r.RequestURI, s.reports.Stats().InUse)
	})))
	for _, target := range []string{"//reports/x", "/health/..;/reports/7", "/health/../reports/7?a=1;b=2", "/REPORTS/%2F/7"} {
		conn := dial(t, srv)
		conn.send("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if res := conn.answer("GET"); res.StatusCode != 200 || string(res.body) != target+" reports 1" {
			t.Errorf("%s: %d %q", target, res.StatusCode, res.body)
		}
	}
}

// Requests without a slot are told of, with their route and a request id.
func TestGroupsTellOfExemptRequests(t *testing.T) {
	s := newShop(t)
	for target, route := range map[string]string{"/health": "/health", "/health/live": "/health/", "/nowhere": ""} {
		before := len(s.passed.all())
		r := httptest.NewRequest("GET", target, nil)
		r.Header.Set("X-Request-Id", "4bf92f35")
		s.groups.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(httptest.NewRecorder(), r)
		told := s.passed.all()[before:]
		want := Event{Kind: EventDecided, Decision: Exempted, Route: route, RequestID: "4bf92f35", RemoteIP: "192.0.2.1"}
		if len(told) != 1 || told[0] != want {
			t.Errorf("%s: %+v", target, told)
		}
	}
	if got := s.seen.all(); len(got) > 0 {
		t.Errorf("the gates tell %+v", got)
	}
}

// An observer that panics harms nobody.
func TestGroupsContainPanickingObservers(t *testing.T) {
	second := &httpEvents{}
	groups, err := NewGroups(GroupsConfig{Observers: []Observer{ObserverFunc(func(Event) { panic("bug") }), second}})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	groups.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 || len(second.all()) != 1 {
		t.Errorf("%d, the second observer saw %d", w.Code, len(second.all()))
	}
}

func TestGroupsMistakesAllAtOnce(t *testing.T) {
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1})
	_, err := NewGroups(GroupsConfig{
		Routes: []Route{
			{Match: "get /x", Gates: []*Gate{g}},
			{Match: "/none"},
			{Match: "/two", Gates: []*Gate{g}, Exempt: true},
			{Match: "/nil", Gates: []*Gate{g, nil}},
			{Match: "/twice", Gates: []*Gate{g, g}},
			{Match: "/x?y=1", Exempt: true},
		},
		Observers: []Observer{nil},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`Routes[0] ("get /x")`, `Routes[1] ("/none"): it has no gate`, `Routes[2] ("/two"): it is exempt and has gates`,
		`Routes[3] ("/nil"): `, `gate 1 of the chain is nil`, `Routes[4] ("/twice"): `, `"reports" is twice in the chain`,
		`Routes[5] ("/x?y=1")`, `Observers[0] is nil`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nin: %v", want, err)
		}
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "forebay: ") || strings.Count(line, "forebay: ") > 1 {
			t.Errorf("line %q", line)
		}
	}
}

// Two requests must never wait for each other's slots, so the routes have to name
// their gates in an order that one order of all agrees with.
func TestGroupsRefuseAnInconsistentOrder(t *testing.T) {
	var g [4]*Gate
	for i := range g {
		g[i] = httpGate(t, Config{Name: fmt.Sprint("g", i), MaxInFlight: 1})
	}
	for _, c := range []struct {
		name   string
		chains [][]int
		ok     bool
	}{
		{"the same order", [][]int{{0, 1}, {0, 1, 2}}, true},
		{"different gates", [][]int{{0, 1}, {3, 2}}, true},
		{"to be merged", [][]int{{2, 3}, {0, 2}, {1, 3}, {0, 1}}, true},
		{"crossed", [][]int{{0, 1}, {1, 0}}, false},
		{"crossed by way of a third", [][]int{{0, 1}, {1, 2}, {2, 0}}, false},
		{"crossed by way of all", [][]int{{0, 1}, {1, 2, 3}, {3, 0}}, false},
	} {
		var routes []Route
		for i, chain := range c.chains {
			r := Route{Match: fmt.Sprintf("/%d", i)}
			for _, n := range chain {
				r.Gates = append(r.Gates, g[n])
			}
			routes = append(routes, r)
		}
		groups, err := NewGroups(GroupsConfig{Routes: routes})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "before and after") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			agreesWithAll(t, c.name, groups, routes)
		}
	}
}

// agreesWithAll checks that the union of all routes has the order of each.
func agreesWithAll(t *testing.T, name string, groups *Groups, routes []Route) {
	t.Helper()
	target := "/0"
	for i := 1; i < len(routes); i++ {
		target += fmt.Sprintf("/../%d", i)
	}
	union := groups.Lookup(httptest.NewRequest("GET", target, nil)).Gates
	for _, r := range routes {
		at := -1
		for _, g := range r.Gates {
			next := slices.Index(union, g)
			if r.Match == "/0" && next < 0 { // only "/1" and up are ends of a reading
				continue
			}
			if next >= 0 && next < at {
				t.Errorf("%s: the union does not keep the order of %s", name, r.Match)
			}
			at = max(at, next)
		}
	}
}

// A set without routes passes everybody, and what the caller does to its
// configuration afterwards changes nothing.
func TestGroupsKeepWhatTheyWereGiven(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	routes := []Route{{Match: "/", Gates: []*Gate{g}}}
	groups, err := NewGroups(GroupsConfig{Routes: routes})
	empty, err2 := NewGroups(GroupsConfig{})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	routes[0].Gates[0] = nil
	routes[0].Match = "/elsewhere"
	r := httptest.NewRequest("GET", "/x", nil)
	if p := groups.Lookup(r); p.Route != "/" || len(p.Gates) != 1 || p.Gates[0] != g {
		t.Errorf("%+v", p)
	}
	if p := empty.Lookup(r); p.Route != "" || len(p.Gates) != 0 {
		t.Errorf("%+v", p)
	}
}
