package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/forebay"
)

// Options say who is served and what they see. The zero value is the safe default:
// nobody sees more than /health and /ready.
type Options struct {
	// Token is what callers must send. Empty: none, which only loopback allows.
	Token string
	// Loopback says that the listener cannot be reached from other machines.
	Loopback bool
	// Anonymise returns how an address is shown. Nil: none is.
	Anonymise func(ip string) string
}

// Handler returns the admin port's handler. Scrapes are answered by metrics.
func Handler(p Program, metrics http.Handler, opts Options) http.Handler {
	a := &admin{
		program: p, health: NewHealth(p), anonymise: opts.Anonymise,
		door: newDoor(opts), feed: newFeed(),
	}
	if a.anonymise == nil {
		a.anonymise = func(string) string { return "" }
	}
	a.endpoints = a.table(metrics)
	return a
}

// admin is the handler.
type admin struct {
	program   Program
	health    *Health
	anonymise func(string) string
	door      *door
	feed      *feed
	endpoints []endpoint
}

// serveFunc answers one request; name is what stands for the part of the path in braces.
type serveFunc func(w http.ResponseWriter, r *http.Request, name string)

// endpoint is one path and what can be done with it.
type endpoint struct {
	path    string // with {gate} or {id} at one place or none
	about   string
	open    bool // served without the token
	methods map[string]serveFunc
}

// table lists everything that is served, in the order in which it is shown.
func (a *admin) table(metrics http.Handler) []endpoint {
	get := func(f serveFunc) map[string]serveFunc { return map[string]serveFunc{http.MethodGet: f} }
	scrape := func(w http.ResponseWriter, r *http.Request, _ string) { metrics.ServeHTTP(w, r) }
	return []endpoint{
		{path: "/", about: "this list", methods: get(a.servePage)},
		{path: "/health", about: "ok or degraded; 503 only while draining", open: true, methods: get(a.serveHealth)},
		{path: "/ready", about: "503 only while draining", open: true, methods: get(a.serveReady)},
		{path: "/metrics", about: "for Prometheus", methods: get(scrape)},
		{path: "/stats", about: "what the program and its gates do", methods: get(a.serveStats)},
		{path: "/stats/{gate}", about: "what one gate does", methods: get(a.serveGateStats)},
		{path: "/holders", about: "who holds slots, and for how long", methods: get(a.serveHolders)},
		{path: "/holders/{gate}", about: "who holds the slots of one gate", methods: get(a.serveGateHolders)},
		{path: "/history/{gate}", about: "what one gate did in the last hour", methods: get(a.serveHistory)},
		{path: eventsPath, about: "the same as /stats each second, as server-sent events", methods: get(a.serveEvents)},
		{path: "/rejections", about: "the last refusals, each explained", methods: get(a.serveRejections)},
		{path: "/explain/{id}", about: "what became of one call, and why", methods: get(a.serveExplain)},
		{path: "/gates", about: "limits configured and in force", methods: get(a.serveGates)},
		{path: "/gates/{gate}/max_in_flight", about: "another limit for a while", methods: map[string]serveFunc{
			http.MethodGet: a.serveLimit, http.MethodPut: a.setLimit, http.MethodDelete: a.clearLimit,
		}},
		{path: "/reload", about: "read the configuration again", methods: map[string]serveFunc{http.MethodPost: a.reload}},
		{path: "/drain", about: "admit nobody, or everybody again, without exit", methods: map[string]serveFunc{
			http.MethodPost: a.drain, http.MethodDelete: a.resume,
		}},
	}
}

// ServeHTTP answers one request of the admin port.
func (a *admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	e, name := a.find(r.URL.Path)
	if status, why := a.door.refuse(r, e != nil && e.open); status != 0 {
		if status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="forebay"`)
		}
		answer(w, r, status, failure{Error: why})
		return
	}
	if e == nil {
		answer(w, r, http.StatusNotFound, failure{
			Error: fmt.Sprintf("nothing is at %q; endpoints has what exists", r.URL.Path), Endpoints: a.list(),
		})
		return
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	serve := e.methods[method]
	if serve == nil {
		allowed := strings.Join(e.allowed(), ", ")
		h.Set("Allow", allowed)
		answer(w, r, http.StatusMethodNotAllowed, failure{Error: fmt.Sprintf("%s takes %s, not %s", e.path, allowed, r.Method)})
		return
	}
	serve(w, r, name)
}

// find returns the endpoint of a path, and the gate or the id that it names. Paths are
// taken as they are: nothing is cleaned or redirected, and a name may have slashes.
func (a *admin) find(path string) (e *endpoint, name string) {
	for i := range a.endpoints {
		e := &a.endpoints[i]
		before, rest, named := strings.Cut(e.path, "{")
		if !named {
			if path == e.path {
				return e, ""
			}
			continue
		}
		_, after, _ := strings.Cut(rest, "}")
		name, ok := strings.CutPrefix(path, before)
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, after); ok && name != "" {
			return e, name
		}
	}
	return nil, ""
}

// allowed returns the methods that an endpoint takes.
func (e *endpoint) allowed() []string {
	var all []string
	for m := range e.methods {
		all = append(all, m)
		if m == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	slices.Sort(all)
	return all
}

// list returns what exists, for whoever asked for something else.
func (a *admin) list() []string {
	var all []string
	for _, e := range a.endpoints {
		all = append(all, strings.Join(e.allowed(), ",")+" "+e.path)
	}
	return all
}

// withGate calls f with the gate of that name, or answers which gates there are.
func (a *admin) withGate(w http.ResponseWriter, r *http.Request, name string, f func(*forebay.Gate)) {
	gates := a.program.Gates()
	if i := slices.IndexFunc(gates, func(g *forebay.Gate) bool { return g.Name() == name }); i >= 0 {
		f(gates[i])
		return
	}
	missing := failure{Error: fmt.Sprintf("there is no gate %q; gates has the names that exist", name), Gates: []string{}}
	for _, g := range gates {
		missing.Gates = append(missing.Gates, g.Name())
	}
	answer(w, r, http.StatusNotFound, missing)
}
