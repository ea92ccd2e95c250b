package adaptive_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"example.com/forebay"
	"example.com/forebay/adaptive"
)

// A gate whose limit finds itself. It begins with MaxInFlight, and each gate needs a
// probe of its own.
func ExampleNewProbe() {
	probe, err := adaptive.NewProbe(adaptive.ProbeConfig{Deadline: 2 * time.Second, Min: 2, Max: 200})
	if err != nil {
		log.Fatal(err)
	}
	gate, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 4, MaxWait: 100 * time.Millisecond, Limiter: probe})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := gate.Acquire(context.Background(), forebay.Call{Route: "/reports"})
	if err != nil {
		log.Fatal(err)
	}
	lease.ReleaseAs(forebay.OutcomeDone) // a refusal of the backend's own is OutcomeOverloaded

	// Five is the upper one of the two limits that are compared. While nobody is refused
	// it holds, as to try less would refuse somebody.
	// Five is the upper one of the two limits that are compared. While nobody is refused
	// it holds, as to try less would refuse somebody.
	fmt.Println(gate.Stats().Capacity)
	// Output: 5
}
