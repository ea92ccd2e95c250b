package forebaytest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// gateName is the name of the gate under test.
const gateName = "conformance"

// rig is one system under test behind a server, with a backend that the check
// controls. It lives in a bubble.
type rig struct {
	testing.TB
	*Server
	sys     *System
	backend *Backend
	limit   int
	watch   stopwatch
	sent    atomic.Uint64

	mu        sync.Mutex // guards exchanges
	exchanges []*exchange
}

// newRig opens a system with configuration c. backend is how the work behaves;
// nil: it runs until it is let go.
func newRig(t testing.TB, open Opener, c forebay.Config, backend *Backend) *rig {
	t.Helper()
	if backend == nil {
		backend = &Backend{}
	}
	c.Name = gateName
	sys := open(t, c, backend)
	if sys == nil || sys.Handler == nil || sys.Stats == nil {
		t.Fatalf("the opener returned a system without Handler and Stats")
	}
	r := &rig{
		TB: t, sys: sys, backend: backend, limit: c.MaxInFlight,
		Server: NewServer(t, sys.Handler), watch: startWatch(),
	}
	// Runs before the servers end, which wait for what the backend still holds.
	t.Cleanup(backend.Open)
	return r
}

// exchange is one request and what became of it. Its fields below done are set
// when done is closed.
type exchange struct {
	path string
	left atomic.Bool // the caller went before there was an answer
	stop context.CancelFunc
	done chan struct{}

	at     time.Duration // when it ended, since the start of the check
	status int           // 0: no answer
	header http.Header
	body   string
	closes bool  // the server announced that it closes the connection
	err    error // of the exchange or of the body
}

// longest is how long any exchange may take before the check gives it up: far
// longer than every patience here, and no time at all in a bubble.
const longest = time.Minute

// start begins a request and returns while it is under way.
func (r *rig) start(client *http.Client, path string, mark ...func(*http.Request)) *exchange {
	ctx, stop := context.WithTimeout(context.Background(), longest)
	x := &exchange{path: path, stop: stop, done: make(chan struct{})}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, URL+path, nil)
	if err != nil {
		r.Fatalf("%v", err)
	}
	for _, f := range mark {
		f(req)
	}
	r.note(x)
	go func() {
		defer close(x.done)
		defer stop()
		x.do(client, req)
		x.at = r.watch.elapsed()
	}()
	return x
}

// note keeps in mind that a request is sent.
func (r *rig) note(x *exchange) {
	r.sent.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, x)
}

func (x *exchange) do(client *http.Client, req *http.Request) {
	resp, err := client.Do(req)
	if err != nil {
		x.err = err
		return
	}
	defer resp.Body.Close()
	x.status, x.header, x.closes = resp.StatusCode, resp.Header, resp.Close
	body, err := io.ReadAll(resp.Body)
	x.body, x.err = string(body), err
}

// send begins a request and returns when it runs, stands in line or has been
// answered. It must be called in a bubble.
func (r *rig) send(path string, mark ...func(*http.Request)) *exchange {
	x := r.start(r.Client(), path, mark...)
	synctest.Wait()
	return x
}

// burst begins n requests in the same instant and returns when each of them runs,
// stands in line or has been answered. It must be called in a bubble.
func (r *rig) burst(n int, path string) []*exchange {
	all := make([]*exchange, n)
	var ready, gone sync.WaitGroup
	ready.Add(1)
	for i := range all {
		gone.Go(func() {
			ready.Wait()
			all[i] = r.start(r.Client(), path)
		})
	}
	ready.Done()
	gone.Wait()
	synctest.Wait()
	return all
}

// leave makes the caller of x go away, as by closing the connection.
func (r *rig) leave(x *exchange) {
	x.left.Store(true)
	x.stop()
	synctest.Wait()
}

// release lets n requests of the backend go, and returns when what follows from
// it has happened. It must be called in a bubble.
func (r *rig) release(n int) {
	r.backend.Release(n)
	synctest.Wait()
}

// pass lets time pass in the bubble, and what happens meanwhile happen.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// over reports whether x has ended.
func (x *exchange) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// refusal is the body of a refusal.
type refusal struct {
	Error     string `json:"error"`
	Reason    string `json:"reason"`
	Gate      string `json:"gate"`
	RequestID string `json:"requestId"`
}

// refusal returns what the answer says, the zero value if it is no refusal.
func (x *exchange) refusal() (f refusal) {
	if x.status < http.StatusBadRequest || json.Unmarshal([]byte(x.body), &f) != nil {
		return refusal{}
	}
	return f
}

// expectServed fails the check unless x was answered by the backend, at the given
// time since the start.
func (r *rig) expectServed(x *exchange, at time.Duration) {
	r.Helper()
	if !x.over() {
		r.Errorf("%s: no answer after %v, want 200 at %v", x.path, r.watch.elapsed(), at)
		return
	}
	if x.status != http.StatusOK || x.err != nil || x.at != at {
		r.Errorf("%s: %s at %v, want 200 at %v", x.path, x.outcome(), x.at, at)
	}
}

// expectRefused fails the check unless x was refused for the given reason, at the
// given time since the start.
func (r *rig) expectRefused(x *exchange, why forebay.Decision, at time.Duration) {
	r.Helper()
	if !x.over() {
		r.Errorf("%s: no answer after %v, want %s at %v", x.path, r.watch.elapsed(), why, at)
		return
	}
	if x.status != why.Status() || x.err != nil || x.refusal().Reason != why.String() || x.at != at {
		r.Errorf("%s: %s at %v, want %d %s at %v", x.path, x.outcome(), x.at, why.Status(), why, at)
	}
}

// expectUndecided fails the check if x is over.
func (r *rig) expectUndecided(x *exchange) {
	r.Helper()
	if x.over() {
		r.Errorf("%s: %s at %v, want it to run or wait still", x.path, x.outcome(), x.at)
	}
}

// outcome says in a few words how x ended.
func (x *exchange) outcome() string {
	words := []string{http.StatusText(x.status)}
	if x.status == 0 {
		words[0] = "no answer"
	}
	if f := x.refusal(); f.Reason != "" {
		words = append(words, f.Reason)
	}
	if x.err != nil {
		words = append(words, "("+x.err.Error()+")")
	}
	return strings.Join(words, " ")
}
