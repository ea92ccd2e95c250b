//go:build linux

package main

import (
	"syscall"
	"time"
	"unsafe"
)

// instant is CLOCK_MONOTONIC in nanoseconds, which all processes of one machine read
// alike: what two of them wrote down can be put in one order.
type instant int64

// now returns the instant. It costs what time.Since costs, and so does not slow down
// what it is to measure.
func now() instant { return origin.at + instant(time.Since(origin.when)) }

func (i instant) add(d time.Duration) instant { return i + instant(d) }

func (i instant) since(j instant) time.Duration { return time.Duration(i - j) }

// origin ties Go's monotonic clock, whose zero is private, to the machine's.
var origin = readOrigin()

type tie struct {
	when time.Time
	at   instant
}

// readOrigin reads both clocks as close together as it can.
func readOrigin() (best tie) {
	const clockMonotonic = 1
	closest := time.Duration(1<<63 - 1)
	for range 100 {
		var ts syscall.Timespec
		before := time.Now()
		_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
		if errno != 0 {
			panic("chaos: clock_gettime: " + errno.Error())
		}
		if took := time.Since(before); took < closest {
			closest = took
			best = tie{before.Add(took / 2), instant(ts.Nano())}
		}
	}
	return best
}
