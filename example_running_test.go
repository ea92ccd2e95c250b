package forebay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// logTo returns an observer that logs decisions under the usual keys: what was
// refused as a warning, the rest for debugging.
func logTo(logger *slog.Logger) forebay.Observer {
	return forebay.ObserverFunc(func(e forebay.Event) {
		if e.Kind != forebay.EventDecided {
			return
		}
		level := slog.LevelDebug
		if e.Decision.Refused() {
			level = slog.LevelWarn
		}
		logger.LogAttrs(context.Background(), level, "decided",
			slog.String("decision", e.Decision.String()),
			slog.String("gate", e.Gate),
			slog.String("route", e.Route),
			slog.Int64("waited_ms", e.Waited.Milliseconds()),
			slog.Int("in_flight", e.InFlight),
			slog.Int("limit", e.Limit))
	})
}

// An observer that logs refusals to log/slog. It runs on the goroutine of the
// call, so what it costs the caller pays.
func ExampleObserverFunc() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	gate := mustGate(forebay.Config{
		Name:        "reports",
		MaxInFlight: 1,
		Observers:   []forebay.Observer{logTo(logger)},
	})

	lease, _ := gate.TryAcquire(forebay.Call{Route: "/reports"}) // accepted: not logged
	defer lease.Release()
	gate.TryAcquire(forebay.Call{Route: "/reports"})
	// Output:
	// level=WARN msg=decided decision=rejected_busy gate=reports route=/reports waited_ms=0 in_flight=1 limit=1
}

// withoutTime drops the time of a log line, which would differ in every run.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A reload: calls that run go on, and a configuration with a mistake changes
// nothing.
func ExampleGate_Reconfigure() {
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 12})
	lease, _ := gate.TryAcquire(forebay.Call{})
	defer lease.Release()

	next := gate.Config()
	next.MaxInFlight = 0
	fmt.Println(gate.Reconfigure(next) != nil, gate.Stats().Capacity)

	next.MaxInFlight = 16
	fmt.Println(gate.Reconfigure(next), gate.Stats().Capacity, gate.Stats().InUse)
	// Output:
	// true 12
	// <nil> 16 1
}

// A drain: whoever stands in line or arrives is refused, whoever runs may finish.
func ExampleGate_Drain() {
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1, MaxWait: time.Minute})
	lease, _ := gate.TryAcquire(forebay.Call{}) // a call that still runs

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	drained := make(chan error)
	go func() { drained <- gate.Drain(ctx) }()

	// Whether it stands in line when the drain begins or comes after, it is refused.
	_, err := gate.Acquire(context.Background(), forebay.Call{})
	fmt.Println(err)

	lease.Release()
	fmt.Println("drained:", <-drained)

	gate.Resume()
	lease, ok := gate.TryAcquire(forebay.Call{})
	defer lease.Release()
	fmt.Println("admits again:", ok)
	// Output:
	// forebay: gate "reports": rejected_draining
	// drained: <nil>
	// admits again: true
}

// A chain of two gates: an export counts among the exports and as one of all
// calls that use the database.
func ExampleChain() {
	exports := mustGate(forebay.Config{Name: "exports", MaxInFlight: 1})
	database := mustGate(forebay.Config{Name: "database", MaxInFlight: 12})
	chain, err := forebay.NewChain(exports, database)
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := chain.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "in use:", exports.Stats().InUse, database.Stats().InUse)
	}))
	fmt.Print(get(handler, "/export"))

	lease, _ := exports.TryAcquire(forebay.Call{}) // full
	defer lease.Release()
	_, err = chain.Acquire(context.Background(), forebay.Call{})
	fmt.Println(err)
	fmt.Println("in use:", exports.Stats().InUse, database.Stats().InUse)
	// Output:
	// 200 in use: 1 1
	// forebay: gate "exports": rejected_busy
	// in use: 1 0
}

// aimd is a tiny limiter: one more after a round of calls that filled the gate
// and were served, half of it once the backend has too much. Every gate needs
// one of its own; it needs no lock, since its gate calls it under the gate's.
type aimd struct {
	max, limit, served int
	full               bool      // the gate was full in this round
	cut                time.Time // of the last halving
}

// Observe implements forebay.Limiter.
func (a *aimd) Observe(o *forebay.Observation) int {
	switch o.Kind {
	case forebay.ObservedChange:
		if o.Limit > 0 { // 0: closed by hand, which is nothing to learn from
			a.limit = o.Limit
		}
	case forebay.ObservedStart:
		a.full = a.full || o.InFlight >= a.limit
	case forebay.ObservedFinish:
		a.learn(o)
	}
	return a.limit
}

// learn moves the limit after the end of a call. A call that started before the
// last halving tells nothing about the limit in force now.
func (a *aimd) learn(o *forebay.Observation) {
	fresh := o.Now.Add(-o.Held).After(a.cut)
	switch {
	case o.Outcome == forebay.OutcomeOverloaded && fresh:
		a.limit, a.served, a.cut = max(1, a.limit/2), 0, o.Now
	case o.Outcome == forebay.OutcomeDone:
		a.served++
	}
	if a.served < a.limit {
		return
	}
	if a.full && a.limit < a.max {
		a.limit++
	}
	a.served, a.full = 0, false
}

// A limiter of one's own: the limit grows while the gate is full and all goes
// well, and is halved when the backend refuses.
func ExampleLimiter() {
	gate := mustGate(forebay.Config{Name: "backend", MaxInFlight: 4, Limiter: &aimd{max: 64}})
	for _, end := range []forebay.Outcome{forebay.OutcomeDone, forebay.OutcomeDone, forebay.OutcomeOverloaded, forebay.OutcomeDone} {
		leases := fill(gate)
		for _, lease := range leases {
			lease.ReleaseAs(end)
		}
		fmt.Println(len(leases), "calls", end, "-> limit", gate.Stats().Capacity)
	}
	// Output:
	// 4 calls done -> limit 5
	// 5 calls done -> limit 6
	// 6 calls overloaded -> limit 3
	// 3 calls done -> limit 4
}

// fill takes every free slot of the gate.
func fill(gate *forebay.Gate) []forebay.Lease {
	var leases []forebay.Lease
	for {
		lease, ok := gate.TryAcquire(forebay.Call{})
		if !ok {
			return leases
		}
		leases = append(leases, lease)
	}
}

// In the bubble of testing/synctest the gate's timers run on the bubble's clock:
// a wait takes exactly as long as it should, and no real time.
func TestExampleFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1, MaxWait: 100 * time.Millisecond})
		running, _ := gate.TryAcquire(forebay.Call{})
		time.AfterFunc(80*time.Millisecond, running.Release)

		start := time.Now()
		lease, err := gate.Acquire(t.Context(), forebay.Call{})
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
		if got, want := time.Since(start), 80*time.Millisecond; got != want {
			t.Errorf("waited %v for the slot, want %v", got, want)
		}

		start = time.Now()
		if _, err := gate.Acquire(t.Context(), forebay.Call{}); err == nil {
			t.Error("a second call runs beside the first")
		}
		if got, want := time.Since(start), 100*time.Millisecond; got != want {
			t.Errorf("refused after %v, want the patience of %v", got, want)
		}
	})
}
