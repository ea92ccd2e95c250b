package main

import (
	"sync/atomic"
	"time"
)

// The contended section: five instances, each with as many callers as it could
// serve alone, for slots that a quarter of them can have.
const (
	fieldInstances = 5
	fieldCallers   = 16
	fieldLimit     = 20
	fieldHold      = 5 * time.Millisecond

	atOnce = "most at once"

	ourAwake = "forebay, processors awake"
)

func contendedSection(e effort) (*section, error) {
	s := &section{
		name: "contended", title: "80 callers of five instances, 20 slots, 5 ms",
		about: "Work that sleeps for 5 ms in one of 20 slots, again and again. The real hold is measured inside the slot; slots in use is its share of what 20 slots give. A wait is from the call to the slot.",
		base:  ourCluster,
		columns: []column{
			{name: usedUp, more: true, noise: 0.02}, {name: waitMedian, noise: 0.5}, {name: waitFar, noise: 1}, {name: shareMin, more: true},
			{name: sentPerPair}, {name: serverMicros, neutral: true}, {name: serverCPU}, {name: atOnce, neutral: true},
		},
		rounds: e.storeRounds,
		targets: []target{
			{what: "exchanges a call, 80 callers on 20 slots", limit: 0.7, of: just(ourCluster, sentPerPair)},
			{what: "Redis time of an exchange, µs, on processors that do not sleep", limit: 60, of: just(ourAwake, serverMicros)},
			{what: "Redis time of an exchange, µs, its processor asleep in between", limit: 60, aim: true, of: just(ourCluster, serverMicros)},
			{what: "most that held a slot at once", limit: fieldLimit, always: true, of: just(ourCluster, atOnce)},
		},
		notes: []string{
			"Who asks again and again finds a free slot whoever came first: see the shares, and the p99 of the wait.",
			"Redis sleeps here between two exchanges, and so does its processor, which then begins slowly and with empty caches: the time of an exchange is processor time for most of it, and a script that only asks INFO costs three times as much as well. *" + ourAwake + "* is the same once more while both processors are kept busy by work that gives way to any other: what an exchange costs where Redis has something to do, and what to plan with.",
		},
	}
	for _, c := range contenders(clusterContender(ourCluster, ordinary)) {
		s.rows = append(s.rows, c.row(ourCluster, func() figures { return contended(2*e.crowded, c) }))
	}
	if canStayAwake {
		c := clusterContender(ourAwake, ordinary)
		s.rows = append(s.rows, c.row(ourCluster, func() figures {
			defer awake()()
			return contended(2*e.crowded, c)
		}))
	}
	return s, nil
}

// The waits of callers that are served in the end.
const (
	waitMedian = "wait p50, ms"
	waitFar    = "wait p99, ms"
)

// contended measures one contender for a span.
func contended(span time.Duration, c *contender) figures {
	const callers = fieldInstances * fieldCallers
	f := c.start(fieldInstances, fieldCallers, fieldLimit)
	defer f.close()
	stays := make([][]stay, callers)
	var inside, most atomic.Int64
	var w watch
	counts, took := crowdAround(callers, span, func(i int) {
		arrived := time.Now()
		f.use(i%fieldInstances, func() {
			raise(&most, inside.Add(1))
			started := time.Now()
			time.Sleep(fieldHold)
			stays[i] = append(stays[i], stay{started.Sub(arrived), time.Since(started)})
			inside.Add(-1)
		})
	}, w.begin, w.end)
	f.check(c)
	var held time.Duration
	n := 0
	for _, own := range stays {
		for _, s := range own {
			held, n = held+s.held, n+1
		}
	}
	waits := waitsOfFullCrowd(stays)
	calls := float64(sum(counts))
	sent, micros := w.server.sent(c.commands)
	return figures{
		usedUp:       calls * float64(held) / float64(n) / float64(took) / fieldLimit,
		waitMedian:   millis(quantile(waits, 0.5)),
		waitFar:      millis(quantile(waits, 0.99)),
		shareMin:     evenness(counts),
		sentPerPair:  float64(sent) / calls,
		serverMicros: micros / float64(sent),
		serverCPU:    w.server.cpu / 1000 / calls,
		atOnce:       float64(most.Load()),
	}
}

// raise makes the most at least n.
func raise(most *atomic.Int64, n int64) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}
