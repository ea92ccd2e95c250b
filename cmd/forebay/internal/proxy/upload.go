package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
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

	mu    sync.Mutex // guards what follows, and is not held while reading
	used  bool
	ended bool // read to its end
	over  bool
	err   error // why it broke off
}

// Read reads on, until the handler is over: reading later is not allowed.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	over := u.over
	u.used = true
	u.mu.Unlock()
	if over {
		return 0, errShut
	}
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

// shut ends reading. A Read that waits for the client right now is harmless, and
// ended by the server.
func (u *upload) shut() {
	u.mu.Lock()
	u.over = true
	u.mu.Unlock()
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
