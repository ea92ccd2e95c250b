package forebay

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// refuseOne has the gate refuse one request, whose time it notes.
func refuseOne(t testing.TB, g *Gate) {
	t.Helper()
	if w := askFull(g, "/"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("not refused: %d", w.Code)
	}
}

// askFull sends a request to a gate that is full for that moment.
func askFull(g *Gate, path string) *httptest.ResponseRecorder {
	lease, _ := g.TryAcquire(Call{})
	defer lease.Release()
	w := httptest.NewRecorder()
	g.Wrap(http.HandlerFunc(echoOK)).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// refusing brings a gate to where bare calls are refused without a look at the
// clock, forty seconds after one that may have been noted. It runs in a bubble.
func refusing(t testing.TB, g *Gate) (leave func()) {
	t.Helper()
	lease, _ := g.TryAcquire(Call{})
	_, _ = g.Acquire(t.Context(), Call{})
	time.Sleep(40 * time.Second)
	return lease.Release
}

// countOne has a refusing gate refuse a call whose time nobody notes.
func countOne(t testing.TB, g *Gate) {
	t.Helper()
	before := g.noticed.last()
	if _, err := g.Acquire(t.Context(), Call{}); err == nil || g.noticed.last() != before {
		t.Errorf("refused with %v, noted at %v", err, g.noticed.last())
	}
}

func wantHealth(t testing.TB, h *Health, when, want string) {
	t.Helper()
	if got := h.Report().Status; got != want {
		t.Errorf("%s: %s, want %s", when, got, want)
	}
}

func TestHealthAtExactTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{Name: "reports", MaxInFlight: 1})
		h := NewHealth(g)
		wantHealth(t, h, "at first", "ok")
		refuseOne(t, g)
		wantHealth(t, h, "at once", "degraded")
		time.Sleep(29 * time.Second)
		wantHealth(t, h, "after 29 s", "degraded")
		time.Sleep(time.Second)
		wantHealth(t, h, "after 30 s", "degraded")
		time.Sleep(time.Nanosecond)
		wantHealth(t, h, "after 30 s and a moment", "ok")
		time.Sleep(time.Hour)
		wantHealth(t, h, "after an hour", "ok")
	})
}

// Whoever looks for the first time sees what happened within ten seconds.
func TestHealthWithinTenSeconds(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		0: "degraded", 9 * time.Second: "degraded", 10 * time.Second: "degraded", 10*time.Second + 1: "ok", time.Minute: "ok",
	} {
		for _, made := range []string{"before", "after"} {
			synctest.Test(t, func(t *testing.T) {
				g := httpGate(t, Config{MaxInFlight: 1})
				h := NewHealth(g)
				refuseOne(t, g)
				if made == "after" {
					h = NewHealth(g)
				}
				time.Sleep(ago)
				wantHealth(t, h, "made "+made+", looked after "+ago.String(), want)
			})
		}
	}
}

// KR-12: refusals every 20 s keep it degraded, with no flapping between; they
// end, and so does it, once.
func TestKR12HealthDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1})
		h := NewHealth(g)
		changes, last, seconds := 0, "ok", 0
		for second := range 400 {
			if second%20 == 0 && second < 200 {
				refuseOne(t, g)
			}
			if now := h.Report().Status; now != last {
				changes, last, seconds = changes+1, now, second
			}
			time.Sleep(time.Second)
		}
		if changes != 2 || last != "ok" || seconds != 180+31 {
			t.Errorf("%d changes, the last at %d s to %s; want 2, at 211 s to ok", changes, seconds, last)
		}
	})
}

// A gate without observers refuses bare calls without reading a clock: the next
// report notices, and counts them as of that moment.
func TestHealthNoticesWhatIsOnlyCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1})
		leave := refusing(t, g)
		h := NewHealth(g)
		wantHealth(t, h, "before", "ok")
		countOne(t, g)
		time.Sleep(20 * time.Second)
		wantHealth(t, h, "first seen", "degraded")
		time.Sleep(30 * time.Second)
		wantHealth(t, h, "30 s after", "degraded")
		time.Sleep(time.Nanosecond)
		wantHealth(t, h, "a moment later", "ok")
		leave()

		refuseOne(t, g)
		wantHealth(t, h, "a noted one", "degraded")
		leave = refusing(t, g)
		countOne(t, g)
		wantHealth(t, h, "a counted one after a noted one", "degraded")
		time.Sleep(30 * time.Second)
		wantHealth(t, h, "30 s after that", "degraded")
		time.Sleep(time.Nanosecond)
		wantHealth(t, h, "a moment later", "ok")
		leave()
	})
}

// What was only counted before a handler was made does not count for it.
func TestHealthStartsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1})
		defer refusing(t, g)()
		countOne(t, g)
		wantHealth(t, NewHealth(g), "made after", "ok")
	})
}

// Refusals of every kind show; callers that left do not.
func TestHealthKnowsEachKindOfRefusal(t *testing.T) {
	for name, ask := range map[string]struct {
		want string
		call func(ctx context.Context, g *Gate)
	}{
		"timeout": {"degraded", func(ctx context.Context, g *Gate) { _, _ = g.Acquire(ctx, Call{}) }},
		"deadline": {"degraded", func(ctx context.Context, g *Gate) {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = g.Acquire(ctx, Call{})
		}},
		"try":       {"degraded", func(_ context.Context, g *Gate) { g.TryAcquire(Call{}) }},
		"too large": {"degraded", func(ctx context.Context, g *Gate) { _, _ = g.Acquire(ctx, Call{Cost: 2}) }},
		"left": {"ok", func(ctx context.Context, g *Gate) {
			ctx, leave := context.WithCancel(ctx)
			leave()
			_, _ = g.Acquire(ctx, Call{})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := httpGate(t, Config{MaxInFlight: 1, MaxWait: time.Second})
			h := NewHealth(g)
			lease, _ := g.TryAcquire(Call{})
			defer lease.Release()
			ask.call(t.Context(), g)
			wantHealth(t, h, name, ask.want)
		})
	}
}

// Two handlers on one gate do not take refusals from each other.
func TestHealthHandlersAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{MaxInFlight: 1})
		defer refusing(t, g)()
		one, other := NewHealth(g), NewHealth(g)
		countOne(t, g)
		wantHealth(t, one, "the first", "degraded")
		time.Sleep(5 * time.Second)
		wantHealth(t, other, "the second", "degraded")
	})
}

func TestHealthOfSeveralGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := []*Gate{
			httpGate(t, Config{Name: "a", MaxInFlight: 1}),
			httpGate(t, Config{Name: "b", MaxInFlight: 1}),
			httpGate(t, Config{Name: "c", MaxInFlight: 1}),
		}
		h := NewHealth(gates...)
		want := func(code int, body string) {
			t.Helper()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
			if w.Code != code || w.Body.String() != body+"\n" {
				t.Errorf("%d %s\nwant %d %s", w.Code, w.Body, code, body)
			}
		}
		want(200, `{"status":"ok","gates":[{"name":"a","status":"ok"},{"name":"b","status":"ok"},{"name":"c","status":"ok"}]}`)
		refuseOne(t, gates[1])
		want(200, `{"status":"degraded","gates":[{"name":"a","status":"ok"},{"name":"b","status":"degraded"},{"name":"c","status":"ok"}]}`)
		_ = gates[0].Drain(t.Context())
		want(503, `{"status":"draining","gates":[{"name":"a","status":"draining"},{"name":"b","status":"degraded"},{"name":"c","status":"ok"}]}`)
		gates[0].Resume()
		want(200, `{"status":"degraded","gates":[{"name":"a","status":"ok"},{"name":"b","status":"degraded"},{"name":"c","status":"ok"}]}`)
		time.Sleep(31 * time.Second)
		_ = gates[2].Drain(t.Context())
		want(503, `{"status":"draining","gates":[{"name":"a","status":"ok"},{"name":"b","status":"ok"},{"name":"c","status":"draining"}]}`)
	})
}

func TestHealthAnswers(t *testing.T) {
	g := httpGate(t, Config{MaxInFlight: 1})
	h := NewHealth(g)
	drained := NewHealth(httpGate(t, Config{MaxInFlight: 1}))
	_ = drained.gates[0].Drain(t.Context())
	refuseOne(t, g)
	for _, c := range []struct {
		h      *Health
		method string
		code   int
		body   bool
	}{
		{h, "GET", 200, true}, {h, "HEAD", 200, false}, {h, "POST", 200, true},
		{drained, "GET", 503, true}, {drained, "HEAD", 503, false}, {NewHealth(), "GET", 200, true},
	} {
		w := httptest.NewRecorder()
		c.h.ServeHTTP(w, httptest.NewRequest(c.method, "/health", nil))
		if w.Code != c.code || (w.Body.Len() > 0) != c.body {
			t.Errorf("%s: %d %q", c.method, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", c.method, w.Header())
		}
		if rep := (Report{}); c.body && json.Unmarshal(w.Body.Bytes(), &rep) != nil || c.body && rep.Gates == nil {
			t.Errorf("%s: %q", c.method, w.Body)
		}
	}
}

// KR-11: with every slot and every place in line taken for half a minute, health
// answers each second, in no time, that it is degraded and up.
func TestKR11HealthAnswersWhileAllIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := httpGate(t, Config{Name: "all", MaxInFlight: 2, MaxWait: time.Hour, MaxWaiting: 3})
		groups, err := NewGroups(GroupsConfig{Routes: []Route{
			{Match: "/health", Exempt: true}, {Match: "/", Gates: []*Gate{g}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/health", NewHealth(g))
		h := groups.Wrap(mux)
		one, _ := g.TryAcquire(Call{})
		two, _ := g.TryAcquire(Call{})
		leave := inLine(g, 3)
		synctest.Wait()
		for range 30 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("work: %d", w.Code)
			}
			before := time.Now()
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
			if w.Code != 200 || !strings.Contains(w.Body.String(), `"degraded"`) || time.Since(before) > 0 {
				t.Errorf("health: %d %s after %v", w.Code, w.Body, time.Since(before))
			}
			time.Sleep(time.Second)
		}
		if st := g.Stats(); st.InUse != 2 || st.Waiting != 3 {
			t.Errorf("%+v", st)
		}
		leave()
		one.Release()
		two.Release()
	})
}
