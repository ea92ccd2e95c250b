package promgate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/contrib/promgate"
)

// What a stranger sends makes no series. The program in this test does the worst
// it can: it gives raw paths as routes.
func TestTM01_RandomRoutes(t *testing.T) {
	const max = 50
	m := promgate.New(promgate.Config{MaxRoutes: max})
	g := newGate(t, m, forebay.Config{Name: "web", MaxInFlight: 1})
	random := rand.New(rand.NewPCG(1, 2))
	const calls = 100_000
	for i := range calls {
		route := fmt.Sprintf("/%x/%d", random.Uint64(), i)
		if i%3 == 0 {
			route += "\xff\xfe" // not UTF-8
		}
		if i%1000 == 0 {
			route += strings.Repeat("x", 10_000)
		}
		hold(t, g, forebay.Call{Route: route, RequestID: route, RemoteIP: route}).Release()
	}
	all := gather(t, m)
	series := 0
	for _, metrics := range all {
		series += len(metrics)
	}
	if want := (max+1)*11 + 11 + 15; series > want {
		t.Errorf("%d series, want at most %d", series, want)
	}
	wantValue(t, all, calls, "forebay_decisions_total", "decision", "accepted")
	wantValue(t, all, calls-max, "forebay_decisions_total", "decision", "accepted", "route", "other")
	for _, metric := range all["forebay_decisions_total"] {
		for _, l := range metric.GetLabel() {
			if len(l.GetValue()) > 600 {
				t.Errorf("a label value of %d bytes", len(l.GetValue()))
			}
		}
	}
}

func TestTM01_NoRoutes(t *testing.T) {
	m := promgate.New(promgate.Config{MaxRoutes: -1})
	g := newGate(t, m, forebay.Config{Name: "web", MaxInFlight: 1})
	hold(t, g, forebay.Call{Route: "/a"}).Release()
	wantValue(t, gather(t, m), 1, "forebay_decisions_total", "route", "other")
}

// Programs that make gates as they go do not make series without end either.
func TestTM01_GatesAreBounded(t *testing.T) {
	m := promgate.New(promgate.Config{})
	for i := range 1100 {
		m.Observe(forebay.Event{Gate: fmt.Sprint("g", i), Decision: forebay.Accepted})
	}
	late := newGate(t, m, forebay.Config{Name: "late", MaxInFlight: 1})
	hold(t, late, forebay.Call{}).Release()
	all := gather(t, m)
	wantValue(t, all, 100, "forebay_decisions_total", "gate", "other")
	wantValue(t, all, 1, "forebay_decisions_total", "gate", "late")
}

// Foreign events do not open the closed sets.
func TestTM01_UnknownDecisions(t *testing.T) {
	m := promgate.New(promgate.Config{})
	for d := range 256 {
		m.Observe(forebay.Event{Gate: "g", Decision: forebay.Decision(d)})
		m.Observe(forebay.Event{Gate: "g", Kind: forebay.EventKind(d)})
	}
	all := gather(t, m)
	if got := len(all["forebay_decisions_total"]); got != 11 {
		t.Errorf("%d series of decisions, want 11", got)
	}
	wantValue(t, all, 11, "forebay_decisions_total")
}

// Each gate has its own truth, however its calls end; a second release spoils no
// figure for ever.
func TestTM03_OwnTruthOfEachGate(t *testing.T) {
	m := promgate.New(promgate.Config{})
	a := newGate(t, m, forebay.Config{Name: "a", MaxInFlight: 3})
	b := newGate(t, m, forebay.Config{Name: "b", MaxInFlight: 1})
	b1 := hold(t, b, forebay.Call{Route: "/shared"})
	a1, a2 := hold(t, a, forebay.Call{Route: "/shared"}), hold(t, a, forebay.Call{Route: "/own"})
	if _, ok := b.TryAcquire(forebay.Call{Route: "/shared"}); ok {
		t.Fatal("b admits two")
	}
	for range 3 {
		a1.Release()
	}
	a2.ReleaseAs(forebay.OutcomeAborted)
	a3 := hold(t, a, forebay.Call{})
	all := gather(t, m)
	wantValue(t, all, 1, "forebay_in_flight", "gate", "a")
	wantValue(t, all, 1, "forebay_in_flight", "gate", "b")
	wantValue(t, all, 2, "forebay_stale_releases_total", "gate", "a")
	wantValue(t, all, 0, "forebay_stale_releases_total", "gate", "b")
	wantValue(t, all, 1, "forebay_decisions_total", "gate", "a", "route", "/shared")
	wantValue(t, all, 2, "forebay_decisions_total", "gate", "b", "route", "/shared")
	wantValue(t, all, 5, "forebay_decisions_total")
	a3.Release()
	b1.Release()
	all = gather(t, m)
	wantValue(t, all, 0, "forebay_in_flight")
	for _, gate := range []string{"a", "b"} {
		wantValue(t, all, value(all, "forebay_leases_granted_total", "gate", gate), "forebay_leases_released_total", "gate", gate)
	}
}

// Each cause of a refusal alone, by the word that the error says.
func TestTM04_EachCauseAlone(t *testing.T) {
	full := func(t *testing.T, g *forebay.Gate) { hold(t, g, forebay.Call{}) }
	for _, tt := range []struct {
		want  string
		gate  forebay.Config
		setup func(*testing.T, *forebay.Gate)
		call  forebay.Call
		until time.Duration
		leave time.Duration
	}{
		{want: "rejected_busy", setup: full},
		{want: "rejected_busy", setup: func(_ *testing.T, g *forebay.Gate) { _ = g.SetLimit(0) }},
		{want: "rejected_timeout", gate: forebay.Config{MaxWait: time.Second}, setup: full},
		{want: "rejected_deadline", gate: forebay.Config{MaxWait: time.Second}, setup: full, until: time.Millisecond},
		{want: "rejected_caller", gate: forebay.Config{PerCaller: forebay.PerCaller{MaxInFlight: 1}}, call: forebay.Call{Caller: "a"},
			setup: func(t *testing.T, g *forebay.Gate) { hold(t, g, forebay.Call{Caller: "a"}) }},
		{want: "rejected_too_large", call: forebay.Call{Cost: 2}},
		{want: "rejected_draining", setup: func(_ *testing.T, g *forebay.Gate) { _ = g.Drain(context.Background()) }},
		{want: "canceled", gate: forebay.Config{MaxWait: time.Second}, setup: full, leave: time.Millisecond},
	} {
		t.Run(tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := promgate.New(promgate.Config{})
				tt.gate.Name, tt.gate.MaxInFlight = "g", 1
				g := newGate(t, m, tt.gate)
				if tt.setup != nil {
					tt.setup(t, g)
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if tt.until > 0 {
					ctx, cancel = context.WithTimeout(ctx, tt.until)
					defer cancel()
				}
				if tt.leave > 0 {
					defer time.AfterFunc(tt.leave, cancel).Stop()
				}
				tt.call.Route = "/refused"
				_, err := g.Acquire(ctx, tt.call)
				if err == nil {
					t.Fatal("accepted")
				}
				var rejected *forebay.RejectedError
				if errors.As(err, &rejected) && rejected.Decision().String() != tt.want {
					t.Errorf("the error says %s, want %s", rejected.Decision(), tt.want)
				}
				all := gather(t, m)
				wantValue(t, all, 1, "forebay_decisions_total", "route", "/refused", "decision", tt.want)
				wantValue(t, all, 1, "forebay_decisions_total", "route", "/refused")
				wantValue(t, all, 1, "forebay_wait_seconds", "decision", tt.want)
			})
		})
	}
}

// Bursts between two scrapes show, and to each of two scrapers.
func TestTM05_PeaksBetweenScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promgate.New(promgate.Config{})
		g := newGate(t, m, forebay.Config{Name: "g", MaxInFlight: 8, MaxWait: time.Second, MaxWaiting: 100})
		burst := func() {
			var wg sync.WaitGroup
			for range 100 {
				wg.Go(func() {
					if lease, err := g.Acquire(context.Background(), forebay.Call{}); err == nil {
						time.Sleep(time.Millisecond)
						lease.Release()
					}
				})
			}
			wg.Wait()
		}
		for second := range 60 {
			burst()
			time.Sleep(time.Second)
			if second%15 != 14 {
				continue
			}
			for scraper := range 2 {
				all := gather(t, m)
				wantValue(t, all, 0, "forebay_in_flight")
				wantValue(t, all, 0, "forebay_waiting")
				if got := value(all, "forebay_in_flight_peak"); got != 8 {
					t.Errorf("scraper %d after %d s: peak in flight %v, want 8", scraper, second, got)
				}
				if got := value(all, "forebay_waiting_peak"); got != 92 {
					t.Errorf("scraper %d after %d s: peak waiting %v, want 92", scraper, second, got)
				}
			}
		}
		time.Sleep(time.Minute)
		gather(t, m) // ends the piece of the window that held the last burst
		time.Sleep(time.Minute + time.Second)
		wantValue(t, gather(t, m), 0, "forebay_in_flight_peak")
		wantValue(t, gather(t, m), 0, "forebay_waiting_peak")
	})
}

// What runs for long shows although no event speaks of it any more.
func TestTM05_PeakOfLongCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := promgate.New(promgate.Config{})
		g := newGate(t, m, forebay.Config{Name: "g", MaxInFlight: 2})
		a, b := hold(t, g, forebay.Call{}), hold(t, g, forebay.Call{})
		for range 12 {
			time.Sleep(15 * time.Second)
			wantValue(t, gather(t, m), 2, "forebay_in_flight_peak")
		}
		a.Release()
		b.Release()
		wantValue(t, gather(t, m), 2, "forebay_in_flight_peak")
	})
}
