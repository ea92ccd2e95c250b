package forebaytest

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Backend is an http.Handler that stands for the work behind a gate. Each
// request runs until the test lets it go, then it is answered. The work goes on
// when the caller leaves, as a database's would; only the end of the [Server]
// that the request came through ends it.
//
// The zero value is ready. Work and Answer are set before the first request;
// everything else is safe for concurrent use.
type Backend struct {
	// Work ends a request by itself when it has run for so long. 0: only the test
	// lets it go.
	Work time.Duration
	// Answer answers a request that was let go, and still runs while it does; it
	// may panic. Nil: a 200 with the body "ok".
	Answer http.Handler

	mu       sync.Mutex // guards what follows
	open     bool
	held     []chan struct{} // of those not let go, the oldest first
	inFlight int
	peak     int
	ran      []string
	departed []string
}

// ServeHTTP runs one request.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	letGo := b.enter(r)
	defer b.leave()
	b.wait(r, letGo)
	if b.Answer != nil {
		b.Answer.ServeHTTP(w, r)
		return
	}
	_, _ = io.WriteString(w, "ok") // a client that went meanwhile reads nothing
}

func (b *Backend) enter(r *http.Request) chan struct{} {
	letGo := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight++
	b.peak = max(b.peak, b.inFlight)
	b.ran = append(b.ran, r.RequestURI)
	if r.Context().Err() != nil {
		b.departed = append(b.departed, r.RequestURI)
	}
	if b.open {
		close(letGo)
	} else {
		b.held = append(b.held, letGo)
	}
	return letGo
}

func (b *Backend) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
}

// wait returns when the request is let go, its work is done, or the server ends.
// Whichever comes first, afterwards nobody can let it go any more.
func (b *Backend) wait(r *http.Request, letGo chan struct{}) {
	var done <-chan time.Time
	if b.Work > 0 {
		timer := time.NewTimer(b.Work)
		defer timer.Stop()
		done = timer.C
	}
	select {
	case <-letGo:
		return
	case <-done:
	case <-closing(r.Context()):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = slices.DeleteFunc(b.held, func(c chan struct{}) bool { return c == letGo })
}

// Release lets the n requests go that have run longest, and returns how many
// those were: fewer if fewer run. They are still in flight until they have been
// answered.
func (b *Backend) Release(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, len(b.held))
	for _, letGo := range b.held[:n] {
		close(letGo)
	}
	b.held = b.held[n:]
	return n
}

// ReleaseAll lets every request go that runs now, and returns how many those
// were.
func (b *Backend) ReleaseAll() int {
	b.mu.Lock()
	n := len(b.held)
	b.mu.Unlock()
	return b.Release(n)
}

// Open lets every request go that runs now, and from then on every other as soon
// as it comes, until [Backend.Shut].
func (b *Backend) Open() {
	b.mu.Lock()
	b.open = true
	b.mu.Unlock()
	b.ReleaseAll()
}

// Shut ends what Open began: requests run again until they are let go.
func (b *Backend) Shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
}

// InFlight returns how many requests run now.
func (b *Backend) InFlight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inFlight
}

// Peak returns the most requests that ever ran at the same time.
func (b *Backend) Peak() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peak
}

// Ran returns the request URIs of all that ran, in the order in which they
// started: "/a", "/b?x=1".
func (b *Backend) Ran() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}

// Departed returns the request URIs of those that started although their caller
// had left before: work for nobody, which a gate must never let happen.
func (b *Backend) Departed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.departed)
}
