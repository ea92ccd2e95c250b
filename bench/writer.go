package main

import (
	"net/http"
	"net/http/httptest"
)

// discard is a response writer that keeps nothing but the status, so that a
// handler is measured and not a recorder.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func newDiscard() *discard { return &discard{header: http.Header{}, status: http.StatusOK} }

// Header returns the map of headers.
func (d *discard) Header() http.Header { return d.header }

// WriteHeader keeps the status.
func (d *discard) WriteHeader(status int) { d.status = status }

// Write counts what would have been sent.
func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return len(p), nil
}

// reset makes it as good as new. The map keeps its room, so that what a handler
// allocates is its own.
func (d *discard) reset() {
	clear(d.header)
	d.status, d.bytes = http.StatusOK, 0
}

func newRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/reports/7", nil)
	r.Pattern = "/reports/{id}"
	return r
}

// nothing is the handler behind the gates where the gate is what is measured.
type nothing struct{}

// ServeHTTP answers nothing.
func (nothing) ServeHTTP(http.ResponseWriter, *http.Request) {}

// take wraps a handler that keeps its slot, and sends one request into it that
// never comes back: whatever comes next finds the gate full. Its goroutine stays
// until the process ends, which for a measuring program is soon.
func take(wrap func(http.Handler) http.Handler) http.Handler {
	inside, never := make(chan struct{}), make(chan struct{})
	h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inside)
		<-never
	}))
	go h.ServeHTTP(newDiscard(), newRequest())
	<-inside
	return h
}
