// Package rivals holds other ways to make one limit hold over many processes through
// Redis, each as it is used in the field and at its best settings: forebay is measured
// beside them (bench) and put through the same faults (bench/chaos).
package rivals

import (
	"context"
	"errors"
	"time"
)

// Semaphore is one process's side of a limit that many share. It is safe for
// concurrent use.
type Semaphore interface {
	// Acquire waits until a slot is free, for no longer than Config.MaxWait, nor than
	// ctx lasts. release gives the slot back and is called once. ErrFull says that the
	// patience ran out, any other error that the server could not be asked.
	Acquire(ctx context.Context) (release func(), err error)
	// Close gives up the connections, and not the slots: who is killed calls nothing.
	Close() error
}

// ErrFull is the error of an Acquire whose patience ran out.
var ErrFull = errors.New("rivals: no slot came free in time")

// Config is what every rival is told.
type Config struct {
	// Addr is the server, host and port.
	Addr string
	// Name is the prefix of the keys.
	Name string
	// Limit is how many may hold a slot at once.
	Limit int
	// Callers is how many come to this process at once at most: the sizes of pools
	// follow it.
	Callers int
	// MaxWait is the patience of one Acquire. 0: one try.
	MaxWait time.Duration
	// Lease is after how long the slot of a holder that is not heard of goes to another,
	// where the rival knows such a thing. 0: as long as the rival's own default.
	Lease time.Duration
	// Poll is the pause after an attempt in vain of those that nobody wakes, spread by
	// half of it either way. 0: 10 ms.
	Poll time.Duration
	// FailOpen lets callers in when the server cannot be asked, as Frappe does.
	FailOpen bool
}
