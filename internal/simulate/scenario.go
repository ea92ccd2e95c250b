package simulate

import (
	"time"

	"example.com/forebay/internal/admit"
)

// Scenario is what is simulated. [Run] says what is wrong with one.
type Scenario struct {
	Name      string
	For       time.Duration // how long calls come
	WarmUp    time.Duration // from the start, in which calls are not counted
	Every     time.Duration // of the points of the result; 0: a hundredth of For
	Seed      uint64
	Instances int // programs that share the calls, each with gates of its own; 0: one
	Resources []Resource
	Gates     []Gate
	Routes    []Route
	Clients   []Client
}

// Gate is one gate, as every instance has it.
type Gate struct {
	Name    string
	Config  admit.Config                     // Limit is required; Limiter and Ledger are not read
	Limiter func(instance int) admit.Limiter // makes the limiter of each instance, from 0; nil: the limit stays
	Foreign func(instance int) Foreign       // makes the gate that decides instead; nil: none
	RetryLo int                              // seconds, of Retry-After; 0: 1
	RetryHi int                              // 0: 30
}

// Route is one kind of call.
type Route struct {
	Name  string
	Gates []string // passed in this order, all or none; none: nothing is refused
	Cost  int      // units of each gate; 0: 1
	Lane  string   // of each gate that has it; empty: none
	Work  []Visit  // one after the other
}

// Visit is one part of a call's work: how long it takes at a resource that has nothing
// else to do.
type Visit struct {
	At    string
	Takes Times
}

// Resource is something behind the gates that calls share: cores, a pool of connections,
// another service. Calls beyond Servers stand in a line without bound; those that are
// served share Cores, and are slowed down by Sigma, Kappa, Cliff and Throughput, all of
// which apply together.
type Resource struct {
	Name    string
	Servers int     // how many are served at once; 0: all
	Cores   float64 // how many run at full speed; 0: all
	Sigma   float64 // contention: n calls are slowed down by 1 + Sigma (n-1) + Kappa n (n-1)
	Kappa   float64
	Cliff   Cliff
	// Throughput is how many calls' worth of work are done by n at once, in calls of one
	// that is alone; between the points it is a line, after the last it stays.
	Throughput []Rate
	Changes    []Change // in the order of their times
	Pauses     Pauses
}

// Cliff is where a resource begins to thrash: up to At calls it does as much as they ask,
// beyond that At × (At/n)^Power. The zero value is none.
type Cliff struct {
	At    int
	Power float64
}

// Rate is one point of a table of throughput.
type Rate struct {
	Calls int
	Does  float64
}

// Change is what becomes of a resource at a time. What is zero stays.
type Change struct {
	At      time.Duration
	Speed   float64 // of the normal one
	Servers int
}

// Pauses are times in which a resource stands still: For at every multiple of Every.
// The zero value is none.
type Pauses struct{ Every, For time.Duration }

// Client is a crowd of callers that want the same.
type Client struct {
	Name     string
	Route    string
	Arrivals Arrivals
	Callers  int           // how many they are, for a bound of each; 0: nobody knows
	Deadline time.Duration // each attempt's: who has no answer by then leaves; 0: patient for ever
	Tells    bool          // the deadline comes with the call, so that gates know it
	Cancels  bool          // work for one that has left ends; otherwise it goes on for nobody
	Retries  Retries
}

// Arrivals is when calls come: Rate times what Steps say, in bursts, in batches, or at
// Times.
type Arrivals struct {
	Rate   float64         // calls a second
	Even   bool            // one distance; otherwise at random, as a Poisson process
	Batch  int             // so many at once, Rate ÷ Batch times a second; 0: 1
	Bursts Bursts          //
	Steps  []Step          // in the order of their times
	Times  []time.Duration // further calls, in order: a trace
}

// Bursts let the rate jump between High and Low times its mean, for random times of mean
// Mean. The zero value is none.
type Bursts struct {
	High, Low float64
	Mean      time.Duration
}

// Step multiplies a rate from a time on.
type Step struct {
	At    time.Duration
	Times float64
}

// Retries is what a caller does without an answer. The zero value: it gives up.
type Retries struct {
	Max     int           // further attempts
	Backoff time.Duration // before the first of them
	Factor  float64       // by which it grows each time; 0: 2
	Jitter  float64       // part of it that is random, 0 to 1
	Honours bool          // after a refusal, the Retry-After counts instead
	Marked  bool          // they say that they are such, so that gates let them in one rank lower
}
