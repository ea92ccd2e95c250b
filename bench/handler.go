package main

import (
	"net/http"

	"example.com/forebay"
)

const (
	bareHandler     = "bare handler"
	wrapAccepted    = "forebay Wrap, accepted"
	wrapRefused     = "forebay Wrap, refused"
	groupsAccepted  = "forebay Groups, accepted"
	groupsRefused   = "forebay Groups, refused"
	chiAccepted     = "chi throttle, accepted"
	chiRefused      = "chi throttle, refused"
	failsafeAccept  = "failsafehttp, accepted"
	failsafeRefused = "failsafehttp, refused"

	added = "ns added"
)

// handlerLimit is far from what one goroutine can hold.
const handlerLimit = 64

func handlerSection(e effort) (*section, error) {
	s := &section{
		name: "handler", title: "As middleware, without a network", base: bareHandler,
		about: "Calls of the wrapped handler, which does nothing, with a response writer that keeps nothing and a request that is used again. A refusal is a whole answer: status, headers, body.",
		columns: []column{
			{name: seqNS, neutral: true}, {name: added}, {name: allocs}, {name: bytesOf},
		},
		rows: []row{
			{name: bareHandler, kind: yardstick, measure: alone(e, handled(nothing{}, http.StatusOK))},
		},
		rounds:  e.loopRounds,
		targets: []target{noAllocation(wrapAccepted, allocs), noAllocation(groupsAccepted, allocs)},
		notes: []string{
			"Groups finds the gate by the request's path, among twelve routes; the others have one gate and do not look.",
			"forebay's refusal has a request id of its own, Retry-After, Cache-Control, Proxy-Status and a JSON body; chi's, at its documented best, a Retry-After and one line; failsafehttp's one line.",
		},
	}
	for _, m := range middlewares(nothing{}) {
		s.rows = append(s.rows, row{
			name: m.name, kind: m.kind, against: m.against, measure: alone(e, handled(m.handler, m.status)),
		})
	}
	plain := s.rows
	s.together = func(i int) (round, error) { return overBare(plain, i), nil }
	return s, nil
}

// overBare measures the rows one by one, and what each adds to the bare handler.
func overBare(rows []row, i int) round {
	m, _ := (&section{rows: rows}).pass(i) // rows that measure one by one have no error
	for _, f := range m {
		f[added] = f[seqNS] - m.at(bareHandler, seqNS)
	}
	delete(m[bareHandler], added)
	return m
}

// wrapped is one gate in front of a handler, open or full.
type wrapped struct {
	name    string
	kind    kind
	against string
	handler http.Handler
	status  int // of its answers
}

// middlewares puts every gate in front of next, once with room and once full.
func middlewares(next http.Handler) []wrapped {
	open := newGate(forebay.Config{Name: "reports", MaxInFlight: handlerLimit})
	full := fullGate(forebay.Config{Name: "reports"})
	chiFull := take(func(h http.Handler) http.Handler { return retryAfterChi(1, h) })
	return []wrapped{
		{wrapAccepted, ours, "", open.Wrap(next), http.StatusOK},
		{groupsAccepted, ours, "", groupsWith(open).Wrap(next), http.StatusOK},
		{chiAccepted, rival, wrapAccepted, retryAfterChi(handlerLimit, next), http.StatusOK},
		{failsafeAccept, rival, wrapAccepted, failsafeHandler(newBulkhead[*http.Response](handlerLimit, 0), next), http.StatusOK},
		{wrapRefused, ours, "", full.Wrap(next), http.StatusServiceUnavailable},
		{groupsRefused, ours, "", groupsWith(full).Wrap(next), http.StatusServiceUnavailable},
		{chiRefused, rival, wrapRefused, chiFull, http.StatusTooManyRequests},
		{failsafeRefused, rival, wrapRefused, failsafeHandler(fullBulkhead[*http.Response](0), next), http.StatusTooManyRequests},
	}
}

// groupsWith returns groups in which the request's route, one of twelve, has the
// gate.
func groupsWith(g *forebay.Gate) *forebay.Groups {
	other := newGate(forebay.Config{Name: "other", MaxInFlight: handlerLimit})
	c := forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "GET /reports/{id}", Gates: []*forebay.Gate{g}},
		{Match: "/healthz", Exempt: true},
	}}
	for _, match := range []string{
		"GET /reports", "POST /reports", "/reports/{id}/pages/{page}", "/orders", "/orders/{id}",
		"/users", "/users/{id}", "/users/{id}/avatar", "/static/{file...}", "/",
	} {
		c.Routes = append(c.Routes, forebay.Route{Match: match, Gates: []*forebay.Gate{other}})
	}
	return must(forebay.NewGroups(c))
}

// handled calls a handler with one writer and one request.
func handled(h http.Handler, status int) loop {
	r := newRequest()
	return func(n int) {
		w := newDiscard()
		for range n {
			h.ServeHTTP(w, r)
			if w.status != status {
				panic("bench: another answer than expected")
			}
			w.reset()
		}
	}
}
