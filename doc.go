// Package forebay keeps an overloaded server up: it puts a gate in front of the
// expensive part.
//
// A [Gate] lets a bounded number of calls run, a bounded number wait a short,
// bounded time, and refuses the others at once, cheaply and honestly. A call that
// may run holds a [Lease], which is given back once, whatever happens. What the
// gate did with a call is its [Decision], and an [Observer] is told of it in an
// [Event].
//
//	reports, err := forebay.New(forebay.Config{
//		Name:        "reports",
//		MaxInFlight: 12,                     // what the database pool carries
//		MaxWait:     100 * time.Millisecond, // smooths bursts
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	http.Handle("GET /reports/", reports.Wrap(reportsHandler))
//	http.Handle("GET /health", forebay.NewHealth(reports)) // never gated
//
// For several gates by route see [Groups], for one call through several gates
// [Chain], for a function rather than a handler [Func], for a gate after
// authentication [Gate.Acquire] with [Refuse].
//
// # Promises
//
// Everything here is safe for concurrent use. Nothing starts beyond the limit in
// force, whatever callers cancel, panic, release twice or reconfigure; no slot
// leaks; nobody passes the line; nothing runs for a caller that has left. Each call
// gets exactly one decision, and at every instant
//
//	requests = decisions + waiting
//	granted  = released + leases out
//
// A gate has nothing to close. It keeps no goroutine, and a timer only while
// somebody waits or [Config.MaxHold] watches. It works in testing/synctest
// bubbles, package-level gates included.
//
// # What it does not do
//
// It limits how much runs at once, not how much comes per second. It cannot stop
// work that has begun: a lease held too long is reported ([Config.MaxHold]), never
// given away. It does not know what the right limit is.
package forebay
