package forebay

import (
	"net/http"
)

// Wrap puts the gate in front of next. A request runs next with a slot, which is
// given back when next returns or panics (http.ErrAbortHandler included, which
// goes on upwards untouched); a refused one is answered by [Refuse]; for a caller
// that left nothing runs and nothing is written. A lease ends as [OutcomeAborted] if
// next panicked or the caller left while it ran, else as [OutcomeDone].
//
// The writer is handed to next as it came, unless the gate has [Config.Hold] or
// [Config.Streams], or the request's body is still being read ahead: then next gets one
// that can do the same.
//
// The route in events is the pattern by which net/http's ServeMux found the
// handler, and empty when the gate stands in front of the mux: put it on the route,
// or use [Groups]. An accepted request costs no allocation unless the gate is
// observed, tracks, or has LeaseInContext.
//
// A CORS preflight runs next without a slot, whatever the gate says, and counts as
// nothing; a plain OPTIONS is a request like any other.
//
// Whoever leaves in line never runs next. net/http notices that a client of HTTP/1 has
// left only once the request's body has been read, so a small body is read ahead while
// its request waits, and never before, within the bounds of [Config.Intake]. For larger
// ones the socket is asked, where the server has [ConnContext]; without it their leaving
// is noticed when next reads the body.
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
	serve(w, r, h.gates, Call{Route: r.Pattern}, h.next)
}

// serve is the way of every gated request.
func serve(w http.ResponseWriter, r *http.Request, gates []*Gate, call Call, next func(http.ResponseWriter, *http.Request, Lease)) {
	wants := wantsOf(gates)
	if wants&wantCall != 0 {
		call.RequestID, call.RemoteIP = requestID(w, r), remoteIP(r)
	}
	if wants&wantRetries != 0 {
		if t := retriesOf(gates); t != nil { // it was there a moment ago
			call.Again = t.isAgain(r)
		}
	}
	in := inbound{w: w, r: r}
	if wants&wantUpload != 0 {
		rules, intake := uploadOf(gates)
		if !in.come(rules, intake, call.RequestID) {
			return
		}
	}
	lease, err := acquireAll(r.Context(), gates, call, &in)
	if in.flow != nil || in.body != nil {
		defer in.end()
	}
	if err != nil {
		in.end()
		if rejected, ok := err.(*RejectedError); ok {
			if t := retriesOf(gates); t != nil {
				t.refused(r)
			}
			refuse(w, r, rejected, &call)
			return
		}
		silence(w, r)
		return
	}
	if in.admit() {
		wants |= wantStay
	}
	if wants&wantStay != 0 {
		s := &stay{w: w, r: r, call: call, lease: lease, flow: in.flow}
		s.rulesOf(gates)
		s.run(wants, next)
		return
	}
	outcome := OutcomeAborted // of a panic: nothing is recovered, so its stack stays whole
	defer func() { lease.handBack(outcome) }()
	r, stop := wants.context(r, lease)
	defer stop()
	next(w, r, lease)
	outcome = outcomeOf(r.Context())
}

// want is what gates want to be done about a request, beside its slot.
type want uint8

const (
	wantCall    want = 1 << iota // somebody sees a call's request id and address
	wantCancel                   // a lease that is lost ends the request's context
	wantContext                  // the lease is in the context
	wantStay                     // the answer is watched
	wantRetries                  // it is looked whether a request comes again
	wantUpload                   // the body has to come as there are rules for
)

func wantsOf(gates []*Gate) (w want) {
	for _, g := range gates {
		w |= g.settings.Load().wants
	}
	return w
}

func (s *settings) want(isSeen bool) (w want) {
	for _, f := range []struct {
		want   want
		wanted bool
	}{
		{wantCall, isSeen},
		{wantCancel, s.CancelLost},
		{wantContext, s.LeaseInContext},
		{wantStay, s.hasStay()},
		{wantRetries, s.Retries != nil},
		{wantUpload, s.Upload != Upload{}},
	} {
		if f.wanted {
			w |= f.want
		}
	}
	return w
}

// hasStay reports whether there are rules for slots of requests behind a handler.
func (s *settings) hasStay() bool { return s.Hold != HoldHandler || s.Streams != Streams{} }

// context returns the request as the handler gets it, and what to call in the end.
func (w want) context(r *http.Request, lease Lease) (*http.Request, func()) {
	if w&(wantCancel|wantContext) == 0 {
		return r, doNothing
	}
	ctx, stop := r.Context(), doNothing
	if w&wantCancel != 0 {
		ctx, stop = lease.Context(ctx)
	}
	if w&wantContext != 0 {
		ctx = WithLease(ctx, lease)
	}
	return r.WithContext(ctx), stop
}

func doNothing() {}
