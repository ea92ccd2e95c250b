package forebay

import (
	"net/http"
)

// Wrap puts the gate in front of next. A request runs next with a slot, which is
// given back when next returns or panics (http.ErrAbortHandler included, which
// goes on upwards untouched); a refused one is answered by [Refuse]; for a caller
// that left nothing runs and nothing is written. The writer is handed to next as
// it came. A lease ends as [OutcomeAborted] if next panicked or the caller left
// while it ran, else as [OutcomeDone].
//
// The route in events is the pattern by which net/http's ServeMux found the
// handler, and empty when the gate stands in front of the mux: put it on the route,
// or use [Groups]. An accepted request costs no allocation unless the gate is
// observed, tracks, or has LeaseInContext.
//
// A CORS preflight runs next without a slot, whatever the gate says, and counts as
// nothing; a plain OPTIONS is a request like any other.
//
// net/http notices that a client of HTTP/1 has left only once the request's body
// has been read. Who leaves in line with a body under way is noticed when it is
// read, in next.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return &gated{gates: []*Gate{g}, next: withoutLease(next)}
}

// withoutLease is a handler in the form that serve runs.
func withoutLease(next http.Handler) func(http.ResponseWriter, *http.Request, Lease) {
	if next == nil {
		panic("forebay: Wrap of a nil handler")
	}
	return func(w http.ResponseWriter, r *http.Request, _ Lease) { next.ServeHTTP(w, r) }
}

// HandlerFunc is Wrap for a function that is handed its lease, so that it can
// give it back early: before it writes a large answer to a slow reader, say.
func (g *Gate) HandlerFunc(f func(http.ResponseWriter, *http.Request, Lease)) http.Handler {
	if f == nil {
		panic("forebay: HandlerFunc of a nil function")
	}
	return &gated{gates: []*Gate{g}, next: f}
}

// gated is a handler behind one gate or a chain of them.
type gated struct {
	gates []*Gate
	next  func(http.ResponseWriter, *http.Request, Lease)
}

// ServeHTTP admits the request and runs the handler, or refuses.
func (h *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if IsPreflight(r) {
		h.next(w, r, Lease{})
		return
	}
	serve(w, r, h.gates, r.Pattern, h.next)
}

// serve is the way of every gated request.
func serve(w http.ResponseWriter, r *http.Request, gates []*Gate, route string, next func(http.ResponseWriter, *http.Request, Lease)) {
	call := Call{Route: route}
	if seen(gates) {
		call.RequestID, call.RemoteIP = requestID(w, r), remoteIP(r)
	}
	lease, err := acquireAll(r.Context(), gates, call)
	if err != nil {
		if rejected, ok := err.(*RejectedError); ok {
			refuse(w, r, rejected, call.RequestID)
			return
		}
		silence(w, r)
		return
	}
	outcome := OutcomeAborted // of a panic: nothing is recovered, so its stack stays whole
	defer func() {
		if lease.Live() { // not given back early by next, which is no mistake
			lease.ReleaseAs(outcome)
		}
	}()
	if cancelsLost(gates) {
		ctx, stop := lease.Context(r.Context())
		defer stop()
		r = r.WithContext(ctx)
	}
	if inContext(gates) {
		r = r.WithContext(WithLease(r.Context(), lease))
	}
	next(w, r, lease)
	outcome = outcomeOf(r.Context())
}

// seen reports whether anybody sees a call's request id and address.
func seen(gates []*Gate) bool {
	for _, g := range gates {
		if g.settings.Load().keep {
			return true
		}
	}
	return false
}

func cancelsLost(gates []*Gate) bool {
	for _, g := range gates {
		if g.settings.Load().CancelLost {
			return true
		}
	}
	return false
}

func inContext(gates []*Gate) bool {
	for _, g := range gates {
		if g.settings.Load().LeaseInContext {
			return true
		}
	}
	return false
}
