package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

var (
	errShut = errors.New("proxy: the exchange is over")
	errRead = errors.New("proxy: the upstream ended the connection before it answered, and the body is read already")
)

// upload is a request's body on its way to the upstream. It is read by net/http's
// own goroutine, which may outlive the handler.
type upload struct {
	from    io.ReadCloser
	trailer http.Header // the client's, which net/http fills in as the body ends
	sent    http.Header // the upstream's, of the names that it is told of

	reads sync.WaitGroup // those under way

	mu    sync.Mutex // guards what follows, and is not held while reading
	used  bool
	busy  bool // somebody reads
	ended bool // read to its end
	over  bool
	err   error // why it broke off
}

// Read reads on, until the handler is over: reading later is not allowed.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	over := u.over
	u.used = true
	if !over {
		u.busy = true
		u.reads.Add(1)
	}
	u.mu.Unlock()
	if over {
		return 0, errShut
	}
	defer u.rest()
	n, err := u.from.Read(p)
	if err == io.EOF {
		for name := range u.sent {
			u.sent[name] = u.trailer[name]
		}
	}
	if err != nil {
		u.stopped(err)
	}
	return n, err
}

func (u *upload) stopped(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == io.EOF {
		u.ended = true
	} else if !errors.Is(err, http.ErrBodyReadAfterClose) {
		u.err = err
	}
}

// Close does nothing: net/http's server closes the body, and an attempt that failed
// before it read anything must not end it for the next one.
func (u *upload) Close() error { return nil }

// again is the body for another attempt, as long as nothing of it is gone.
func (u *upload) again() (io.ReadCloser, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used {
		return nil, errRead
	}
	return u, nil
}

func (u *upload) rest() {
	u.mu.Lock()
	u.busy = false
	u.mu.Unlock()
	u.reads.Done()
}

// shut ends reading. A Read that waits for the client right now is ended by until, which
// sets its deadline, and waited for: to net/http's server it must not come to the end of
// the body in the moment in which the handler returns, or the connection stands still
// until the client closes it. Nil, or where there are no deadlines: it is left alone.
// Whatever the server then reads has no deadline any more if goesOn; otherwise it ends at
// once, since the connection does.
func (u *upload) shut(goesOn bool, until func(time.Time) error) {
	u.mu.Lock()
	u.over = true
	busy := u.busy
	u.mu.Unlock()
	if !busy || until == nil || until(longAgo) != nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.reads.Wait()
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if goesOn && !u.whole() {
				_ = until(time.Time{}) // the rest is the server's
			}
			return
		case <-tick.C: // a pace may have set another meanwhile
			_ = until(longAgo)
		}
	}
}

var longAgo = time.Unix(1, 0)

// settle waits until the read that is under way has returned. net/http says that a caller
// has left before it gives back the error that made it say so, and that is a timeout of
// ours if the body was too slow. Such a read returns at once; where it does not, somebody
// else has canceled the request, and after a while it is no longer waited for.
func (u *upload) settle() {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := clock().Add(afterBroken); u.isBusy() && clock().Before(end); {
		<-tick.C
	}
}

func (u *upload) isBusy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.busy
}

// whole reports whether the body was read to its end.
func (u *upload) whole() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ended
}

func (u *upload) broken() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}
