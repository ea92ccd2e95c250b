package forebaytest

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

// releaseChecks are about how slots come back.
var releaseChecks = []check{
	{"SL-01 an aborted answer gives its slot back", checkAbort},
	{"SL-02 an abort ends the connection and adds nothing", checkAbortOnTheWire},
	{"SL-15 a panic gives its slot back", checkPanic},
	{"SL-10 a flush reaches the client", checkFlush},
}

// aborts answers /abort with one byte of the thousand that it announces, and
// everything else with a 200.
func aborts(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/abort" {
		return
	}
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, "x")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// checkAbort breaks answers off, one more than there are slots.
func checkAbort(t testing.TB, open Opener) {
	const limit = 5
	r := newRig(t, open, forebay.Config{MaxInFlight: limit},
		&Backend{Work: 1 * ms, Answer: http.HandlerFunc(aborts)})
	for range limit + 1 {
		x := r.send("/abort")
		r.pass(1 * ms)
		if !x.over() || x.status != http.StatusOK || !errors.Is(x.err, io.ErrUnexpectedEOF) {
			r.Errorf("an aborted answer ended as %q, want a 200 that breaks off", x.outcome())
		}
	}
	r.finish()
}

// checkAbortOnTheWire reads a broken answer byte by byte: what the handler sent,
// then the end of the connection, and no word of it in the log.
func checkAbortOnTheWire(t testing.TB, open Opener) {
	r := newRig(t, open, forebay.Config{MaxInFlight: 5},
		&Backend{Work: 1 * ms, Answer: http.HandlerFunc(aborts)})
	w := r.wire()
	resp := w.ask(http.MethodGet, "/abort")
	body, err := io.ReadAll(resp.Body)
	if string(body) != "x" || !errors.Is(err, io.ErrUnexpectedEOF) {
		r.Errorf("the body is %q (%v), want one byte and an unexpected end", body, err)
	}
	if rest, err := io.ReadAll(w.from); len(rest) > 0 || err != nil {
		r.Errorf("after the abort came %q (%v), want the end of the connection", rest, err)
	}
	synctest.Wait()
	if log := r.ErrorLog(); log != "" {
		r.Errorf("the server logged %q, want nothing: an abort is no crash", log)
	}
	r.finish()
}

// checkPanic lets handlers panic, one more than there are slots. The client gets
// no answer, or that of a server that survived it.
func checkPanic(t testing.TB, open Opener) {
	const limit = 3
	r := newRig(t, open, forebay.Config{MaxInFlight: limit}, &Backend{
		Work: 1 * ms,
		Answer: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic("the handler of this test panics")
			}
		}),
	})
	for range limit + 1 {
		x := r.send("/panic")
		r.pass(1 * ms)
		if !x.over() || x.status != 0 && x.status < http.StatusInternalServerError || x.refusal().Reason != "" {
			r.Errorf("a request whose handler panics ended as %q, want no answer or an error", x.outcome())
		}
	}
	r.finish()
}

// checkFlush has an answer come in two halves, the second only when the first has
// been read.
func checkFlush(t testing.TB, open Opener) {
	read := make(chan struct{})
	r := newRig(t, open, forebay.Config{MaxInFlight: 1}, &Backend{
		Work: 1 * ms,
		Answer: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/halves" {
				return
			}
			_, _ = io.WriteString(w, "first,")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-read:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "second")
		}),
	})
	w := r.wire()
	resp := w.ask(http.MethodGet, "/halves")
	first := make([]byte, len("first,"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || r.watch.elapsed() != 1*ms {
		r.Errorf("the first half is %q (%v) at %v, want it at 1ms, when it was flushed", first, err, r.watch.elapsed())
	}
	close(read)
	if rest, err := io.ReadAll(resp.Body); string(rest) != "second" || err != nil {
		r.Errorf("the second half is %q (%v), want %q", rest, err, "second")
	}
	r.finish()
}

// wire is a connection on which a check speaks for itself.
type wire struct {
	rig  *rig
	to   io.Writer
	from *bufio.Reader
}

// wire dials one. It ends by itself after a time that no answer here takes.
func (r *rig) wire() *wire {
	r.Helper()
	conn := r.Dial()
	end := time.AfterFunc(longest, func() { _ = conn.Close() })
	r.Cleanup(func() { end.Stop() })
	return &wire{rig: r, to: conn, from: bufio.NewReader(conn)}
}

// ask sends a request and returns the answer, of which the body is still to be
// read.
func (w *wire) ask(method, path string) *http.Response {
	r := w.rig
	r.Helper()
	x := &exchange{path: path, done: make(chan struct{})}
	close(x.done)
	r.note(x)
	if _, err := io.WriteString(w.to, method+" "+path+" HTTP/1.1\r\nHost: gate.test\r\n\r\n"); err != nil {
		r.Fatalf("%s %s: writing it: %v", method, path, err)
	}
	resp, err := http.ReadResponse(w.from, &http.Request{Method: method})
	if err != nil {
		r.Fatalf("%s %s: reading the answer: %v", method, path, err)
	}
	// The reason may be in a body that is not read, so this exchange may be in any
	// counter.
	x.status = resp.StatusCode
	x.left.Store(x.status != http.StatusOK)
	return resp
}
