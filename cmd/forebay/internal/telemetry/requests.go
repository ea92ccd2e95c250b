package telemetry

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/forebay"
)

// requestBuckets are those that the OpenTelemetry conventions advise for
// http.server.request.duration.
var requestBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// Requests measures what clients see: the time from a request's arrival to the end
// of its answer, waiting and refusals included.
type Requests struct {
	// Answered is told of each request that Wrap measured, with the header of its answer
	// and the status that was sent, 499 if the caller left before. Nil: nobody is. Set it
	// before the first request.
	Answered func(r *http.Request, answer http.Header, status int)

	took *prometheus.HistogramVec
}

func newRequests() *Requests {
	return &Requests{took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "http_server_request_duration_seconds",
		Help:    "Time from the arrival of a request to the end of its answer, by what was answered; 499: the caller left. An upgraded connection counts until the switch.",
		Buckets: requestBuckets,
	}, []string{"http_request_method", "http_response_status_code", "http_route"})}
}

// Wrap measures the requests that go to next. The route of each is asked for as it
// arrives and must be a configured pattern, never the path; empty if there is none.
func (q *Requests) Wrap(next http.Handler, route func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, pattern := clock(), route(r)
		rec := &statusRecorder{ResponseWriter: w}
		finished := false
		defer func() { // nothing is recovered, so a panic's stack stays whole
			at := rec.switched
			if at.IsZero() {
				at = clock()
			}
			status := rec.final(r, finished)
			q.Observe(r.Method, pattern, status, at.Sub(began))
			if q.Answered != nil {
				q.Answered(r, w.Header(), status)
			}
		}()
		next.ServeHTTP(rec, r)
		finished = true
	})
}

// Observe counts one request that was measured elsewhere.
func (q *Requests) Observe(method, route string, status int, took time.Duration) {
	q.took.WithLabelValues(knownMethod(method), knownStatus(status), route).Observe(took.Seconds())
}

// knownMethod keeps the label bounded: a client can send any word as a method.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "_OTHER"
}

// knownStatus keeps the label bounded: an upstream can send any three digits.
func knownStatus(status int) string {
	if status < 100 || status > 599 {
		return "_OTHER"
	}
	return statuses[status-100]
}

var statuses = func() (texts [500]string) {
	for i := range texts {
		texts[i] = strconv.Itoa(100 + i)
	}
	return texts
}()

// statusRecorder notes which status was sent. It passes everything else on: a
// [http.ResponseController] reaches the server's writer through it, and flushing and
// taking over the connection work for those who ask the writer itself.
type statusRecorder struct {
	http.ResponseWriter
	status   int       // 0: nothing was sent yet
	switched time.Time // when the connection was taken over
}

// final returns the status to count, once the handler has returned or panicked.
func (rec *statusRecorder) final(r *http.Request, finished bool) int {
	switch {
	case rec.status != 0:
		return rec.status
	case r.Context().Err() != nil:
		return forebay.StatusClientClosedRequest
	case !finished:
		return http.StatusInternalServerError
	}
	return http.StatusOK // net/http sends it for a handler that wrote nothing
}

// WriteHeader notes the status, unless it only announces another.
func (rec *statusRecorder) WriteHeader(status int) {
	if rec.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		rec.status = status
	}
	rec.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (rec *statusRecorder) Write(p []byte) (int, error) {
	rec.begin()
	return rec.ResponseWriter.Write(p)
}

// ReadFrom writes an answer that the kernel can move by itself.
func (rec *statusRecorder) ReadFrom(from io.Reader) (int64, error) {
	rec.begin()
	return io.Copy(rec.ResponseWriter, from)
}

func (rec *statusRecorder) begin() {
	if rec.status == 0 {
		rec.status = http.StatusOK
	}
}

// Flush sends what is buffered, if the server's writer can.
func (rec *statusRecorder) Flush() { _ = rec.FlushError() }

// FlushError is Flush that says what went wrong.
func (rec *statusRecorder) FlushError() error {
	err := http.NewResponseController(rec.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		rec.begin()
	}
	return err
}

// Hijack takes the connection over. The answer of an upgrade is then written past
// the writer, so its status is known from here only.
func (rec *statusRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(rec.ResponseWriter).Hijack()
	if err == nil && rec.status == 0 {
		rec.status, rec.switched = http.StatusSwitchingProtocols, clock()
	}
	return conn, rw, err
}

// Unwrap returns the server's writer, for [http.ResponseController].
func (rec *statusRecorder) Unwrap() http.ResponseWriter { return rec.ResponseWriter }
