//go:build linux

package main

import "time"

// assignment is what one worker is told when it starts.
type assignment struct {
	Worker   int
	System   string // forebay, the name of a rival, or nothing at all
	Redis    place
	Tape     string // where it writes down what happens
	Records  int    // for which there is room
	Resource string // the shared memory of the resource, of a fenced system

	Limit    int
	Callers  int
	Rush     bool // all callers begin at once, instead of the first before the others
	Patience time.Duration
	Work     work
	Loan     loan
	TTL      time.Duration // of what a rival keeps; 0: as it comes

	Procs int // processors that the Go runtime uses; 0: all
	Hogs  int // goroutines that do nothing but burn them
}

// place is where the store is, from the worker's point of view.
type place struct {
	Addrs  []string
	Master string // of a Sentinel: the addresses are sentinels
	Whole  bool   // a Redis Cluster
}

// work is what callers do.
type work struct {
	Hold  time.Duration // on average, of most calls
	Long  time.Duration // of every tenth call
	Think time.Duration // on average, between two calls
	// Waves makes callers rest for one of every two of these, so that the limit is
	// reached at times and at others is not.
	Waves time.Duration
	Costs bool // every fifth call takes three units
	// Deadline is how long the context of every second call lasts, if that is shorter
	// than the patience. 0: for ever.
	Deadline time.Duration
}

// loan is how the slots of a clustered gate are lent.
type loan struct {
	Lease    time.Duration
	WhenAway string // "", "share", "closed" or "open"
	Withhold time.Duration
	Fenced   bool
}

// order is what a worker is told while it runs.
type order struct {
	Do    string // one of the constants below
	Limit int
	Clock string
}

const (
	doLimit  = "limit"  // set the limit by hand
	doRest   = "rest"   // no new calls
	doWork   = "work"   // go on
	doClock  = "clock"  // go by another clock, if the program is built for it
	doFinish = "finish" // no new calls, and end when all have been decided
)
