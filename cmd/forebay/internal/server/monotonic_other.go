//go:build !linux

package server

// monotonicMicros is asked for by systemd alone.
func monotonicMicros() int64 { return 0 }
