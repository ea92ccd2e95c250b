package forebay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Refusal says how a gate's refusals look in HTTP. The zero value is the safe
// default that each comment names.
type Refusal struct {
	// Status replaces 503 for the refusals that waiting cures, 400 to 599. 0 means
	// 503: the server is full. 429 blames the caller, and suits a gate of one caller's own.
	// Calls that can never fit are 413 whatever it says.
	Status int
	// RetryAfter bounds the Retry-After of the refusals that waiting cures.
	RetryAfter RetryAfter
	// Problem sends application/problem+json (RFC 9457) to everybody, not only to
	// those whose Accept names it.
	Problem bool
	// HideGate leaves the gate's name out of the answer, HideReason the decision.
	HideGate, HideReason bool
	// Body is what everybody gets in place of the built-in bodies, of which Accept
	// chooses one: JSON, problem details for who names them, a page for browsers.
	// {status}, {title}, {error}, {reason}, {gate}, {request_id} and {retry_after} (in
	// seconds, 0 where waiting does not help) are filled in; what they hold needs no
	// escape in JSON and HTML. At most 64 KiB. Calls of gRPC have no body.
	Body string
	// ContentType is that of Body. Empty means application/json; whatever says that it
	// is JSON has to be valid with everything filled in.
	ContentType string
	// Headers are sent with every refusal. Those that a refusal sets itself cannot be
	// among them.
	Headers http.Header
	// CORS lets web pages of other origins read refusals.
	CORS CORS
}

func (f *Refusal) validate() []error {
	errs := f.RetryAfter.validate()
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		errs = append(errs, fmt.Errorf("forebay: Refusal.Status is %d; it must be 0 (meaning 503) or 400 to 599", f.Status))
	}
	return slices.Concat(errs, f.validateBody(), f.validateHeaders(), f.CORS.validate())
}

// ownHeaders are set by every refusal, or by net/http.
var ownHeaders = []string{
	"Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Proxy-Status", "Retry-After",
	"Trailer", "Transfer-Encoding", requestIDHeader,
}

func (f *Refusal) validateHeaders() (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		wrong := func(what string) { errs = append(errs, fmt.Errorf("forebay: Refusal.Headers has %q; %s", name, what)) }
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isFieldName(name):
			wrong("it must be the name of a header")
		case slices.Contains(ownHeaders, canonical):
			wrong("a refusal sets that itself")
		case canonical != name:
			wrong("write " + canonical)
		case len(f.Headers[name]) == 0:
			wrong("it has no value")
		case slices.ContainsFunc(f.Headers[name], func(v string) bool { return !isFieldValue(v) }):
			wrong("its value has a control character or begins or ends with a space")
		}
	}
	return errs
}

// isFieldName reports whether s can be the name of a header.
func isFieldName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// isFieldValue reports whether s can be the value of a header.
func isFieldValue(s string) bool {
	return s == strings.Trim(s, " \t") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// headerLine is one header as it is put into a map.
type headerLine struct {
	name   string
	values []string
}

// lines returns a gate's own headers, copied so that nobody can append to them in
// place.
func (f *Refusal) lines() (lines []headerLine) {
	for name, values := range f.Headers {
		lines = append(lines, headerLine{name, slices.Clip(slices.Clone(values))})
	}
	return lines
}

// Refuse answers a request that [Gate.Acquire] or a [Chain] turned away: the
// status, a Retry-After where waiting helps, and a small body that names the gate and
// the decision in the form that the client reads best. It arrives whatever the
// request's body does; see [Intake.Answer]. When the error says that the caller left,
// or the request's context does, nothing is written and the connection is ended, and
// any other error is answered with a bare 500 (nothing of it is told to the client).
//
// Call it before anything else was written to w.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	rejected, ok := err.(*RejectedError)
	if !ok && !errors.As(err, &rejected) || rejected.gate == nil {
		if errors.Is(err, context.Canceled) || errors.Is(r.Context().Err(), context.Canceled) {
			silence(w, r)
			return
		}
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	refuse(w, r, rejected, &Call{})
}

// silence makes sure that not even net/http's own empty 200 goes to a caller that
// left, and that the rest of a body is not waited for. Under a writer that hides
// net/http's, only the panic that net/http reserves for this is left. Outside a
// server, as in a test with a recorder, nobody writes anything by itself.
func silence(w http.ResponseWriter, r *http.Request) {
	over := time.Unix(1, 0)
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(over)
	if c.SetWriteDeadline(over) != nil && r.Context().Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler)
	}
}

// Header values that every refusal shares; see retryHeaders.
var (
	headerJSON    = []string{"application/json"}
	headerNoStore = []string{"no-store"}
	headerClose   = []string{"close"}
)

// refuse writes the refusal of a call, which has an id if somebody has seen one so far.
func refuse(w http.ResponseWriter, r *http.Request, e *RejectedError, call *Call) {
	g, d := e.gate, e.decision
	s := g.settings.Load()
	if s.plain && d != RejectedCaller { // else it was noted as the gate decided
		g.noticed.refusedAt(clock())
	}
	id := call.RequestID
	if id == "" {
		id = requestID(w, r)
	}
	h := w.Header()
	for _, of := range [...]string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Trailer"} {
		delete(h, of) // of the answer that somebody was about to give
	}
	for _, line := range s.refusalLines {
		h[line.name] = line.values
	}
	h["Cache-Control"] = headerNoStore
	h[requestIDHeader] = idLines(r, id)
	retry := 0
	if d != RejectedTooLarge {
		retry = g.retryAfter(s, call.Lane)
		setRetryAfter(h, retry)
	}
	if d == RejectedDraining {
		h["Connection"] = headerClose
	}
	p := &s.pages[d]
	h["Proxy-Status"] = p.proxyStatus
	s.Refusal.CORS.allow(h, r)
	if isGRPC(r) {
		p.refuseGRPC(h, r, retry)
		s.intake().Answer(w, r, http.StatusOK, nil)
		return
	}
	b := p.bodyFor(r)
	h["Content-Type"] = b.contentType
	buf := refusalBodies.Get().(*[]byte)
	*buf = b.fill((*buf)[:0], id, retry)
	s.intake().Answer(w, r, p.status, *buf)
	refusalBodies.Put(buf)
}

// refusalBodies are those that were written.
var refusalBodies = sync.Pool{New: func() any { return new([]byte) }}

// idLines returns the header with the request's id: the request's own, where it says so.
func idLines(r *http.Request, id string) []string {
	if own := r.Header[requestIDHeader]; len(own) > 0 && own[0] == id {
		return own[:1:1]
	}
	return []string{id}
}
