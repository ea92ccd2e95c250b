package redisstore

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatch owes answers in a bubble, where a silence is as long as it is said to be.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		w := watch(near)
		go func() {
			b := make([]byte, 1)
			for {
				if _, err := far.Read(b); err != nil {
					return
				}
				if b[0] == '?' {
					_, _ = far.Write(b)
				}
			}
		}()
		ask := func() {
			if _, err := w.Write([]byte("?")); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * silence) // nothing is owed
		ask()
		time.Sleep(silence / 2)
		ask()
		time.Sleep(silence / 4) // the timer of the first one runs, and stops
		if _, err := w.Write([]byte(".")); err != nil {
			t.Fatal(err)
		}
		owed := time.Now()
		if _, err := w.Read(make([]byte, 1)); err == nil {
			t.Error("something was read of a peer that says nothing")
		}
		if took := time.Since(owed); took < silence || took > silence+silence/looks {
			t.Errorf("given up after %v, want %v and at most a look more", took, silence)
		}
	})
}

// TestWatchEnds checks that a connection that was closed leaves no timer behind: the
// bubble would not end.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		w := watch(near)
		go func() { _, _ = far.Read(make([]byte, 1)) }()
		if _, err := w.Write([]byte(".")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = far.Close()
	})
}
