package forebay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
	// those whose Accept prefers it.
	Problem bool
	// HideGate leaves the gate's name out of the answer, HideReason the decision.
	HideGate, HideReason bool
}

func (f Refusal) validate() []error {
	errs := f.RetryAfter.validate()
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		errs = append(errs, fmt.Errorf("forebay: Refusal.Status is %d; it must be 0 (meaning 503) or 400 to 599", f.Status))
	}
	return errs
}

// Refuse answers a request that [Gate.Acquire] or a [Chain] turned away: the
// status, a Retry-After where waiting helps, and a small JSON body that names
// the gate and the decision. It reads nothing of the request's body (net/http
// over HTTP/1.1 takes in what is left of one below 256 KiB before it answers).
// When the error says that the caller left, or the request's context does,
// nothing is written and the connection is ended, and any other error is answered
// with a bare 500 (nothing of it is told to the client).
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
	refuse(w, r, rejected, "")
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
	headerProblem = []string{"application/problem+json"}
	headerNoStore = []string{"no-store"}
	headerClose   = []string{"close"}
)

// refuse writes one refusal. id is the request's, or empty if nobody has seen
// one so far.
func refuse(w http.ResponseWriter, r *http.Request, e *RejectedError, id string) {
	g, d := e.gate, e.decision
	s := g.settings.Load()
	g.noticed.refusedAt(clock())
	if id == "" {
		id = requestID(w, r)
	}
	h := w.Header()
	for _, of := range [...]string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Trailer"} {
		delete(h, of) // of the answer that somebody was about to give
	}
	problem := s.Refusal.Problem || prefersProblem(r)
	h["Content-Type"] = headerJSON
	if problem {
		h["Content-Type"] = headerProblem
	}
	h["Cache-Control"] = headerNoStore
	h[requestIDHeader] = []string{id}
	if d != RejectedTooLarge {
		setRetryAfter(h, g.retryAfter(s))
	}
	if d == RejectedDraining {
		h["Connection"] = headerClose
	}
	p := &s.pages[d]
	h["Proxy-Status"] = p.proxyStatus
	body := p.plain
	if problem {
		body = p.problem
	}
	w.WriteHeader(p.status)
	if r.Method == http.MethodHead {
		return
	}
	buf := make([]byte, 0, len(body)+len(id)+2)
	buf = append(buf, body...)
	buf = append(buf, id...)
	_, _ = w.Write(append(buf, `"}`...)) // a client that went meanwhile has had its decision
}

// page is what a gate's refusals for one reason look like, made once. The bodies
// end where the request's id goes in.
type page struct {
	status      int
	proxyStatus []string
	plain       string
	problem     string
}

func newPage(gate string, d Decision, f Refusal) page {
	p := page{status: d.Status()}
	if f.Status != 0 && d != RejectedTooLarge {
		p.status = f.Status
	}
	var told []string
	code, fields := "server_busy", ""
	if d == RejectedTooLarge {
		code = "too_large"
	}
	if !f.HideGate {
		told = append(told, gate)
	}
	if !f.HideReason {
		told = append(told, d.String())
		fields += `"reason":"` + d.String() + `",`
	}
	if !f.HideGate {
		fields += `"gate":"` + gate + `",`
	}
	p.proxyStatus = []string{"forebay; error=" + proxyError(d)}
	if len(told) > 0 {
		p.proxyStatus[0] += `; details="` + strings.Join(told, " ") + `"`
	}
	p.plain = `{"error":"` + code + `",` + fields + `"requestId":"`
	p.problem = fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"error":"%s",%s"requestId":"`,
		http.StatusText(p.status), p.status, code, fields)
	return p
}

// proxyError is the error type of RFC 9209 for a decision.
func proxyError(d Decision) string {
	if d == RejectedTooLarge {
		return "http_request_denied"
	}
	return "connection_limit_reached"
}

// prefersProblem reports whether the client asks for problem+json. It looks for
// the name only, unless the client ranks it at zero: whoever names it can read it.
func prefersProblem(r *http.Request) bool {
	for _, accept := range r.Header["Accept"] {
		_, params, named := strings.Cut(accept, "application/problem+json")
		if named && !ranksZero(params) {
			return true
		}
	}
	return false
}

// ranksZero reports whether the parameters that follow a media range end in a
// quality of zero, which means "not this one".
func ranksZero(params string) bool {
	params, _, _ = strings.Cut(params, ",")
	_, q, ok := strings.Cut(params, "q=")
	return ok && strings.Trim(q, "0. ") == ""
}
