package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// The columns of sections over Redis.
const (
	pairsASecond = "pairs/s"
	pairMedian   = "p50, µs"
	pairFar      = "p99, µs"
	serverCPU    = "Redis CPU, µs a pair"
	sentPerPair  = "commands a pair"
	serverMicros = "Redis µs a command"
	ownCPU       = "our CPU, µs a pair"
)

// roomy is a limit that nobody reaches.
const roomy = 1024

// aHeartbeat is what a few of them may add to the commands of a span.
const aHeartbeat = 0.02

// uncachedSection has so many callers of one instance acquire and release, with
// room for all.
func uncachedSection(callers int) func(effort) (*section, error) {
	return func(e effort) (*section, error) {
		s := &section{
			name:  fmt.Sprintf("uncached%d", callers),
			title: fmt.Sprintf("Nobody waits, every slot from Redis, %s", count(callers, "caller")),
			about: "One instance whose callers acquire and release without a pause, with room for all. forebay keeps no idle slot here (`IdleHold` below 0), so that every pair goes to the ledger and back, as it does with the others; the row with its ordinary setting is there to compare.",
			base:  ourUncached,
			columns: []column{
				{name: pairsASecond, ratio: "x ours", more: true}, {name: pairMedian}, {name: pairFar},
				{name: sentPerPair, neutral: true}, {name: serverCPU}, {name: ownCPU, neutral: true},
			},
			rounds:  e.storeRounds,
			targets: uncachedTargets(callers),
		}
		own := []*contender{
			clusterContender(ourUncached, returning), clusterContender(ourGoRedis, returningGoRedis),
			clusterContender(ourCluster, ordinary),
		}
		for _, c := range contenders(own...) {
			s.rows = append(s.rows, c.row(ourUncached, func() figures { return uncached(e.crowded, c, callers) }))
		}
		return s, nil
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// uncached measures one contender for a span.
func uncached(span time.Duration, c *contender, callers int) figures {
	f := c.start(1, callers, roomy)
	defer f.close()
	return measurePairs(span, c, f, callers, func() {})
}

// measurePairs has callers spread over the instances of a field use slots for a
// span, and returns what a pair took on both sides.
func measurePairs(span time.Duration, c *contender, f *field, callers int, work func()) figures {
	took := make([][]time.Duration, callers)
	var w watch
	var counting atomic.Bool
	_, during := crowdAround(callers, span, func(i int) {
		began := time.Now()
		f.use(i%len(f.acquire), work)
		if counting.Load() {
			took[i] = append(took[i], time.Since(began))
		}
	}, func() {
		w.begin()
		counting.Store(true)
	}, func() {
		counting.Store(false)
		w.end()
	})
	f.check(c)
	var all []time.Duration
	for _, own := range took {
		all = append(all, own...)
	}
	pairs := float64(len(all))
	sent, micros := w.server.sent(c.commands)
	return figures{
		pairsASecond: pairs / during.Seconds(),
		pairMedian:   inMicros(quantile(all, 0.5)),
		pairFar:      inMicros(quantile(all, 0.99)),
		sentPerPair:  float64(sent) / pairs,
		serverMicros: micros / float64(sent),
		serverCPU:    w.server.cpu / 1000 / pairs,
		ownCPU:       w.own / 1000 / pairs,
	}
}

func inMicros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func uncachedTargets(callers int) []target {
	name := count(callers, "caller")
	switch callers {
	case 256:
		return []target{
			{what: "pairs/s ÷ the fastest rueidis with a script per request, " + name, limit: 4, atLeast: true, of: timesTheFastest},
			{what: "Redis CPU of a pair, µs, " + name, limit: 2, of: just(ourUncached, serverCPU)},
		}
	case 16:
		return []target{
			{what: "pairs/s ÷ the fastest rueidis with a script per request, " + name, limit: 1.5, atLeast: true, of: timesTheFastest},
		}
	}
	return []target{
		{what: "round trips a pair, " + name, limit: 1 + aHeartbeat, of: just(ourUncached, sentPerPair)},
	}
}

// timesTheFastest is our pairs a second over those of the faster one of the two
// forms that send one script for each request through rueidis.
func timesTheFastest(m round) float64 {
	return m.at(ourUncached, pairsASecond) / max(m.at("counter, rueidis", pairsASecond), m.at("lease set, rueidis", pairsASecond))
}
