package forebay

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What was tried against the gate and once worked.

// wants is a limiter that always wants the same.
type wants int

func (w wants) Observe(*Observation) int { return int(w) }

// A reload lets in no more than the limiter says, also in the instant of the reload.
func TestReloadKeepsTheLimitersWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateOf(t, Config{MaxInFlight: 100, MaxWait: time.Minute, MaxWaiting: 200, Limiter: wants(2)})
		for range 60 {
			go func() {
				if l, err := g.Acquire(context.Background(), Call{}); err == nil {
					time.Sleep(time.Second)
					l.Release()
				}
			}()
		}
		synctest.Wait()
		c := g.Config()
		c.Refusal.Status = http.StatusTooManyRequests
		must(g.Reconfigure(c))
		if st := g.Stats(); st.InUse != 2 || st.Capacity != 2 {
			t.Errorf("%d of %d run, want 2 of 2", st.InUse, st.Capacity)
		}
		time.Sleep(time.Hour)
	})
}

// oddContext has ended without saying why.
type oddContext struct{ context.Context }

func (oddContext) Done() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}
func (oddContext) Err() error { return nil }

func TestContextThatEndsWithoutAReason(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1, MaxWait: time.Minute})
	l, _ := g.TryAcquire(Call{})
	_, err := g.Acquire(oddContext{context.Background()}, Call{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	l.Release()
	if st := g.Stats(); st.Waiting != 0 || st.Calls != 0 || st.Canceled != 1 || st.Decisions() != 2 {
		t.Errorf("%+v", st)
	}
}

// An observer that ends its goroutine, as a failing test does, takes no slot along.
func TestObserverThatEndsItsGoroutine(t *testing.T) {
	end := ObserverFunc(func(Event) { runtime.Goexit() })
	a := gateOf(t, Config{Name: "a", MaxInFlight: 1, MaxWait: time.Second, Observers: []Observer{end}})
	b := gateOf(t, Config{Name: "b", MaxInFlight: 1, MaxWait: time.Second, Observers: []Observer{end}})
	chain, err := NewChain(a, b)
	must(err)
	for name, acquire := range map[string]func(){
		"gate":  func() { _, _ = a.Acquire(context.Background(), Call{}) },
		"try":   func() { _, _ = a.TryAcquire(Call{}) },
		"chain": func() { _, _ = chain.Acquire(context.Background(), Call{}) },
	} {
		var gone sync.WaitGroup
		gone.Go(acquire)
		gone.Wait()
		for _, g := range []*Gate{a, b} {
			if st := g.Stats(); st.InUse != 0 || st.Granted != st.Released {
				t.Errorf("%s: gate %s: %+v", name, g.Name(), st)
			}
		}
	}
}

// A request without a path, or with one that is none, is what the application behind
// makes of it.
func TestRequestsWithoutAPathPassTheirGates(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	must(g.SetLimit(0))
	groups, err := NewGroups(GroupsConfig{Routes: []Route{
		{Match: "/{$}", Gates: []*Gate{g}}, {Match: "/{id}", Gates: []*Gate{g}}, {Match: "/reports/", Gates: []*Gate{g}},
	}})
	must(err)
	for _, target := range []string{"http://a", "http://a?x=1", "*", "x:reports/7"} {
		u, err := url.ParseRequestURI(target)
		if target == "*" {
			u, err = &url.URL{Path: "*"}, nil
		}
		must(err)
		w := httptest.NewRecorder()
		groups.Wrap(http.NotFoundHandler()).ServeHTTP(w, &http.Request{Method: "GET", Host: "a", URL: u, Header: http.Header{}})
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("GET %s passed a closed gate: %d", target, w.Code)
		}
	}
}

// Headers of the answer that somebody was about to give do not spoil the refusal.
func TestRefusalDropsHeadersOfAnotherAnswer(t *testing.T) {
	g := gateOf(t, Config{MaxInFlight: 1})
	must(g.SetLimit(0))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("ETag", `"x"`)
		g.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
	}))
	defer server.Close()
	res, err := http.Get(server.URL)
	must(err)
	defer res.Body.Close()
	if res.ContentLength <= 5 || res.Header.Get("Content-Encoding") != "" || res.Header.Get("ETag") != "" {
		t.Errorf("length %d, headers %v", res.ContentLength, res.Header)
	}
}

// The departure rate is that of the gate, however long events waited for the lock,
// and whatever a reload did in between.
func TestIdleTimeBehindAReloadIsNotFullTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{MaxInFlight: 1, MaxWait: 100 * time.Millisecond}
		g := gateOf(t, c)
		for range 20 {
			l, _ := g.TryAcquire(Call{})
			g.TryAcquire(Call{}) // finds it full
			time.Sleep(10 * time.Millisecond)
			l.Release()
		}
		l, _ := g.TryAcquire(Call{})
		g.TryAcquire(Call{})
		must(g.Reconfigure(Config{MaxInFlight: 1}))
		time.Sleep(24 * time.Hour)
		must(g.Reconfigure(c))
		g.lock()
		ahead, known := g.machine.Ahead(nil)
		g.unlock()
		if !known || ahead > 20*time.Millisecond {
			t.Errorf("the next would wait %v (known: %v), want about 10 ms", ahead, known)
		}
		l.Release()
	})
}

// A gate with many calls out still finds a slot without a walk through all of them.
func TestManySlotsAreFoundQuickly(t *testing.T) {
	const many = 6_000
	g := gateOf(t, Config{MaxInFlight: many})
	leases := make([]Lease, many)
	for i := range leases {
		var ok bool
		if leases[i], ok = g.TryAcquire(Call{}); !ok {
			t.Fatalf("call %d of %d was refused", i, many)
		}
	}
	if _, ok := g.TryAcquire(Call{}); ok {
		t.Error("one too many")
	}
	for _, l := range leases {
		l.Release()
	}
	if st := g.Stats(); st.InUse != 0 || st.Accepted != many || st.Released != many {
		t.Errorf("%+v", st)
	}
	admitsFullSet(t, g)
}
