package forebay_test

import (
	"context"
	"fmt"
	"net/http"

	"example.com/forebay"
)

// A gate in front of the whole mux gates the health check as well: when it is
// full, the load balancer takes the server out, and the next one gets the load
// of both. The cure is to route first, and to gate only what can be too much.
func ExampleGate_Wrap_incorrect() {
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1})
	health := forebay.NewHealth(gate)
	lease, _ := gate.TryAcquire(forebay.Call{}) // the gate is full
	defer lease.Release()

	inner := http.NewServeMux()
	inner.HandleFunc("GET /reports", report)
	inner.Handle("GET /health", health)
	wrong := gate.Wrap(inner) // health is behind the gate
	fmt.Println("wrong: health", code(wrong, "/health"), "reports", code(wrong, "/reports"))

	right := http.NewServeMux()
	right.Handle("GET /reports", gate.Wrap(http.HandlerFunc(report)))
	right.Handle("GET /health", health)
	fmt.Println("right: health", code(right, "/health"), "reports", code(right, "/reports"))
	// Output:
	// wrong: health 503 reports 503
	// right: health 200 reports 503
}

// A release that is not deferred is missed when the work panics: net/http
// recovers, the server lives on, and the slot is gone for good. The cure is to
// defer the release, or to let Wrap, Do or Func do it.
func ExampleGate_Acquire_incorrect() {
	ctx := context.Background()
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 2})
	fail := func() { panic("no such table") }

	survive(func() {
		lease, err := gate.Acquire(ctx, forebay.Call{})
		if err != nil {
			return
		}
		fail()
		lease.Release() // never reached
	})
	fmt.Println("wrong: in use", gate.Stats().InUse)

	survive(func() {
		lease, err := gate.Acquire(ctx, forebay.Call{})
		if err != nil {
			return
		}
		defer lease.Release()
		fail()
	})
	survive(func() {
		_ = forebay.Do(ctx, gate, func(context.Context) error { fail(); return nil })
	})
	fmt.Println("right: in use still", gate.Stats().InUse)
	// Output:
	// wrong: in use 1
	// right: in use still 1
}

// survive runs f as net/http runs a handler: a panic ends only the call.
func survive(f func()) {
	defer func() { _ = recover() }()
	f()
}
