package forebay

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// keptWriter is a writer whose header map is made once, so that only what the
// gate allocates is counted.
type keptWriter struct{ header http.Header }

func (w *keptWriter) Header() http.Header         { return w.header }
func (w *keptWriter) WriteHeader(int)             {}
func (w *keptWriter) Write(p []byte) (int, error) { return len(p), nil }

func allocations(h http.Handler, r *http.Request) float64 {
	w := &keptWriter{http.Header{}}
	return testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
}

func TestAcceptedRequestAllocatesNothing(t *testing.T) {
	g := httpGate(t, Config{Name: "g", MaxInFlight: 8})
	waits := httpGate(t, Config{Name: "waits", MaxInFlight: 8, MaxWait: 1})
	groups, err := NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/one/{id}", Gates: []*Gate{g}},
		{Match: "/two/", Gates: []*Gate{g, waits}},
		{Match: "/health", Exempt: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	chain, err := NewChain(g, waits)
	if err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(echoOK)
	for name, c := range map[string]struct {
		h      http.Handler
		target string
	}{
		"Wrap":                {g.Wrap(ok), "/"},
		"Wrap with a line":    {waits.Wrap(ok), "/"},
		"HandlerFunc":         {g.HandlerFunc(func(http.ResponseWriter, *http.Request, Lease) {}), "/"},
		"Chain":               {chain.Wrap(ok), "/"},
		"Groups, one gate":    {groups.Wrap(ok), "/one/7"},
		"Groups, two gates":   {groups.Wrap(ok), "/two/7"},
		"Groups, exempt":      {groups.Wrap(ok), "/health"},
		"Groups, no route":    {groups.Wrap(ok), "/nowhere"},
		"Groups, upper case":  {groups.Wrap(ok), "/ONE/7"},
		"Groups, long target": {groups.Wrap(ok), "/two/a/b/c/d/e/f/g/h/i/j?k=l"},
	} {
		if n := allocations(c.h, httptest.NewRequest("GET", c.target, nil)); n != 0 {
			t.Errorf("%s: %v allocations for an accepted request", name, n)
		}
	}
}

// With rules for its answer a request costs one: what the rules need to know.
func TestWatchedRequestAllocatesLittle(t *testing.T) {
	for name, c := range map[string]Config{
		"Hold": {Hold: HoldFirstByte}, "Streams": {Streams: Streams{Release: true}}, "Upload": {Upload: Upload{MinRate: 1}, Hold: HoldFirstByte},
	} {
		c.MaxInFlight = 1
		g := httpGate(t, c)
		if n := allocations(g.Wrap(http.HandlerFunc(echoOK)), httptest.NewRequest("GET", "/", nil)); n != 1 {
			t.Errorf("%s: %v allocations, want 1", name, n)
		}
	}
}

// A refusal costs two: the request's id, and the header that carries it. Where the request
// has brought one it costs nothing.
func TestRefusalAllocatesLittle(t *testing.T) {
	const want = 2
	for name, config := range map[string]Config{
		"plain":   {MaxInFlight: 1},
		"problem": {MaxInFlight: 1, Refusal: Refusal{Problem: true}},
		"line":    {MaxInFlight: 1, MaxWait: 1, MaxWaiting: 1},
	} {
		config.Refusal.RetryAfter.Max = 1 // computed, within the headers that are shared
		g := httpGate(t, config)
		if name == "line" {
			if err := g.SetLimit(0); err != nil {
				t.Fatal(err)
			}
		} else {
			occupy(t, g)
		}
		r := httptest.NewRequest("GET", "/", nil)
		if n := allocations(g.Wrap(http.HandlerFunc(echoOK)), r); n > want {
			t.Errorf("%s: %v allocations for a refusal, want at most %d", name, n, want)
		}
		r.Header.Set("X-Request-Id", "4bf92f35")
		if n := allocations(g.Wrap(http.HandlerFunc(echoOK)), r); n != 0 {
			t.Errorf("%s: %v allocations for a refusal of a request with an id", name, n)
		}
	}
}
