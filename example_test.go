package forebay_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"example.com/forebay"
)

// One gate in front of a handler: twelve reports at once, a burst waits for up
// to 100 ms, and whoever cannot be served gets a 503 with a Retry-After.
func Example() {
	gate, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 12, MaxWait: 100 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /reports/{day}", gate.Wrap(http.HandlerFunc(report)))
	mux.Handle("GET /health", forebay.NewHealth(gate))

	fmt.Print(get(mux, "/reports/monday"))
	fmt.Print(get(mux, "/health"))
	// Output:
	// 200 report of monday
	// 200 {"status":"ok","gates":[{"name":"reports","status":"ok"}]}
}

// Without MaxWait a full gate refuses at once. Here the only slot is taken by
// hand, so that the request finds the gate full.
func ExampleGate_Wrap() {
	gate := mustGate(forebay.Config{
		Name:        "reports",
		MaxInFlight: 1,
		Refusal:     forebay.Refusal{RetryAfter: forebay.RetryAfter{Fixed: 2 * time.Second}},
	})
	handler := gate.Wrap(http.HandlerFunc(report))
	request := httptest.NewRequest("GET", "/reports/monday", nil)
	request.Header.Set("X-Request-Id", "4bf92f35") // or Forebay makes one up

	lease, _ := gate.TryAcquire(forebay.Call{})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	fmt.Println(answer.Code, "Retry-After:", answer.Header().Get("Retry-After"))
	fmt.Println(answer.Body)

	lease.Release()
	fmt.Println(status(handler, request))
	// Output:
	// 503 Retry-After: 2
	// {"error":"server_busy","reason":"rejected_busy","gate":"reports","requestId":"4bf92f35"}
	// 200
}

// A gate inside a handler, after authentication: strangers take no slot from
// those who know the password.
func ExampleGate_Acquire() {
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		lease, err := gate.Acquire(r.Context(), forebay.Call{Route: "/reports"})
		if err != nil {
			forebay.Refuse(w, r, err)
			return
		}
		defer lease.Release() // also when report panics
		report(w, r)
	})

	stranger := httptest.NewRequest("GET", "/reports", nil)
	known := httptest.NewRequest("GET", "/reports", nil)
	known.SetBasicAuth("ada", "secret")

	lease, _ := gate.TryAcquire(forebay.Call{}) // the gate is full
	fmt.Println("full:", status(handler, stranger), status(handler, known))
	lease.Release()
	fmt.Println("free:", status(handler, stranger), status(handler, known))
	// Output:
	// full: 401 503
	// free: 401 200
}

// An error of Acquire tells which gate refused and why; a caller that left was
// not refused, and its error is the context's.
func ExampleRejectedError() {
	gate := mustGate(forebay.Config{Name: "reports", MaxInFlight: 1})
	lease, _ := gate.TryAcquire(forebay.Call{})
	defer lease.Release()

	_, err := gate.Acquire(context.Background(), forebay.Call{})
	if rejected, ok := errors.AsType[*forebay.RejectedError](err); ok {
		fmt.Println(rejected.Gate().Name(), rejected.Decision(), errors.Is(err, forebay.ErrRejected))
	}

	left, leave := context.WithCancel(context.Background())
	leave()
	_, err = gate.Acquire(left, forebay.Call{})
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, forebay.ErrRejected))
	// Output:
	// reports rejected_busy true
	// true false
}

// The decorator: the gated function has the signature of the bare one.
func ExampleFunc() {
	gate := mustGate(forebay.Config{Name: "database", MaxInFlight: 1})
	count := func(_ context.Context, table string) (int, error) { return len(table), nil }
	gated := forebay.Func(gate, count)

	ctx := context.Background()
	fmt.Println(gated(ctx, "orders"))

	lease, _ := gate.TryAcquire(forebay.Call{}) // the gate is full
	defer lease.Release()
	_, err := gated(ctx, "orders")
	fmt.Println(errors.Is(err, forebay.ErrRejected))
	fmt.Println(gated(forebay.Exempt(ctx), "orders")) // must not wait: no slot asked
	// Output:
	// 6 <nil>
	// true
	// 6 <nil>
}

// Do runs a closure with a slot; a Do inside is part of the same call and never
// waits for itself.
func ExampleDo() {
	gate := mustGate(forebay.Config{Name: "database", MaxInFlight: 1})
	err := forebay.Do(context.Background(), gate, func(ctx context.Context) error {
		return forebay.Do(ctx, gate, func(context.Context) error {
			fmt.Println("in use:", gate.Stats().InUse)
			return nil
		})
	})
	fmt.Println(err, "in use:", gate.Stats().InUse)
	// Output:
	// in use: 1
	// <nil> in use: 0
}

// report is the handler behind the gate.
func report(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "report of", r.PathValue("day"))
}

// mustGate is New for configurations that are known to be right.
func mustGate(c forebay.Config) *forebay.Gate {
	gate, err := forebay.New(c)
	if err != nil {
		log.Fatal(err)
	}
	return gate
}

// get asks h for path, and returns the status and the body.
func get(h http.Handler, path string) string {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
	return fmt.Sprint(answer.Code, " ", answer.Body)
}

// code asks h for path, and returns the status.
func code(h http.Handler, path string) int {
	return status(h, httptest.NewRequest("GET", path, nil))
}

// status returns the status of h's answer to r.
func status(h http.Handler, r *http.Request) int {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer.Code
}
