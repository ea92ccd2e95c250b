// Package simulate runs a scenario through the admission machine of the server, in
// simulated time: what is simulated is what runs.
//
// A [Scenario] says who calls ([Client]), which gates a call passes ([Gate]) and what
// its work needs behind them ([Resource], [Visit]). [Run] plays it event by event and
// says in a [Result] what became of every call. Time is a whole number of nanoseconds
// and chance comes from generators that are seeded, so the same scenario and seed give
// the same result bit for bit. What a call brings along (when it comes, how much work it
// is, who asks) is drawn from generators of its client, and what gates and clients do
// about it from others: two scenarios that differ in their gates alone meet the same
// calls.
//
// A run needs one goroutine, the caller's, and shares nothing with others.
//
// What is not here: the network, the processor that gates themselves take, and clients
// that send slowly.
package simulate
