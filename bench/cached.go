package main

import (
	"context"
	"sync/atomic"

	"example.com/forebay"
)

// The rows and columns of the cached section.
const (
	ourCached        = "forebay Acquire, cluster"
	ourCachedTracked = "forebay Acquire, cluster, Track"
	perMillion       = "commands a million pairs"
)

// fewCommands is what a million pairs may send: at a microsecond each they take two
// heartbeats, and a round may begin with one.
const fewCommands = 10

func cachedSection(e effort) (*section, error) {
	local := newGate(forebay.Config{MaxInFlight: pairLimit, Track: true})
	s := &section{
		name: "cached", title: "Nobody waits, the slot is here", base: ourTrack,
		about: "One acquire and its release on an instance that has idle slots, which is the ordinary case: on one goroutine and on two at once. The gate of one process with Track reads the clock twice; a gate of a cluster reads it once, to know that its lease lasts.",
		columns: []column{
			{name: seqNS, ratio: "x local"}, {name: parNS, ratio: "x local"}, {name: allocs}, {name: bytesOf}, {name: perMillion},
		},
		rows: []row{{name: ourTrack, kind: yardstick, measure: aloneAndTogether(e, acquirePairs(context.Background(), local))}},
		targets: []target{
			{what: "cached pair ÷ local pair with Track, one goroutine", limit: 2, of: quotient(ourCached, ourTrack, seqNS)},
			{what: "cached pair ÷ local pair with Track, two goroutines", limit: 2, of: quotient(ourCached, ourTrack, parNS)},
			noAllocation(ourCached, allocs),
			{what: "commands of a million cached pairs", limit: fewCommands, of: just(ourCached, perMillion)},
		},
		rounds: e.loopRounds,
	}
	var opened []*member
	s.close = func() {
		for _, m := range opened {
			m.close()
		}
	}
	for _, own := range []struct {
		name string
		form form
	}{{ourCached, ordinary}, {ourCachedTracked, form{track: true}}} {
		var m *member
		s.rows = append(s.rows, row{name: own.name, kind: ours, measure: func() figures {
			if m == nil {
				m = mustOpen(own.form)
				opened = append(opened, m)
			}
			return cachedPairs(e, m.gate)
		}})
	}
	return s, nil
}

// cachedPairs measures the loop and counts what the server hears meanwhile.
func cachedPairs(e effort, g *forebay.Gate) figures {
	var pairs atomic.Int64
	loop := acquirePairs(context.Background(), g)
	measure := aloneAndTogether(e, func(n int) {
		loop(n)
		pairs.Add(int64(n))
	})
	loop(64) // the first ones fetch the slots
	pairs.Store(0)
	var w watch
	w.begin()
	f := measure()
	w.end()
	sent, _ := w.server.sent([]string{"evalsha"})
	f[perMillion] = float64(sent) / float64(pairs.Load()) * 1e6
	return f
}

func mustOpen(f form) *member {
	m, err := openMember(f, setup{key: nextKey(), limit: pairLimit})
	if err != nil {
		panic(unfit(err.Error()))
	}
	return m
}
