package main

import (
	"slices"
	"time"
)

const (
	holdLimit = 8
	longHold  = time.Millisecond

	realHold = "real hold, ms"
	medWait  = "wait p50 ÷ ideal"
	farWait  = "wait p99 ÷ ideal"
	usedUp   = "slots in use"
)

func holdSection(e effort) (*section, error) {
	measured := func(name string, k kind, gate underGate) row {
		r := row{name: name, kind: k, measure: func() figures { return hold(e.held, gate) }}
		if k == rival {
			r.against = oursQueued
		}
		return r
	}
	return &section{
		name: "hold", title: "64 goroutines, eight slots, 1 ms holds",
		about: "The same crowd with eight slots and work that sleeps for a millisecond. Timers make the real hold longer, so it is measured, inside the slot, and the ideal wait is made of it: with every slot always taken, 64 callers of which 8 run come round every 64 ÷ 8 holds, and wait (64 − 8) ÷ 8 = 7 of them. What is above 1 is hand-over.",
		columns: []column{
			{name: realHold, neutral: true}, {name: medWait}, {name: farWait},
			{name: shareMin, more: true}, {name: usedUp, more: true},
		},
		rows: []row{
			measured(oursQueued, ours, gateUse(holdLimit)),
			measured(xSync, rival, semaphoreUse(holdLimit)),
			measured(aChannel, rival, channelUse(holdLimit)),
			measured(bulkheadRow, rival, bulkheadUse(holdLimit)),
		},
		targets: []target{
			{what: "p99 of the wait ÷ ideal wait", limit: 1.3, of: just(oursQueued, farWait)},
			{what: "smallest ÷ largest share of a goroutine", limit: 0.8, atLeast: true, of: just(oursQueued, shareMin)},
		},
		notes: []string{"All four hand over first in, first out, so their waits are alike."},
	}, nil
}

// stay is one use of a slot.
type stay struct{ waited, held time.Duration }

// hold lets the crowd use the gate for a span with long holds.
func hold(span time.Duration, gate underGate) figures {
	stays := make([][]stay, crowdSize)
	counts, took := crowd(crowdSize, span, func(i int) {
		arrived := time.Now()
		gate(func() {
			started := time.Now()
			time.Sleep(longHold)
			stays[i] = append(stays[i], stay{started.Sub(arrived), time.Since(started)})
		})
	})
	all := slices.Concat(stays...)
	var held time.Duration
	for _, s := range all {
		held += s.held
	}
	mean := float64(held) / float64(len(all))
	ideal := mean * (crowdSize - holdLimit) / holdLimit
	waits := waitsOfFullCrowd(stays)
	return figures{
		realHold: mean / float64(time.Millisecond),
		medWait:  float64(quantile(waits, 0.50)) / ideal,
		farWait:  float64(quantile(waits, 0.99)) / ideal,
		shareMin: evenness(counts),
		usedUp:   float64(sum(counts)) * mean / float64(took) / holdLimit,
	}
}

// waitsOfFullCrowd leaves out each goroutine's first wait, when the line was
// still filling, and its last, when it was emptying.
func waitsOfFullCrowd(stays [][]stay) (waits []time.Duration) {
	for _, own := range stays {
		for i := 1; i < len(own)-1; i++ {
			waits = append(waits, own[i].waited)
		}
	}
	return waits
}

// quantile returns the smallest value that at least the share p does not exceed;
// 0 of no values.
func quantile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	i := int(p*float64(len(values))+0.999999) - 1
	return values[min(max(i, 0), len(values)-1)]
}
