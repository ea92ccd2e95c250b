package server

import (
	"golang.org/x/sys/unix"
)

// monotonicMicros is the time that systemd wants to know for a reload.
func monotonicMicros() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano() / 1000
}
