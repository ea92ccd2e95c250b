package forebay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// httpGate returns a gate; its retries are fixed, so that answers are exact.
func httpGate(t testing.TB, c Config) *Gate {
	t.Helper()
	if c.Refusal.RetryAfter == (RetryAfter{}) {
		c.Refusal.RetryAfter.Fixed = 2 * time.Second
	}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// occupy takes all that a gate has left.
func occupy(t testing.TB, g *Gate) (leave func()) {
	t.Helper()
	var leases []Lease
	for l, ok := g.TryAcquire(Call{}); ok; l, ok = g.TryAcquire(Call{}) {
		leases = append(leases, l)
	}
	if len(leases) == 0 {
		t.Fatalf("gate %q was full already", g.Name())
	}
	return func() {
		for _, l := range leases {
			l.Release()
		}
	}
}

// waitUntil waits for a condition that other goroutines bring about.
func waitUntil(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); runtime.Gosched() {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("this did not come: %s", what)
		}
	}
}

func untilIdle(t testing.TB, gates ...*Gate) {
	t.Helper()
	for _, g := range gates {
		waitUntil(t, g.Name()+" idle", func() bool {
			st := g.Stats()
			return st.InUse == 0 && st.Waiting == 0
		})
	}
}

// wantConserved checks what is true of every gate at rest.
func wantConserved(t testing.TB, g *Gate) {
	t.Helper()
	st := g.Stats()
	if st.InUse != 0 || st.Calls != 0 || st.Waiting != 0 || st.Granted != st.Released || st.StaleReleases != 0 {
		t.Errorf("at rest: %+v", st)
	}
}

// httpEvents keeps what it is told.
type httpEvents struct {
	mu   sync.Mutex // guards seen
	seen []Event
}

func (l *httpEvents) Observe(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, e)
}

func (l *httpEvents) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

func (l *httpEvents) outcomes() (all []Outcome) {
	for _, e := range l.all() {
		if e.Kind == EventReleased {
			all = append(all, e.Outcome)
		}
	}
	return all
}

// touchedWriter counts what is done to it, and knows nothing but the least.
type touchedWriter struct {
	header                 http.Header
	headers, writes, codes int
}

func (w *touchedWriter) Header() http.Header         { w.headers++; return w.header }
func (w *touchedWriter) WriteHeader(int)             { w.codes++ }
func (w *touchedWriter) Write(p []byte) (int, error) { w.writes++; return len(p), nil }

func echoOK(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// wraps are the ways to put a gate in front of a handler.
func wraps(t *testing.T, g *Gate) map[string]func(http.Handler) http.Handler {
	t.Helper()
	other := httpGate(t, Config{Name: "other", MaxInFlight: 1000})
	chain, err := NewChain(other, g)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/", Gates: []*Gate{g}}}})
	if err != nil {
		t.Fatal(err)
	}
	chained, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/", Gates: []*Gate{other, g}}}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(http.Handler) http.Handler{
		"Gate": g.Wrap,
		"HandlerFunc": func(h http.Handler) http.Handler {
			return g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ Lease) { h.ServeHTTP(w, r) })
		},
		"Chain":        chain.Wrap,
		"Groups":       groups.Wrap,
		"Groups chain": chained.Wrap,
	}
}

func TestWrapAdmitsRefusesAndGivesBack(t *testing.T) {
	log := &httpEvents{}
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 2, Observers: []Observer{log}})
	for name, wrap := range wraps(t, g) {
		t.Run(name, func(t *testing.T) {
			before := g.Stats()
			h := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if st := g.Stats(); st.InUse != 1 {
					t.Errorf("inside: %d in use", st.InUse)
				}
				w.WriteHeader(http.StatusTeapot)
			}))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != http.StatusTeapot || len(w.Header()) != 0 || w.Body.Len() != 0 {
				t.Errorf("admitted: %d %v %q", w.Code, w.Header(), w.Body)
			}
			leave := occupy(t, g)
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			leave()
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("refused: %d", w.Code)
			}
			if st := g.Stats(); st.RejectedBusy-before.RejectedBusy != 2 { // one is occupy's
				t.Errorf("%d refused", st.RejectedBusy-before.RejectedBusy)
			}
			wantConserved(t, g)
		})
	}
}

// A panic gives the slot back and goes on upwards: the same value, unwrapped.
func TestSL02PanicContinuesAndReleases(t *testing.T) {
	type bug struct{ text string }
	for _, value := range []any{&bug{"ordinary"}, http.ErrAbortHandler, "text", errors.New("wrapped")} {
		log := &httpEvents{}
		g := httpGate(t, Config{MaxInFlight: 1, Observers: []Observer{log}})
		bare := httpGate(t, Config{MaxInFlight: 1}) // takes the way without a lock
		for _, gate := range []*Gate{g, bare} {
			for name, wrap := range wraps(t, gate) {
				rec := httptest.NewRecorder()
				got := func() (got any) {
					defer func() { got = recover() }()
					wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) })).
						ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
					return nil
				}()
				if got != value {
					t.Errorf("%s: panicked with %v, want %v", name, got, value)
				}
				if rec.Body.Len() > 0 || len(rec.Header()) > 0 {
					t.Errorf("%s wrote %v %q", name, rec.Header(), rec.Body)
				}
				wantConserved(t, gate)
			}
		}
		for _, o := range log.outcomes() {
			if o != OutcomeAborted {
				t.Errorf("outcome %v after a panic, want aborted", o)
			}
		}
	}
}

// A goroutine that ends inside the handler (a test's FailNow, say) gives back too.
func TestGoexitReleases(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}()
	<-ended
	wantConserved(t, g)
}

func TestOutcomeSaysWhetherTheCallerStayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &httpEvents{}
		g := httpGate(t, Config{MaxInFlight: 1, Observers: []Observer{log}})
		left, leave := context.WithCancel(t.Context())
		late, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		for _, c := range []struct {
			ctx  context.Context
			what func()
		}{
			{t.Context(), func() {}},
			{left, leave},
			{late, func() { <-late.Done() }},
		} {
			h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.what() }))
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(c.ctx))
		}
		if got, want := log.outcomes(), []Outcome{OutcomeDone, OutcomeAborted, OutcomeDone}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
	})
}

func TestWriterIsHandedOnAsItCame(t *testing.T) {
	for _, config := range []Config{{MaxInFlight: 1}, {MaxInFlight: 1, LeaseInContext: true, Track: true}} {
		g := httpGate(t, config)
		for name, wrap := range wraps(t, g) {
			var given http.ResponseWriter = &touchedWriter{header: http.Header{}}
			wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if w != given {
					t.Errorf("%s: the handler got %T", name, w)
				}
			})).ServeHTTP(given, httptest.NewRequest("GET", "/", nil))
			if w := given.(*touchedWriter); len(w.header)+w.writes+w.codes > 0 {
				t.Errorf("%s touched the writer of an accepted request: %+v", name, w)
			}
		}
	}
}

func TestRequestIsHandedOnAsItCame(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1, Track: true})
	for name, wrap := range wraps(t, g) {
		given := httptest.NewRequest("GET", "/a%2Fb/../c?x=1;y=2", nil)
		wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r != given {
				t.Errorf("%s copied the request", name)
			}
		})).ServeHTTP(httptest.NewRecorder(), given)
	}
}

// Giving back early is what HandlerFunc is for: the next request runs while the
// first still writes, and the release at the end is no stale one.
func TestHandlerFuncGivesBackEarly(t *testing.T) {
	for _, config := range []Config{{MaxInFlight: 1}, {MaxInFlight: 1, Track: true}} {
		g := httpGate(t, config)
		h := g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, l Lease) {
			if !l.Live() || l.Gate() != g {
				t.Errorf("lease %v of %v", l.Live(), l.Gate())
			}
			l.Release()
			second := httptest.NewRecorder()
			g.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(second, httptest.NewRequest("GET", "/", nil))
			w.WriteHeader(second.Code)
		})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("the second request met %d", w.Code)
		}
		wantConserved(t, g)
	}
}

func TestLeaseInContextOnlyByOption(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		g := httpGate(t, Config{MaxInFlight: 1, LeaseInContext: wanted})
		for name, wrap := range wraps(t, g) {
			wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				l, ok := LeaseFrom(r.Context())
				if ok != wanted || ok && !l.Live() {
					t.Errorf("%s, LeaseInContext %v: lease %v, live %v", name, wanted, ok, l.Live())
				}
				_, err := g.Acquire(r.Context(), Call{})
				if (err == nil) != wanted {
					t.Errorf("%s, LeaseInContext %v: a second acquire gives %v", name, wanted, err)
				}
			})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			wantConserved(t, g)
		}
	}
}

// A gate in front of another handler behind the same gate is passed once.
func TestGateTwiceInARowIsPassedOnce(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1, LeaseInContext: true})
	w := httptest.NewRecorder()
	g.Wrap(g.Wrap(http.HandlerFunc(echoOK))).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if st := g.Stats(); w.Code != http.StatusOK || st.Accepted != 1 {
		t.Errorf("%d, %d accepted", w.Code, st.Accepted)
	}
	wantConserved(t, g)
}

func TestKR09RouteIsThePattern(t *testing.T) {
	log := &httpEvents{}
	g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Observers: []Observer{log}})
	mux := http.NewServeMux()
	mux.Handle("GET /reports/{id}", g.Wrap(http.HandlerFunc(echoOK)))
	r := httptest.NewRequest("GET", "/reports/4711", nil)
	r.RemoteAddr = "[fe80::1%eth0]:4711"
	mux.ServeHTTP(httptest.NewRecorder(), r)
	events := log.all()
	if len(events) != 2 {
		t.Fatalf("%d events", len(events))
	}
	for _, e := range events {
		if e.Route != "GET /reports/{id}" || e.RemoteIP != "fe80::1" || e.RequestID == "" || e.Gate != "reports" {
			t.Errorf("event %+v", e)
		}
	}
	if events[0].RequestID != events[1].RequestID {
		t.Error("decision and release have different request ids")
	}
}

// Whatever a middleware did to the context, nothing runs and nothing is written.
func TestCallerThatLeftIsNotAnswered(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	gone, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the client hung up"))
	for name, wrap := range wraps(t, g) {
		for _, full := range []bool{false, true} {
			back := func() {}
			if full {
				back = occupy(t, g)
			}
			h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", name) }))
			w := &touchedWriter{header: http.Header{}}
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(gone))
			if w.headers+w.codes+w.writes > 0 {
				t.Errorf("%s touched the writer: %+v", name, w)
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil).WithContext(gone))
			if rec.Body.Len() > 0 || len(rec.Header()) > 0 || rec.Flushed {
				t.Errorf("%s wrote %v %q", name, rec.Header(), rec.Body)
			}
			back()
		}
	}
	wantConserved(t, g)
}

// SL-13: a thousand callers leave at random moments; every slot comes back.
func TestSL13CancelledAtRandomMoments(t *testing.T) {
	for name, config := range map[string]Config{
		"bare":    {MaxInFlight: 4, MaxWait: 3 * time.Millisecond, MaxWaiting: 64},
		"tracked": {MaxInFlight: 4, MaxWait: 3 * time.Millisecond, MaxWaiting: 64, Track: true},
		"at once": {MaxInFlight: 4},
	} {
		t.Run(name, func(t *testing.T) {
			g := httpGate(t, config)
			for name, wrap := range wraps(t, g) {
				cancelAThousand(wrap)
				untilIdle(t, g)
				wantConserved(t, g)
				if !admitsTogether(t, wrap, 4) {
					t.Errorf("%s: not all of the limit is admitted afterwards", name)
				}
			}
			if st := g.Stats(); st.Accepted == 0 || st.Rejected() == 0 || st.Canceled == 0 {
				t.Errorf("the test is too tame: %+v", st)
			}
		})
	}
}

func cancelAThousand(wrap func(http.Handler) http.Handler) {
	h := wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Microsecond):
		}
	}))
	var callers sync.WaitGroup
	for i := range 1000 {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Duration(i*7919%5000)*time.Microsecond, cancel)
		callers.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
		})
	}
	callers.Wait()
}

// admitsTogether reports whether n requests run at the same time.
func admitsTogether(t testing.TB, wrap func(http.Handler) http.Handler, n int) bool {
	t.Helper()
	var inside atomic.Int64
	all := make(chan struct{})
	h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if int(inside.Add(1)) == n {
			close(all)
		}
		<-all
	}))
	var refused atomic.Bool
	var callers sync.WaitGroup
	for range n {
		callers.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != http.StatusOK && refused.CompareAndSwap(false, true) {
				close(all)
			}
		})
	}
	callers.Wait()
	return !refused.Load()
}
