package forebay

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// stepLog is one order of what happens at several gates: a limiter is told under
// its gate's lock.
type stepLog struct {
	mu    sync.Mutex // guards steps
	steps []string
}

// tap is a [Limiter] that moves nothing.
type tap struct {
	gate  string
	limit int
	log   *stepLog
}

var tapped = map[ObservationKind]string{ObservedStart: "start", ObservedFinish: "finish", ObservedLeave: "leave"}

func (p tap) Observe(o *Observation) int {
	if step, ok := tapped[o.Kind]; ok {
		p.log.mu.Lock()
		p.log.steps = append(p.log.steps, step+" "+p.gate)
		p.log.mu.Unlock()
	}
	return p.limit
}

func (l *stepLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	steps := l.steps
	l.steps = nil
	return steps
}

func tappedGate(t *testing.T, log *stepLog, name string, limit int) *Gate {
	t.Helper()
	return httpGate(t, Config{Name: name, MaxInFlight: limit, Limiter: tap{name, limit, log}})
}

// SL-03: the first gate admits, the second refuses, as often as it takes to leak
// the first one empty.
func TestSL03ChainIsUnwound(t *testing.T) {
	const limit = 2
	for _, config := range []Config{
		{MaxInFlight: limit},
		{MaxInFlight: limit, Track: true},
		{MaxInFlight: limit, MaxWait: time.Minute},
	} {
		config.Name = "first"
		first := httpGate(t, config)
		second := httpGate(t, Config{Name: "second", MaxInFlight: 1})
		chain, err := NewChain(first, second)
		if err != nil {
			t.Fatal(err)
		}
		leave := occupy(t, second)
		h := chain.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
		for i := range limit + 1 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("request %d: %d", i, w.Code)
			}
			if st := first.Stats(); st.InUse != 0 || st.Calls != 0 {
				t.Fatalf("request %d left %d in the first gate", i, st.InUse)
			}
		}
		if st := second.Stats(); st.RejectedBusy != limit+2 { // one is occupy's
			t.Errorf("the second gate counts %d refusals", st.RejectedBusy)
		}
		if st := first.Stats(); st.Accepted+st.Rejected() != 0 {
			t.Errorf("the first gate counts decisions that the second made: %+v", st)
		}
		leave()
		wantConserved(t, first)
		wantConserved(t, second)
		admitsFullSet(t, first)
	}
}

func TestSL03OrderOfReleaseIsReversed(t *testing.T) {
	log := &stepLog{}
	first, second := tappedGate(t, log, "first", 1), tappedGate(t, log, "second", 1)
	third := httpGate(t, Config{Name: "third", MaxInFlight: 1})
	chain, err := NewChain(first, second, third)
	if err != nil {
		t.Fatal(err)
	}
	call := func(handler http.HandlerFunc) {
		defer func() { _ = recover() }()
		chain.Wrap(handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	want := func(what string, steps ...string) {
		t.Helper()
		if got := log.take(); !slices.Equal(got, steps) {
			t.Errorf("%s: %q, want %q", what, got, steps)
		}
	}

	call(echoOK)
	want("served", "start first", "start second", "finish second", "finish first")

	call(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	want("panicked", "start first", "start second", "finish second", "finish first")

	leave := occupy(t, third)
	call(echoOK)
	want("refused by the third", "start first", "start second", "leave second", "leave first")
	leave()
	wantConserved(t, third)
}

// A refusal of a chain names the gate that refused, in its own look.
func TestChainRefusalIsOfTheGateThatRefused(t *testing.T) {
	first := httpGate(t, Config{Name: "first", MaxInFlight: 1})
	second := httpGate(t, Config{Name: "second", MaxInFlight: 1, Refusal: Refusal{Status: 429}})
	chain, err := NewChain(first, second)
	if err != nil {
		t.Fatal(err)
	}
	h := chain.Wrap(http.HandlerFunc(echoOK))
	for gate, status := range map[*Gate]int{first: 503, second: 429} {
		leave := occupy(t, gate)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		leave()
		if got := parseRefusal(t, w.Body.Bytes()); w.Code != status || got.Gate != gate.Name() {
			t.Errorf("gate %q full: %d by %q", gate.Name(), w.Code, got.Gate)
		}
	}
}
