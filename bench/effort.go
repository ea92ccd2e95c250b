package main

import "time"

// effort says how long to measure. The full one takes about six minutes, the
// brief one under two.
type effort struct {
	name         string
	loopRounds   int           // of the sections of loops: many short ones, so that most are undisturbed
	slice        time.Duration // of one loop in one round
	rounds       int           // of the sections of crowds and of the wire
	contended    time.Duration // of one row of the 1 µs holds in one round
	held         time.Duration // of one row of the 1 ms holds
	expiring     time.Duration // of one row of the expiring waits
	wireRequests int           // of one row on the wire
	loadRounds   int           // of the goodput section
	load         time.Duration // of one load point, after its warm-up

	// Of the sections over Redis.
	storeRounds   int
	crowded       time.Duration // of one row of a crowd
	waitingRounds int           // of the section of those who wait
	waiting       time.Duration // of one row of it
	handovers     int           // of one row

	// Of the proxies; each is of one row in one round.
	proxyRequests, loneRequests, largeRequests int
	collapseRounds                             int
	collapse                                   time.Duration // of one load point, after its warm-up

	soak       time.Duration // of one load
	soakSettle int           // requests before the program is looked at
}

var (
	full = effort{
		name: "full", loopRounds: 31, slice: 8 * time.Millisecond,
		rounds: 13, contended: 100 * time.Millisecond, held: 400 * time.Millisecond,
		expiring: 250 * time.Millisecond, wireRequests: 16_000,
		loadRounds: 3, load: 9 * time.Second,
		storeRounds: 5, crowded: 250 * time.Millisecond, waitingRounds: 1, waiting: 3 * time.Second, handovers: 80,
		proxyRequests: 20_000, loneRequests: 1_500, largeRequests: 320, collapseRounds: 3, collapse: 2 * time.Second,
		soak: time.Minute, soakSettle: 30_000,
	}
	brief = effort{
		name: "quick", loopRounds: 7, slice: 4 * time.Millisecond,
		rounds: 3, contended: 50 * time.Millisecond, held: 250 * time.Millisecond,
		expiring: 100 * time.Millisecond, wireRequests: 4_000,
		loadRounds: 1, load: 4 * time.Second,
		storeRounds: 3, crowded: 150 * time.Millisecond, waitingRounds: 1, waiting: 2 * time.Second, handovers: 40,
		proxyRequests: 5_000, loneRequests: 500, largeRequests: 80, collapseRounds: 1, collapse: time.Second,
		soak: 5 * time.Second, soakSettle: 30_000,
	}
	// tiny is for the tests, which look at the shape and not at the figures.
	tiny = effort{
		name: "tiny", loopRounds: 1, slice: 200 * time.Microsecond,
		rounds: 1, contended: 5 * time.Millisecond, held: 30 * time.Millisecond,
		expiring: 10 * time.Millisecond, wireRequests: 320,
		loadRounds: 1, load: 200 * time.Millisecond,
		storeRounds: 1, crowded: 30 * time.Millisecond, waitingRounds: 1, waiting: 100 * time.Millisecond, handovers: 3,
		proxyRequests: 64, loneRequests: 5, largeRequests: 16, collapseRounds: 1, collapse: 50 * time.Millisecond,
		soak: time.Second, soakSettle: 100,
	}
)
