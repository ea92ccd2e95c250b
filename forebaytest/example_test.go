package forebaytest_test

import (
	"context"
	"fmt"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// A recorder tells what a gate did, and a limit moves the gate at a moment that
// the test chooses.
func Example() {
	var rec forebaytest.Recorder
	var limit forebaytest.Limit
	gate, err := forebay.New(forebay.Config{
		Name: "reports", MaxInFlight: 1, Limiter: &limit, Observers: []forebay.Observer{&rec},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	first, _ := gate.Acquire(ctx, forebay.Call{Route: "/reports"})
	_, refused := gate.Acquire(ctx, forebay.Call{Route: "/reports"})
	fmt.Println(refused)

	limit.Set(2) // from the next event on, which is this release
	first.Release()
	fmt.Println("limit:", gate.Stats().Capacity)

	fmt.Println(rec.Decisions(), "released:", rec.CountKind(forebay.EventReleased))
	// Output:
	// forebay: gate "reports": rejected_busy
	// limit: 2
	// [accepted rejected_busy] released: 1
}
