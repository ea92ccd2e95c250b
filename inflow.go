package forebay

import (
	"io"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"
)

// askAgain is how often the socket of a caller in line is asked whether it is still
// there, if nothing else would tell.
const askAgain = 20 * time.Millisecond

// firstAhead is read ahead at first of a body whose length is not known.
const firstAhead = 4 << 10

// inbound is a request on its way through its gates, for those that make it wait.
type inbound struct {
	w    http.ResponseWriter
	r    *http.Request
	body io.ReadCloser // as it came; nil: it has not been touched
	flow *inflow       // nil: nothing has been read ahead
}

// attend begins to look after a request that has to wait: net/http notices that a client
// of HTTP/1 leaves only when it has read the whole request. So what is small is read
// ahead. It reports whether the socket has to be asked beside.
func (in *inbound) attend(intake *Intake) (ask bool) {
	r := in.r
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return false
	}
	if in.flow == nil {
		body := r.Body
		if in.body != nil {
			body = in.body
		}
		in.flow = intake.readAhead(r, body)
	}
	return connOf(r).canTell()
}

// waitEnd says what a wait in line ended by.
type waitEnd uint8

const (
	woken    waitEnd = iota // there is a verdict
	ctxEnded                // the call's context ended
	hungUp                  // the socket says that the caller has left
)

// await returns when the wait of a call is over; in is nil for one that is no request. If
// several ends come at once any may win: the machine says which verdict stands.
func (in *inbound) await(intake *Intake, verdict, gone <-chan struct{}) waitEnd {
	if in == nil && gone == nil { // a select costs more
		<-verdict
		return woken
	}
	var again <-chan time.Time // never
	if in != nil && in.attend(intake) {
		again = time.After(askAgain)
	}
	for {
		select {
		case <-verdict:
			return woken
		case <-gone:
			return ctxEnded
		case <-again:
			if in.gone() {
				return hungUp
			}
			if again = nil; !in.flow.whole() { // else gone ends when the client leaves
				again = time.After(askAgain)
			}
		}
	}
}

// gone reports whether the socket says that the caller has left.
func (in *inbound) gone() bool { return in != nil && connOf(in.r).gone() }

// admit hands what was read ahead to the handler, and reports whether somebody still
// reads.
func (in *inbound) admit() (reading bool) {
	if in.flow == nil {
		return false
	}
	if in.body == nil {
		in.body = in.r.Body
	}
	if p, ok := in.r.Body.(*paced); ok && p.ReadCloser == in.flow.body {
		p.ReadCloser = in.flow // it was read ahead without a pace, because it waited
	} else {
		in.r.Body = in.flow
	}
	return in.flow.hand()
}

// end gives back what was read ahead and not used. The request is as it was.
func (in *inbound) end() {
	if in.flow != nil {
		in.flow.drop()
	}
	if in.body != nil {
		in.r.Body = in.body
	}
}

// readAhead begins to read the body of a request that waits; nil if it does not: it is
// too large, there is no room, the client waits to be told to go on, or a middleware has
// wrapped it, which may not bear another goroutine. (Of the last two the type is
// another.)
func (in *Intake) readAhead(r *http.Request, body io.ReadCloser) *inflow {
	most := in.config.ReadAhead
	if most < 0 || r.ContentLength > most || reflect.TypeOf(body) != bodyOfServer {
		return nil
	}
	f := &inflow{body: body, most: most, held: in.config.Bytes.Held()}
	if !f.begin(r.ContentLength) {
		return nil
	}
	go f.ahead()
	return f
}

// inflow is a request's body that is read ahead, and later read by the handler. A read
// that waits for the client cannot be broken off without ending the request, so the one
// that is under way when the handler gets the body is the handler's: what it brings comes
// next, and what follows the handler reads for itself.
type inflow struct {
	body io.ReadCloser
	most int64

	mu      sync.Mutex // guards what follows, and is not held while reading
	came    sync.Cond  // something came, or reading ahead has ended
	buf     []byte     // what came
	off     int        // how much of it the handler has had
	held    Held
	reading bool // a goroutine reads ahead
	handed  bool // it is the handler's: whoever reads ahead comes to an end
	dropped bool
	err     error // how the body ended, once what came before has been had
}

// begin makes room for a body of the given length, -1 if it is not known. False: there is
// none.
func (f *inflow) begin(length int64) bool {
	if length < 0 {
		length = min(firstAhead, f.most)
	}
	if !f.held.Grow(length) {
		return false
	}
	f.came.L = &f.mu
	f.buf = make([]byte, 0, length)
	f.reading = true
	return true
}

// ahead reads until the body ends, the room does, or the handler takes over.
func (f *inflow) ahead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.err == nil && !f.handed && f.roomLocked() {
		n := len(f.buf)
		room := f.buf[n:cap(f.buf)]
		f.mu.Unlock()
		got, err := f.body.Read(room)
		f.mu.Lock()
		f.buf = f.buf[:n+got]
		f.err = err
		f.came.Broadcast()
	}
	f.reading = false
	f.came.Broadcast()
	if f.dropped {
		f.freeLocked()
	}
}

// roomLocked reports whether there is room to read into, and makes some.
func (f *inflow) roomLocked() bool {
	size := int64(cap(f.buf))
	if len(f.buf) < cap(f.buf) {
		return true
	}
	more := min(size, f.most-size)
	if more <= 0 || !f.held.Grow(more) {
		return false
	}
	f.buf = append(make([]byte, 0, size+more), f.buf...)
	return true
}

// whole reports whether the body has come to its end, of whatever kind: net/http sees
// for itself when the caller leaves.
func (f *inflow) whole() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

// hand makes the body the handler's, and reports whether somebody still reads ahead.
func (f *inflow) hand() (reading bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handed = true
	return f.reading
}

// interrupt ends the reading, by a deadline that cut sets, and returns what the handler
// has not had. The request comes to its end by it.
func (f *inflow) interrupt(cut func()) []byte {
	if f.hand() {
		cut()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.reading {
		f.came.Wait()
	}
	early := slices.Clone(f.buf[f.off:])
	f.dropped = true
	f.freeLocked()
	return early
}

// drop gives back what is held, or has whoever still reads do it.
func (f *inflow) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropped = true
	if !f.reading {
		f.freeLocked()
	}
}

func (f *inflow) freeLocked() {
	f.buf, f.off = nil, 0
	f.held.Release()
}

// Read reads on where reading ahead has stopped.
func (f *inflow) Read(p []byte) (int, error) {
	f.mu.Lock()
	for f.off == len(f.buf) && f.reading && !f.dropped {
		f.came.Wait()
	}
	if f.dropped {
		f.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	}
	if f.off < len(f.buf) || len(p) == 0 {
		n := copy(p, f.buf[f.off:])
		f.off += n
		if f.off == len(f.buf) && !f.reading {
			f.freeLocked()
		}
		f.mu.Unlock()
		return n, nil
	}
	f.mu.Unlock()
	return f.body.Read(p) // which ends as it has ended before
}

// Close gives back what is held.
func (f *inflow) Close() error {
	f.drop()
	return f.body.Close()
}
