package main

import (
	"slices"
	"time"
)

// idealGate says what a perfect gate would make of the same arrivals: 20 slots, a
// line of 40 served first come first, 100 ms of patience, a service time that is
// always the same, and no time lost between one caller and the next. No gate with
// these settings can do better, so what it lacks to 1 is not the gates' doing.
func idealGate(times []time.Duration, w window, capacity float64) figures {
	service := time.Duration(backendSlots / capacity * float64(time.Second))
	free := make([]time.Duration, backendSlots) // when each slot is free
	var line []time.Duration                    // when each who waits will leave it
	good := 0.0
	for _, at := range times {
		line = slices.DeleteFunc(line, func(leaves time.Duration) bool { return leaves <= at })
		if len(line) >= loadWaiting {
			continue
		}
		next := 0
		for i, f := range free {
			if f < free[next] {
				next = i
			}
		}
		starts := max(at, free[next])
		if starts-at >= loadPatience {
			line = append(line, at+loadPatience) // it waits for nothing, but it waits
			continue
		}
		if starts > at {
			line = append(line, starts)
		}
		free[next] = starts + service
		good += w.part(starts, free[next])
	}
	return figures{goodput: good / (capacity * (w.to - w.from).Seconds())}
}
