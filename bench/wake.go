package main

import (
	"context"
	"time"
)

// settle is the pause after which a caller surely stands in line, or a slot is idle.
const settle = 2 * time.Millisecond

// The rows that the targets compare with.
const blockingPop = "token list, rueidis"

func wakeSection(e effort) (*section, error) {
	s := &section{
		name: "wake", title: "A slot goes to another instance",
		about: "One slot, two instances. One holds it and the other waits; from the call that gives it back to the moment when the other runs. They take turns.",
		base:  blockingPop,
		columns: []column{
			{name: pairMedian, ratio: "x blocking pop"}, {name: pairFar},
		},
		rounds: e.storeRounds,
		targets: []target{
			{what: "wake-up on another instance, p50 ÷ a blocking pop's", limit: 3, of: quotient(ourCluster, blockingPop, pairMedian)},
			{what: "wake-up on another instance, p99, µs", limit: 5000, of: just(ourCluster, pairFar)},
		},
	}
	for _, c := range contenders(clusterContender(ourCluster, ordinary)) {
		s.rows = append(s.rows, c.row(ourCluster, func() figures { return handover(e.handovers, c, wakeUp) }))
	}
	return s, nil
}

func recallSection(e effort) (*section, error) {
	s := &section{
		name: "recall", title: "A slot lies idle with another instance",
		about: "One slot, two instances. One has used it and keeps it for its next caller; from the call of a caller of the other to the moment when it runs. They take turns. The others keep nothing, so that theirs is a plain acquire.",
		base:  "counter, rueidis",
		columns: []column{
			{name: pairMedian, ratio: "x counter"}, {name: pairFar},
		},
		rounds: e.storeRounds,
		targets: []target{
			{what: "an idle slot of another instance, p50, µs", limit: 1000, of: just(ourCluster, pairMedian)},
		},
	}
	for _, c := range contenders(clusterContender(ourCluster, ordinary)) {
		s.rows = append(s.rows, c.row(ourCluster, func() figures { return handover(e.handovers, c, recall) }))
	}
	return s, nil
}

// handover moves the one slot to and fro for so many times.
func handover(times int, c *contender, move func(from, to int, f *field, release func()) (time.Duration, func())) figures {
	f := c.start(2, 2, 1)
	defer f.close()
	release := f.mustAcquire(0)
	var took []time.Duration
	for i := range times {
		var d time.Duration
		d, release = move(i%2, (i+1)%2, f, release)
		took = append(took, d)
	}
	release()
	return figures{pairMedian: inMicros(quantile(took, 0.5)), pairFar: inMicros(quantile(took, 0.99))}
}

// wakeUp gives the slot back while another instance waits for it.
func wakeUp(_, to int, f *field, release func()) (time.Duration, func()) {
	type slot struct {
		at      time.Time
		release func()
	}
	got := make(chan slot, 1)
	go func() {
		release := f.mustAcquire(to)
		got <- slot{time.Now(), release}
	}()
	time.Sleep(settle)
	began := time.Now()
	release()
	s := <-got
	return s.at.Sub(began), s.release
}

// recall gives the slot back, and has another instance want it a moment later.
func recall(_, to int, f *field, release func()) (time.Duration, func()) {
	release()
	time.Sleep(settle)
	began := time.Now()
	release = f.mustAcquire(to)
	return time.Since(began), release
}

func (f *field) mustAcquire(instance int) func() {
	release, err := f.acquire[instance](context.Background())
	if err != nil {
		panic(unfit("not admitted: " + err.Error()))
	}
	return release
}
