package forebay

import (
	"bufio"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// lookTime is how long an answer waits for the end of a small body, which keeps the
	// connection: the packets of one request come closer together than that.
	lookTime = 5 * time.Millisecond
	// lookBytes is what is looked at at most: as much as net/http takes in by itself.
	lookBytes = 256 << 10
	// discardChunk is read at a time.
	discardChunk = 32 << 10
	// discardStep is counted at a time, of a body whose length is not known.
	discardStep = 1 << 20
)

// Answer writes a whole answer in place of a handler that does not run, and sees to it
// that it arrives whatever the request's body does: it is on its way within
// milliseconds, though the client is still sending or never ends, and what the client
// still sends is taken in within the intake's bounds, so that a client which writes
// everything before it reads gets that far. A body that has come, or comes within a few
// milliseconds, leaves the connection for the next request. Any other ends it, with
// Connection: close in the answer; the handler then returns when the client has read the
// answer and hung up, or has sent everything, or the intake's bounds are reached, or the
// server is stopped by [http.Server.Shutdown], which never waits for this. Over HTTP/2
// the same holds for a stream of which the length is known: some clients lose the answer
// when a reset follows it at once. Refusals are written by it.
//
// Headers are those that w has; Content-Length is set. Nothing of the body may be
// read by the caller afterwards. To a HEAD no body is sent.
func (in *Intake) Answer(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	if r.Method == http.MethodHead {
		body = nil
	}
	f := in.restOf(w, r)
	if f == nil {
		send(w, status, body)
		return
	}
	defer f.end()
	if f.comes() {
		send(w, status, body)
		return
	}
	h := w.Header()
	if r.ProtoMajor == 1 {
		h["Connection"] = headerClose // also keeps net/http from reading on before it writes
	}
	if r.Method != http.MethodHead {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	send(w, status, body)
	if http.NewResponseController(w).Flush() == nil {
		f.discard()
	}
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.WriteHeader(status)
	if len(body) > 0 {
		_, _ = w.Write(body) // a client that went meanwhile has had its decision
	}
}

// rest is what may still come of a request's body when its answer is written.
type rest struct {
	intake  *Intake
	w       http.ResponseWriter
	r       *http.Request
	body    io.Reader
	length  int64 // of the whole body; -1: not known
	own     bool  // the body is net/http's, which may be read beside the answer
	asks    bool  // the client waits to be told to go on, which it is not
	server  *serverStop
	promise Held // of what may be taken in
	buffer  Held

	taken int64
	err   error         // why reading ended; io.EOF: the body is whole
	done  chan struct{} // closed when reading beside the answer has ended; nil: nothing does

	mu   sync.Mutex // guards over, and the order of deadlines
	over bool       // the server stops
}

// restOf returns what has to be seen to; nil: nothing, because there is no body that
// would be in the way, or nothing can be done about it.
func (in *Intake) restOf(w http.ResponseWriter, r *http.Request) *rest {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ProtoMajor != 1 && (r.ContentLength < 0 || expects(r)) {
		return nil // a stream that may wait for the end of its answer, or for a 100
	}
	srv := inServer(r)
	if srv == nil {
		return nil
	}
	f := &rest{
		intake: in, w: w, r: r, body: r.Body, length: r.ContentLength,
		own: reflect.TypeOf(r.Body) == bodyOfServer, asks: expects(r),
		promise: in.promise.Held(), buffer: in.config.Bytes.Held(),
	}
	in.discarding.Add(1)
	f.server = in.servers.enter(srv, f)
	if !f.readUntil(clock().Add(in.config.DiscardTime)) {
		// Nothing can be bounded in time, so nothing is read. The answer goes out at least,
		// and what follows of the body is not taken for a request.
		if r.ProtoMajor == 1 {
			w.Header()["Connection"] = headerClose
		}
		f.end()
		return nil
	}
	return f
}

// bodyOfServer is the type of the bodies that net/http's server hands out. Those may be
// read by another goroutine while the answer is written; what a middleware made of one
// may touch the answer itself, as http.MaxBytesReader does.
var bodyOfServer = func() reflect.Type {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")))
	if err != nil {
		panic("forebay: net/http cannot read a request: " + err.Error())
	}
	return reflect.TypeOf(r.Body)
}()

// expects reports whether the client waits for a 100 before it sends its body.
func expects(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// comes reports whether the whole body is there, or comes within a moment.
func (f *rest) comes() bool {
	if f.asks || f.length > lookBytes || f.r.ProtoMajor != 1 {
		return false
	}
	if !f.own {
		return f.length > 0 && f.look()
	}
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.read()
	}()
	look := time.NewTimer(f.intake.look)
	defer look.Stop()
	select {
	case <-f.done:
		return f.err == io.EOF
	case <-look.C:
		return false
	}
}

// look is comes for a body that somebody has wrapped, which must not be read while the
// answer is written: the end of the moment breaks the reading off. Wrappers that
// remember that are read no further.
func (f *rest) look() bool {
	f.readUntil(clock().Add(f.intake.look))
	f.read()
	if f.err == io.EOF {
		return true
	}
	f.err = nil
	f.readUntil(clock().Add(f.intake.config.DiscardTime))
	return false
}

// discard takes in what comes until there is no more, or a bound is reached.
func (f *rest) discard() {
	if f.done == nil {
		f.read()
	} else {
		<-f.done
	}
	if f.err != io.EOF {
		f.intake.cut.Add(1)
	}
}

// read throws away what comes. It ends with an error, io.EOF at the end of the body, or
// without one when a bound is reached.
func (f *rest) read() {
	most := max(f.intake.config.Discard, lookBytes)
	step := min(most, discardStep)
	if f.length > 0 {
		step = min(most, f.length)
	}
	if f.buffer.Size() == 0 && !f.buffer.Grow(discardChunk) {
		f.readUntil(longAgo)
		return
	}
	p := discardBuffers.Get().(*[discardChunk]byte)
	defer discardBuffers.Put(p)
	for f.taken < most {
		if f.taken >= f.promise.Size() && !f.promise.Grow(step) {
			f.readUntil(longAgo)
			return
		}
		n, err := f.body.Read(p[:min(discardChunk, most-f.taken)])
		f.taken += int64(n)
		f.intake.discarded.Add(int64(n))
		if err != nil {
			f.err = err
			return
		}
	}
}

// discardBuffers hold nothing that anybody reads.
var discardBuffers = sync.Pool{New: func() any { return new([discardChunk]byte) }}

// longAgo as a deadline ends what waits.
var longAgo = time.Unix(1, 0)

// readUntil sets until when the connection is read, unless the server stops; false if
// that cannot be set.
func (f *rest) readUntil(t time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		t = longAgo
	}
	return readUntil(f.w, f.r, t) == nil
}

// stop ends the reading because the server stops.
func (f *rest) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	_ = readUntil(f.w, f.r, longAgo)
}

// end gives everything back. If the body is whole the connection is as it was.
func (f *rest) end() {
	if f.done != nil {
		select {
		case <-f.done:
		default: // the answer could not be sent
			f.readUntil(longAgo)
			<-f.done
		}
	}
	if f.err == io.EOF {
		f.readUntil(time.Time{})
	}
	f.server.leave(f)
	f.promise.Release()
	f.buffer.Release()
	f.intake.discarding.Add(-1)
}
