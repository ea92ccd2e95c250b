package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// crowd counts requests from the first gate to the end of the answer, connections
// that were taken over included, which net/http does not count when it shuts down.
// Make one with newCrowd.
type crowd struct {
	n    *atomic.Int64
	left chan struct{} // has one when nobody was there for an instant
}

func newCrowd() crowd { return crowd{new(atomic.Int64), make(chan struct{}, 1)} }

func (c crowd) enter() { c.n.Add(1) }

func (c crowd) leave() {
	if c.n.Add(-1) == 0 {
		select {
		case c.left <- struct{}{}:
		default: // who waits is told already
		}
	}
}

func (c crowd) size() int { return int(c.n.Load()) }

// none waits until nobody is there, for one caller at a time.
func (c crowd) none(ctx context.Context) error {
	for c.n.Load() > 0 {
		select {
		case <-c.left: // maybe of an earlier instant, so look again
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fresh are the connections on which no request has come yet: browsers and balancers
// open some in advance. net/http waits five seconds for each before it shuts down,
// and for longer than a short drain_timeout; they have nothing to lose and are closed
// as idle ones are.
type fresh struct {
	conns   sync.Map // net.Conn to nothing
	closing atomic.Bool
}

// note is told of every change of a connection's state.
func (f *fresh) note(c net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		return // it was active before
	}
	if state != http.StateNew {
		f.conns.Delete(c)
		return
	}
	f.conns.Store(c, nil)
	if f.closing.Load() { // close may have missed it
		_ = c.Close()
	}
}

// close ends them, and those that were accepted a moment ago.
func (f *fresh) close() {
	f.closing.Store(true)
	f.conns.Range(func(c, _ any) bool {
		_ = c.(net.Conn).Close() // it has nothing to lose
		return true
	})
}
