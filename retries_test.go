package forebay

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func mustRetries(t testing.TB, c RetriesConfig) *Retries {
	t.Helper()
	r, err := NewRetries(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keyed is a request with a key, from an address.
func keyed(key, from string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	r.Header.Set("Idempotency-Key", key)
	r.RemoteAddr = from
	return r
}

// TestRetriesGoOneLaneDown: a request whose key was refused, and one that says so itself,
// stand behind those of their lane that come first; nobody else's do.
func TestRetriesGoOneLaneDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{
			MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 100,
			Lanes:   []Lane{{Name: "top", Rank: 1}, {Name: "low", Rank: 2}},
			Retries: mustRetries(t, RetriesConfig{AttemptHeader: "x-retry-attempt", KeyHeader: "idempotency-key"}),
		})
		if err != nil {
			t.Fatal(err)
		}
		groups, err := NewGroups(GroupsConfig{Routes: []Route{{Match: "/orders", Gates: []*Gate{g}, Lane: "top"}, {Match: "/", Gates: []*Gate{g}}}})
		if err != nil {
			t.Fatal(err)
		}
		h := groups.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func(r *http.Request) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		if err := g.SetLimit(0); err != nil {
			t.Fatal(err)
		}
		if w := ask(keyed("k", "192.0.2.1:1000")); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("status %d of a closed gate", w.Code)
		}
		if err := g.SetLimit(1); err != nil {
			t.Fatal(err)
		}
		first, err := g.Acquire(context.Background(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		waits := map[string]int{"": 1}
		go ask(httptest.NewRequest(http.MethodGet, "/", nil)) // who comes again steps back only where others wait
		wantLane := func(r *http.Request, lane string) {
			t.Helper()
			go ask(r)
			waits[lane]++
			synctest.Wait()
			for _, l := range g.Stats().Lanes {
				if l.Waiting != waits[l.Name] {
					t.Fatalf("%d wait in lane %q, want %d", l.Waiting, l.Name, waits[l.Name])
				}
			}
		}
		synctest.Wait()
		attempt := func(n string) *http.Request {
			r := keyed("fresh", "192.0.2.9:1")
			r.Header.Set("X-Retry-Attempt", n)
			return r
		}
		wantLane(keyed("k", "192.0.2.1:2000"), "low")
		wantLane(keyed("other", "192.0.2.1:2000"), "top")
		wantLane(keyed("k", "192.0.2.2:2000"), "top")
		wantLane(httptest.NewRequest(http.MethodPost, "/orders", nil), "top")
		for n, lane := range map[string]string{"1": "low", "007": "low", "0": "top", "00": "top", "-1": "top", "": "top", "1.5": "top", "soon": "top", strings.Repeat("9", 99): "top"} {
			wantLane(attempt(n), lane)
		}
		time.Sleep(keptFor - time.Second)
		wantLane(keyed("k", "192.0.2.1:2000"), "low")
		time.Sleep(keptFor + 2*time.Second)
		wantLane(keyed("k", "192.0.2.1:2000"), "top")
		first.Release()
		synctest.Wait()
		if st := g.Stats(); st.Waiting != 0 || st.Calls != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// TestRetriesAreBounded: of more refusals than fit the oldest are forgotten.
func TestRetriesAreBounded(t *testing.T) {
	s := mustRetries(t, RetriesConfig{KeyHeader: "Idempotency-Key"})
	r := keyed("", "192.0.2.1:1000")
	const many = 3*keptKeys + 10
	for i := range many {
		r.Header["Idempotency-Key"][0] = fmt.Sprint(i)
		s.refused(r)
	}
	if n := len(s.keys[0]) + len(s.keys[1]); n > 2*keptKeys {
		t.Errorf("%d keys are kept, want at most %d", n, 2*keptKeys)
	}
	for i, want := range map[int]bool{0: false, many - keptKeys: true, many - 1: true} {
		r.Header["Idempotency-Key"][0] = fmt.Sprint(i)
		if got := s.isAgain(r); got != want {
			t.Errorf("key %d of %d is known: %v, want %v", i, many, got, want)
		}
	}
	for _, odd := range []string{"", strings.Repeat("x", longestKey+1)} {
		r.Header["Idempotency-Key"][0] = odd
		if s.refused(r); s.isAgain(r) {
			t.Errorf("a key of %d bytes is remembered", len(odd))
		}
	}
}

// TestRetriesCallersOfIPv6: who has a network is one caller with all its addresses.
func TestRetriesCallersOfIPv6(t *testing.T) {
	s := mustRetries(t, RetriesConfig{KeyHeader: "Idempotency-Key"})
	s.refused(keyed("k", "[2001:db8:1:2::1]:1000"))
	s.refused(keyed("k4", "192.0.2.1:1000"))
	for from, want := range map[string]bool{"[2001:db8:1:2:ffff::9]:7": true, "[2001:db8:1:3::1]:1000": false} {
		if got := s.isAgain(keyed("k", from)); got != want {
			t.Errorf("%s comes again: %v, want %v", from, got, want)
		}
	}
	if !s.isAgain(keyed("k4", "[::ffff:192.0.2.1]:9")) {
		t.Error("an IPv4 address in IPv6 clothes is another one")
	}
}

// TestRetriesCostNoAllocation: looking at a request that comes in allocates nothing.
func TestRetriesCostNoAllocation(t *testing.T) {
	s := mustRetries(t, RetriesConfig{AttemptHeader: "X-Retry-Attempt", KeyHeader: "Idempotency-Key"})
	s.refused(keyed("k", "192.0.2.1:1000"))
	for _, r := range []*http.Request{keyed("k", "192.0.2.1:1"), keyed("other", "[2001:db8::1]:1"), httptest.NewRequest("GET", "/", nil)} {
		if n := testing.AllocsPerRun(100, func() { s.isAgain(r) }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestNewRetriesSaysEveryMistake(t *testing.T) {
	if _, err := NewRetries(RetriesConfig{}); err == nil || !strings.Contains(err.Error(), "names no header") {
		t.Errorf("nothing: %v", err)
	}
	_, err := NewRetries(RetriesConfig{AttemptHeader: "a b", KeyHeader: "ä"})
	if err == nil || !strings.Contains(err.Error(), "AttemptHeader") || !strings.Contains(err.Error(), "KeyHeader") {
		t.Errorf("two mistakes: %v", err)
	}
}
