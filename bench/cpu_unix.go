//go:build unix

package main

import (
	"math"
	"syscall"
	"time"
)

// cpuTime returns the processor time, of user and kernel, that this process has
// used in nanoseconds; NaN if the system does not say.
func cpuTime() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(time.Duration(u.Utime.Nano() + u.Stime.Nano()))
}
