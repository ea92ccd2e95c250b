package forebaytest

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"example.com/forebay"
)

func newGate(t testing.TB, c forebay.Config) *forebay.Gate {
	t.Helper()
	g, err := forebay.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return g
}

func openWrap(t testing.TB, c forebay.Config, backend http.Handler) *System {
	g := newGate(t, c)
	return NewSystem(g.Wrap(backend), g)
}

// openObserved tracks and observes, which is another way through the gate.
func openObserved(t testing.TB, c forebay.Config, backend http.Handler) *System {
	var rec Recorder
	c.Observers, c.Track = []forebay.Observer{&rec}, true
	g := newGate(t, c)
	t.Cleanup(func() { rec.Check(t, g) })
	return NewSystem(g.Wrap(backend), g)
}

// openLimited has a limiter that leaves the limit as it is.
func openLimited(t testing.TB, c forebay.Config, backend http.Handler) *System {
	c.Limiter, c.LeaseInContext = &Limit{}, true
	g := newGate(t, c)
	return NewSystem(g.Wrap(backend), g)
}

// openGroups finds its gate by route.
func openGroups(t testing.TB, c forebay.Config, backend http.Handler) *System {
	g := newGate(t, c)
	groups, err := forebay.NewGroups(forebay.GroupsConfig{
		Routes: []forebay.Route{{Match: "/", Gates: []*forebay.Gate{g}}},
	})
	if err != nil {
		t.Fatalf("NewGroups: %v", err)
	}
	return NewSystem(groups.Wrap(backend), g)
}

func openHandlerFunc(t testing.TB, c forebay.Config, backend http.Handler) *System {
	g := newGate(t, c)
	return NewSystem(g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, l forebay.Lease) {
		backend.ServeHTTP(w, r)
	}), g)
}

// openAcquire gates by hand, which is how a request gets a cost.
func openAcquire(t testing.TB, c forebay.Config, backend http.Handler) *System {
	g := newGate(t, c)
	s := NewSystem(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if forebay.IsPreflight(r) {
			backend.ServeHTTP(w, r)
			return
		}
		cost, _ := strconv.Atoi(r.Header.Get("Cost"))
		lease, err := g.Acquire(r.Context(), forebay.Call{Cost: cost})
		if err != nil {
			forebay.Refuse(w, r, err)
			return
		}
		defer lease.Release()
		backend.ServeHTTP(w, r)
	}), g)
	s.SetCost = func(r *http.Request, cost int) { r.Header.Set("Cost", strconv.Itoa(cost)) }
	return s
}

// openChain puts a gate that always has room in front of the one under test.
func openChain(t testing.TB, c forebay.Config, backend http.Handler) *System {
	wide := c
	wide.Name, wide.MaxInFlight = "wide", 4000
	return chainOf(t, backend, newGate(t, wide), newGate(t, c))
}

// openTwins has two gates of the same size: the first refuses, the second never
// may.
func openTwins(t testing.TB, c forebay.Config, backend http.Handler) *System {
	twin := c
	twin.Name = "twin"
	tested, second := newGate(t, c), newGate(t, twin)
	s := chainOf(t, backend, tested, second)
	s.SetLimit = tested.SetLimit
	return s
}

func chainOf(t testing.TB, backend http.Handler, gates ...*forebay.Gate) *System {
	t.Helper()
	chain, err := forebay.NewChain(gates...)
	if err != nil {
		t.Fatalf("NewChain: %v", err)
	}
	return NewSystem(chain.Wrap(backend), gates...)
}

// openProxy has a reverse proxy behind the gate, and the backend on a server of
// its own.
func openProxy(t testing.TB, c forebay.Config, backend http.Handler) *System {
	g := newGate(t, c)
	upstream := NewServer(t, backend)
	s := NewSystem(g.Wrap(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "upstream.test"}) },
		Transport: upstream.Client().Transport,
		ErrorLog:  log.New(io.Discard, "", 0),
		// Flush what the upstream flushes.
		FlushInterval: -1,
	}), g)
	s.ReleasesDeparted = true
	return s
}

func TestConformance(t *testing.T) {
	for _, s := range []struct {
		name string
		open Opener
	}{
		{"Gate.Wrap", openWrap},
		{"Gate.Wrap observed", openObserved},
		{"Gate.Wrap limited", openLimited},
		{"Gate.Wrap with slots from a cluster", openLent},
		{"Gate.Wrap without its cluster", openAlone},
		{"Gate.Wrap with each slot from a cluster", openReturning},
		{"Gate.HandlerFunc", openHandlerFunc},
		{"Gate.Acquire", openAcquire},
		{"Groups.Wrap", openGroups},
		{"Gate.Wrap of a proxy", openProxy},
		{"Chain.Wrap", openChain},
		{"Chain.Wrap twins", openTwins},
	} {
		t.Run(s.name, func(t *testing.T) { Conformance(t, s.open) })
	}
}
