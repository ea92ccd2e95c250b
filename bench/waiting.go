package main

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// The waiting section: nobody gets anything, and the question is what that costs.
const (
	waitingCallers = 200 // of each of the five instances
	waitingLimit   = 10

	sentASecond = "commands/s"
	perBeat     = "commands an instance and heartbeat"
	clients     = "connections"
	cpuASecond  = "Redis CPU, ms/s"
)

func waitingSection(e effort) (*section, error) {
	s := &section{
		name: "waiting", title: "1 000 requests wait",
		about: "All slots are held, and five instances have 200 callers each that wait. What reaches Redis meanwhile, and what the line keeps there. An instance of forebay says that it lives every half second; that is all.",
		base:  ourCluster,
		columns: []column{
			{name: sentASecond}, {name: cpuASecond}, {name: clients}, {name: perBeat, neutral: true},
		},
		targets: []target{
			{what: "commands while 1 000 wait, per instance and heartbeat", limit: 1.1, of: just(ourCluster, perBeat)},
		},
		rounds: e.waitingRounds,
	}
	for _, c := range contenders(clusterContender(ourCluster, ordinary)) {
		s.rows = append(s.rows, c.row(ourCluster, func() figures { return waiting(e.waiting, c) }))
	}
	return s, nil
}

// waiting holds all slots, lets the callers come, and looks at the server while
// they wait.
func waiting(span time.Duration, c *contender) figures {
	f := c.start(fieldInstances, waitingCallers+waitingLimit, waitingLimit)
	defer f.close()
	var held []func()
	for i := range waitingLimit {
		release, err := f.acquire[i%fieldInstances](context.Background())
		if err != nil {
			panic(unfit(c.name + ": " + err.Error()))
		}
		held = append(held, release)
	}
	ctx, leave := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range fieldInstances * waitingCallers {
		wg.Go(func() {
			if release, err := f.acquire[i%fieldInstances](ctx); err == nil {
				release()
			}
		})
	}
	time.Sleep(span / 2) // all have come, and the ledger knows
	var w watch
	w.begin()
	connected, _ := strconv.ParseFloat(lab().Info("clients")["connected_clients"], 64)
	began := time.Now()
	time.Sleep(span)
	took := time.Since(began).Seconds()
	w.end()
	leave()
	for _, release := range held {
		release()
	}
	wg.Wait()
	calls, _ := w.server.sent(c.commands)
	sent := float64(calls)
	return figures{
		sentASecond: sent / took,
		cpuASecond:  w.server.cpu / 1e6 / took,
		clients:     connected,
		perBeat:     sent / took * heartbeat.Seconds() / fieldInstances,
	}
}
