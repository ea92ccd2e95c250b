package promgate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"

	"example.com/forebay"
	"example.com/forebay/contrib/promgate"
)

const callers, each = 16, 200

// After a load of all kinds, with scrapes in the middle, events and gauges tell
// the same story, and no counter has gone down on the way.
func TestConservation(t *testing.T) { synctest.Test(t, conservation) }

func conservation(t *testing.T) {
	m := promgate.New(promgate.Config{})
	a := newGate(t, m, forebay.Config{Name: "a", MaxInFlight: 4, MaxWait: 2 * time.Millisecond, MaxWaiting: 6, Track: true})
	b := newGate(t, m, forebay.Config{Name: "b", MaxInFlight: 3, MaxWait: time.Millisecond})
	chain, err := forebay.NewChain(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for range each {
				oneCall(random, a, chain)
			}
		})
	}
	last := map[string]float64{}
	for i := range 100 {
		_ = a.SetLimit(i % 6)
		time.Sleep(100 * time.Microsecond)
		if i%4 == 0 {
			noCounterSinks(t, gather(t, m), last)
		}
	}
	_ = a.SetLimit(4)
	wg.Wait()

	all := gather(t, m)
	wantValue(t, all, callers*each, "forebay_decisions_total")
	wantValue(t, all, callers*each, "forebay_wait_seconds")
	for _, g := range []*forebay.Gate{a, b} {
		st := g.Stats()
		for decision, want := range map[string]uint64{
			"accepted": st.Accepted, "canceled": st.Canceled, "rejected_busy": st.RejectedBusy,
			"rejected_timeout": st.RejectedTimeout, "rejected_deadline": st.RejectedDeadline,
			"rejected_too_large": st.RejectedTooLarge, "rejected_draining": st.RejectedDraining, "rejected_store": st.RejectedStore, "rejected_shed": st.RejectedShed,
		} {
			wantValue(t, all, float64(want), "forebay_decisions_total", "gate", st.Name, "decision", decision)
		}
		wantValue(t, all, 0, "forebay_in_flight", "gate", st.Name)
		wantValue(t, all, 0, "forebay_waiting", "gate", st.Name)
		wantValue(t, all, float64(st.Granted), "forebay_leases_granted_total", "gate", st.Name)
		wantValue(t, all, float64(st.Granted), "forebay_leases_released_total", "gate", st.Name)
		if peak := value(all, "forebay_in_flight_peak", "gate", st.Name); peak > 5 {
			t.Errorf("peak of %s is %v, above every limit there was", st.Name, peak)
		}
	}
}

// oneCall runs one call of a random kind, in the bubble.
func oneCall(random *rand.Rand, a *forebay.Gate, chain *forebay.Chain) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	acquire := a.Acquire
	switch random.IntN(5) {
	case 0:
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(1500))*time.Microsecond)
		defer cancel()
	case 1:
		defer time.AfterFunc(time.Duration(random.IntN(1500))*time.Microsecond, cancel).Stop()
	case 2:
		acquire = chain.Acquire
	}
	route := fmt.Sprint("/load/", random.IntN(20))
	lease, err := acquire(ctx, forebay.Call{Route: route, Cost: 1 + random.IntN(2)})
	time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
	if err == nil {
		lease.Release()
	}
}

// noCounterSinks compares a scrape with the highest values so far.
func noCounterSinks(t *testing.T, all map[string][]*dto.Metric, last map[string]float64) {
	t.Helper()
	for name, metrics := range all {
		for _, metric := range metrics {
			if metric.GetCounter() == nil && metric.GetHistogram() == nil {
				continue
			}
			key := name
			for _, l := range metric.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			now := metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			if now < last[key] {
				t.Errorf("%s went down from %v to %v", key, last[key], now)
			}
			last[key] = now
		}
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	m := promgate.New(promgate.Config{MaxRoutes: 1})
	decided := forebay.Event{Gate: "g", Route: "/a", Decision: forebay.Accepted, Waited: time.Millisecond, InFlight: 1}
	released := forebay.Event{Kind: forebay.EventReleased, Gate: "g", Route: "/a", Held: time.Millisecond}
	stranger := forebay.Event{Gate: "g", Route: "/b", Decision: forebay.RejectedBusy}
	for name, e := range map[string]forebay.Event{"decided": decided, "released": released, "one route too many": stranger} {
		m.Observe(e)
		if n := testing.AllocsPerRun(100, func() { m.Observe(e) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	m := promgate.New(promgate.Config{})
	e := forebay.Event{Gate: "reports", Route: "GET /reports/{id}", Decision: forebay.Accepted, InFlight: 3}
	m.Observe(e)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(e)
	}
}
