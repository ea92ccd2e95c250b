// Package admit decides who runs, who waits and who is refused.
//
// It is the pure core of every gate: no clock, no goroutine, no lock. A
// [Machine] is told what happens and when (a call arrives, gives its slot back,
// leaves, runs out of patience; the limit moves; the gate drains) and answers
// with a [Verdict]; whoever was waiting and is decided by the event comes out of
// [Machine.Decided]. The same events with the same times always give the same
// answers, so a run can be written down as a script and played again, and the
// simulator drives the very code that the server runs.
//
// A Machine is not safe for concurrent use; the gate around it holds a lock.
package admit
