// Package forebaytest is the test kit of Forebay: what a test of a program with a
// gate needs, and what a test of a new kind of gate needs.
//
// For programs there are a [Recorder] of what a gate decides, [CheckConserved]
// for its books, a [Limit] that the test moves, a [Backend] whose requests run
// until the test lets them go, and a [Server] in memory. All of them work inside
// testing/synctest bubbles, where a wait of 100 ms takes no time and is exactly
// 100 ms long:
//
//	synctest.Test(t, func(t *testing.T) {
//		backend := &forebaytest.Backend{}
//		client := forebaytest.Serve(t, gate.Wrap(backend))
//		go client.Get("http://gate.test/a")
//		synctest.Wait() // /a runs, or stands in line, or is refused
//		backend.Release(1)
//	})
//
// For implementations there is [Conformance]: whatever puts a gate in front of an
// HTTP handler has to pass it, from the outside, over HTTP:
//
//	func TestMyGate(t *testing.T) {
//		forebaytest.Conformance(t, func(t testing.TB, c forebay.Config, backend http.Handler) *forebaytest.System {
//			gate, err := forebay.New(c)
//			if err != nil {
//				t.Fatal(err)
//			}
//			return forebaytest.NewSystem(gate.Wrap(backend), gate)
//		})
//	}
//
// [Lifetime] takes the same opener, and ends requests in every way that there is, over
// real connections. [TestStore] is what every store of a cluster's ledgers has to pass;
// package redistest starts the real servers for one on Redis, and [Store] is one in
// memory, with everything that can go wrong.
//
// Everything here is safe for concurrent use. The kit requires nothing but the
// standard library and reports through testing.TB; it does not replace a load
// test, since in a bubble no work costs time.
package forebaytest
