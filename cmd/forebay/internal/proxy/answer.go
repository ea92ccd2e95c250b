package proxy

import (
	"bufio"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// answer is the client's writer, watched.
type answer struct {
	http.ResponseWriter
	exchange *exchange
	status   int // of the final answer; 0: none was begun
	bytes    int64
	err      error         // why it could not be written
	blocked  *atomic.Int64 // counts those that wait for their clients; nil: nobody does
}

// Unwrap leads http.ResponseController to the abilities of the writer inside.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader begins the answer, or sends a 1xx before it. A client that asks whether to
// send its body is told to by net/http, as soon as the upstream wants the body and it is
// read; the upstream's own word would be a second one.
func (a *answer) WriteHeader(status int) {
	if status == http.StatusContinue {
		return
	}
	if status >= 200 && a.status == 0 {
		a.status = status
		a.exchange.begins()
		h := a.Header()
		if h["Content-Type"] == nil {
			h["Content-Type"] = nil // else net/http guesses one
		}
		if a.exchange.unfinished() {
			// Else net/http takes in the rest of the body by itself before it sends this:
			// the upstream would never get it, and a client that waits for the answer
			// would wait for ever. Nor is what follows taken for the next request.
			h["Connection"] = []string{"close"}
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes a piece of the body.
func (a *answer) Write(p []byte) (int, error) {
	a.hurry()
	n, err := a.write(p)
	a.takeTime()
	a.bytes += int64(n)
	if err != nil {
		a.err = err
	}
	return n, err
}

func (a *answer) write(p []byte) (int, error) {
	if a.blocked != nil {
		a.blocked.Add(1)
		defer a.blocked.Add(-1)
	}
	return a.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (a *answer) FlushError() error {
	a.hurry()
	defer a.takeTime()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// hurry bounds how long a client of HTTP/2 may take in nothing: of its stream alone,
// since its connection can be in order. That of HTTP/1 is bounded by who writes to it.
func (a *answer) hurry() {
	if t := a.exchange.handler.config.WriteTimeout; t > 0 && a.exchange.request.ProtoMajor == 2 {
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(clock().Add(t))
	}
}

// takeTime takes the bound back: it would end the stream also while there is nothing to
// write.
func (a *answer) takeTime() {
	if a.exchange.handler.config.WriteTimeout > 0 && a.exchange.request.ProtoMajor == 2 {
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// Hijack takes the connection over for an upgrade.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	a.status = http.StatusSwitchingProtocols
	return a.exchange.tunnel.open(conn, rw.Reader), rw, nil
}
