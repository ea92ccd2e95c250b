package forebay

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// watchedWriter returns a writer that a stay sees everything through. It can do what the
// one inside can, and claims nothing else: handlers ask by type, and ResponseController
// goes on through Unwrap.
func watchedWriter(s *stay) http.ResponseWriter {
	_, flushes := s.w.(http.Flusher)
	_, readsFrom := s.w.(io.ReaderFrom)
	_, pushes := s.w.(http.Pusher)
	hijacks := canHijack(s.w)
	switch {
	case flushes && hijacks && readsFrom: // net/http's of HTTP/1
		return flushHijackReadWriter{flushWriter{plainWriter{s}}}
	case flushes && hijacks:
		return flushHijackWriter{flushWriter{plainWriter{s}}}
	case flushes && pushes: // net/http's of HTTP/2
		return flushPushWriter{flushWriter{plainWriter{s}}}
	case flushes:
		return flushWriter{plainWriter{s}}
	case hijacks:
		return hijackWriter{plainWriter{s}}
	}
	return plainWriter{s}
}

// canHijack reports whether the connection of w can be taken over, by w itself or by one
// that it wraps.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

type plainWriter struct{ *stay }

// Header returns the headers of the answer.
func (w plainWriter) Header() http.Header { return w.w.Header() }

// Unwrap leads http.ResponseController to the abilities of the writer inside.
func (w plainWriter) Unwrap() http.ResponseWriter { return w.w }

// WriteHeader begins the answer, or sends a 1xx before it.
func (w plainWriter) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols || w.begins(status) == nil {
		w.w.WriteHeader(status)
	}
}

// Write writes a piece of the answer.
func (w plainWriter) Write(p []byte) (int, error) {
	if err := w.begins(http.StatusOK); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// WriteString writes a piece of the answer.
func (w plainWriter) WriteString(p string) (int, error) {
	if err := w.begins(http.StatusOK); err != nil {
		return 0, err
	}
	return io.WriteString(w.w, p)
}

type flushWriter struct{ plainWriter }

// Flush sends what was written.
func (w flushWriter) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w flushWriter) FlushError() error {
	if err := w.begins(http.StatusOK); err != nil {
		return err
	}
	return http.NewResponseController(w.w).Flush()
}

type hijackWriter struct{ plainWriter }

// Hijack takes the connection over.
func (w hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

type flushHijackWriter struct{ flushWriter }

// Hijack takes the connection over.
func (w flushHijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

type flushHijackReadWriter struct{ flushWriter }

// Hijack takes the connection over.
func (w flushHijackReadWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

// ReadFrom copies an answer, by the kernel where it can.
func (w flushHijackReadWriter) ReadFrom(from io.Reader) (int64, error) {
	if err := w.begins(http.StatusOK); err != nil {
		return 0, err
	}
	return w.w.(io.ReaderFrom).ReadFrom(from)
}

type flushPushWriter struct{ flushWriter }

// Push begins a push.
func (w flushPushWriter) Push(target string, opts *http.PushOptions) error {
	return w.w.(http.Pusher).Push(target, opts)
}
