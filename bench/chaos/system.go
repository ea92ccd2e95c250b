//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/forebay/bench/rivals"
)

// system is one process's side of what limits: forebay, a rival, or nothing.
type system interface {
	// acquire returns a slot, and done; or why there is none.
	acquire(ctx context.Context, cost int) (grip, outcome)
	setLimit(n int)
	// close gives everything back, as a program does that ends in good order.
	close() error
}

// grip is a slot that is held.
type grip struct {
	release func()
	lost    <-chan struct{} // closed when the lease is lost; nil: nobody says so
	fences  []*fence
}

// fence is a numbered slot with its fence.
type fence struct {
	number int
	fence  uint64
	seen   bool // the resource has accepted it before
}

// The systems that are no rivals.
const (
	ourselves = "forebay"
	noGate    = "no gate" // for the harness's own sake: everything it does is a violation
)

func openSystem(a *assignment) (system, error) {
	switch a.System {
	case ourselves:
		return openForebay(a)
	case noGate:
		return nothing{}, nil
	}
	if r, ok := rivals.Find(a.System); ok {
		return openRival(r, a)
	}
	return nil, fmt.Errorf("there is no system %q", a.System)
}

// rival is one of the rivals.
type rival struct {
	rivals.Semaphore
}

func openRival(r rivals.Rival, a *assignment) (system, error) {
	s, err := r.Open(rivals.Config{
		Addr: a.Redis.Addrs[0], Name: "chaos", Limit: a.Limit, MaxWait: a.Patience, Callers: a.Callers, Lease: a.TTL,
	})
	if err != nil {
		return nil, err
	}
	return rival{s}, nil
}

func (r rival) acquire(ctx context.Context, cost int) (grip, outcome) {
	release, err := r.Acquire(ctx)
	switch {
	case err == nil:
		return grip{release: release}, done
	case errors.Is(err, rivals.ErrFull), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return grip{}, full
	}
	return grip{}, failed
}

// setLimit does nothing: none of them can.
func (r rival) setLimit(int) {}

func (r rival) close() error { return r.Close() }

// nothing lets everybody in.
type nothing struct{}

func (nothing) acquire(context.Context, int) (grip, outcome) {
	time.Sleep(time.Millisecond)
	return grip{release: func() {}}, done
}

func (nothing) setLimit(int) {}

func (nothing) close() error { return nil }
