// Package verdict says what is wrong with a gate, and what to do: from how long calls
// wait, how long they hold their slots beside how many others, what is refused, who
// comes back too early, and how busy the processor is.
//
//	h := verdict.NewHistory()
//	every second: h.Add(sample, terms)
//	h.Verdicts() // none, most of the time
//
// The judgement is pure: a function of a history of bounded size, of what the gate is
// configured to, and of nothing else. [Recorder] is the shell: an observer that counts
// what gates do, once a second adds it to their histories, and remembers what they say.
//
// # What it rests on
//
// The waited time rises before anything breaks, and says that slots are short, not why.
// Why comes from the held time: of a gate whose calls take as long among many as among
// few, and refuses, the limit is too strict. If they take longer among many, something
// behind the gate is short, and the processor says what: busy, there are too many at
// once for it; idle, they wait for a pool, a lock or another service.
//
// # Hysteresis
//
// A verdict comes up once its condition has held in [raiseAfter] looks in a row, each
// over the last [window] seconds, and goes when it has not held for [clearAfter]. Bursts
// that a line absorbs are over by then.
//
// # What it does not know
//
// How busy the processor is is known of this host only. What counts as a caller that
// comes back too early is in the server, who asks. Without calls that ran among few
// there is nothing to compare with, and so no verdict that needs it.
package verdict
