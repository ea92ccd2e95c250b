package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

// exchange is one request on its way to the upstream and back. It is the context
// of the request that ReverseProxy gets, where that is used, which is how the functions
// that ReverseProxy calls find it.
type exchange struct {
	context.Context // the caller's, ended when the exchange is over; nil: nobody needs it
	caller
	end     context.CancelCauseFunc
	handler *Handler
	request *http.Request // as it came
	target  target
	upload  upload
	answer  answer
	lease   forebay.Lease        // of the gates in front; zero: none that anybody knows of
	res     *http.Response       // the upstream's answer; nil: there is none
	body    watched              // of it
	spooled *spooled             // what body reads from; nil: from the upstream
	tunnel  tunnel               // once upgraded
	work    atomic.Pointer[work] // at the upstream; nil: nothing was sent yet
	isLate  bool                 // the work was given up, and goes on
	trace   httptrace.ClientTrace

	started  time.Time
	headers  time.Duration // until they came; 0: they have not
	sent     atomic.Int32  // how often the request went out
	failure  failure       // of ours, or none
	returned bool          // ReverseProxy came to its end: no panic
}

type exchangeKey struct{}

func (h *Handler) newExchange(w http.ResponseWriter, r *http.Request, lease forebay.Lease) *exchange {
	x := &exchange{handler: h, request: r, lease: lease, caller: h.callerOf(r), started: clock()}
	x.answer.exchange, x.answer.ResponseWriter = x, w
	if g := lease.Gate(); g != nil && h.config.Blocked != nil {
		x.answer.blocked = h.config.Blocked(g.Name())
	}
	return x
}

// exchangeOf finds it in the context of a request that ReverseProxy knows.
func exchangeOf(r *http.Request) *exchange {
	return r.Context().Value(exchangeKey{}).(*exchange)
}

// Value finds the exchange itself under exchangeKey.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// traced is x with the counting of attempts, for net/http's transport.
func (x *exchange) traced() context.Context {
	x.Context, x.end = context.WithCancelCause(x.request.Context())
	x.trace.GetConn, x.trace.WroteHeaders, x.trace.WroteRequest = x.connecting, x.wroteHeaders, x.wroteRequest
	return httptrace.WithClientTrace(x, &x.trace)
}

// maxSent bounds what net/http does when a kept connection ends before the answer
// to a GET begins: it sends the request again on the next kept connection, for as
// long as there is one. A request that kills the worker that serves it would so
// reach every worker in turn.
const maxSent = 2

var errSentTwice = errors.New("proxy: the upstream ended the connection without an answer, twice")

// errStatus is what becomes of a status that net/http cannot pass on.
var errStatus = errors.New("proxy: the upstream answered with a status below 100, which HTTP does not know")

// connecting is called by net/http before each attempt, and wroteHeaders when the
// request goes out, maybe from another goroutine.
func (x *exchange) connecting(string) {
	if x.sent.Load() >= maxSent {
		x.work.Load().cancel(errSentTwice) // before this returns
	}
}

func (x *exchange) wroteHeaders() { x.sent.Add(1) }

// wroteRequest is called when all of it has gone out.
func (x *exchange) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err == nil {
		select {
		case x.work.Load().sent <- struct{}{}:
		default:
		}
	}
}

// stop ends the exchange, at the upstream before it returns.
func (x *exchange) stop(cause error) {
	if w := x.work.Load(); w != nil && !x.isLate {
		//mutate:equivalent it would be canceled a second time, by a goroutine
		w.unlink()
		w.cancel(cause)
	}
	if x.end != nil {
		//mutate:equivalent the request's context, on which this one hangs, ends with the handler
		x.end(cause)
	}
}

// answered sees each answer of the upstream before it is handed back.
func (x *exchange) answered(res *http.Response) error {
	x.res = res
	x.headers = clock().Sub(x.started)
	if res.StatusCode < 100 {
		return errStatus
	}
	if res.StatusCode == http.StatusSwitchingProtocols {
		return x.upgrade(res)
	}
	x.body.ReadCloser = res.Body
	x.spool(res)
	res.Body = &x.body
	return nil
}

// spool has the answer taken in as fast as the upstream gives it, if a gate wants that.
// Event streams last, and come under rules of their own.
func (x *exchange) spool(res *http.Response) {
	s := x.handler.config.Spool
	if s == nil {
		return
	}
	bounds := s.bounds.Load()
	if bounds == nil || x.lease.Hold() != forebay.HoldUpstreamDone || res.StatusCode == http.StatusOK && isEventStream(res.Header) {
		return
	}
	if res.Body == http.NoBody {
		x.lease.ReleaseAs(x.learns()) // there is nothing to wait for
		return
	}
	body := res.Body
	//mutate:equivalent forward closes it first, whatever ends it
	stop := func() { _ = body.Close() }
	if x.end != nil { // net/http's transport goes by the context
		stop = func() { x.stop(nil) }
	}
	x.spooled = s.newSpooled(bounds, res.Body, res.ContentLength, slotOf(x), stop)
	x.body.ReadCloser = x.spooled
}

// isEventStream is the library's rule.
func isEventStream(h http.Header) bool {
	const name = "text/event-stream"
	kind := h.Get("Content-Type")
	return len(kind) >= len(name) && strings.EqualFold(kind[:len(name)], name)
}

// finish ends the exchange and reports it. Of a panic nothing is recovered here. Work
// that was given up goes on.
func (x *exchange) finish() {
	x.answer.hurry() // what is still in its buffers goes out behind the handler
	if x.request.ProtoMajor == 1 && x.tunnel.Conn == nil {
		x.upload.shut(x.returned, http.NewResponseController(x.answer.ResponseWriter).SetReadDeadline)
	} else {
		//mutate:equivalent who sends it stops at the first write that fails, one piece later
		x.upload.shut(x.returned, nil)
	}
	//mutate:equivalent ReverseProxy closes it as well, and a timer that rang would close it again
	x.tunnel.shut()
	//mutate:equivalent the context of the request ends as its handler returns, and this with it
	x.stop(nil)
	if x.spooled != nil {
		_ = x.spooled.Close() // again, unless a panic came between
	}
	if x.headers == 0 {
		x.headers = clock().Sub(x.started)
	}
	r := x.result()
	if x.lease.Live() && !x.isLate { // else it is given back, or the work's
		x.lease.ReleaseAs(r.Outcome)
	}
	if done := x.handler.config.Done; done != nil {
		done(r)
	}
}

// unfinished reports whether some of the request's body is still on a connection
// of its own.
func (x *exchange) unfinished() bool {
	return x.request.ContentLength != 0 && x.request.ProtoMajor == 1 && !x.upload.whole()
}

func (x *exchange) result() Result {
	r := Result{
		Request: x.request, Upstream: x.headers,
		Status: x.answer.status, Bytes: x.answer.bytes + x.tunnel.toClient.Load(),
	}
	switch {
	case x.refused() != nil:
		r.Status, r.Outcome = x.refused().Decision().Status(), forebay.OutcomeIgnored
	case x.ended():
		r.Outcome = forebay.OutcomeIgnored // a stream, mostly
		if cause := context.Cause(x.request.Context()); errors.Is(cause, forebay.ErrStreamOver) {
			r.Over = cause
		}
	case x.failure.status != 0:
		r.Status, r.Err, r.Outcome = x.failure.status, x.failure.err, x.failure.outcome
	case x.answer.err != nil || x.body.err != nil && x.left():
		r.Status, r.Err, r.Outcome = statusLeft, errors.Join(errLeft, x.answer.err), forebay.OutcomeAborted
	case x.body.err != nil:
		r.Err, r.Outcome = x.body.err, forebay.OutcomeIgnored
	case !x.returned:
		r.Err, r.Outcome = errPanic, forebay.OutcomeIgnored
	default:
		r.Outcome = x.learns()
	}
	return r
}

// left reports whether the caller has gone: its own context was canceled, by none of
// us.
func (x *exchange) left() bool { return context.Cause(x.request.Context()) == context.Canceled }

// refused returns the refusal of the gate that the stream was to move to; nil: there
// was none.
func (x *exchange) refused() *forebay.RejectedError {
	var rejected *forebay.RejectedError
	if errors.As(context.Cause(x.request.Context()), &rejected) || errors.As(x.failure.err, &rejected) {
		return rejected
	}
	return nil
}

// ended reports whether one of us has ended it, which is no fault: the gate, by its rules
// for streams.
func (x *exchange) ended() bool {
	return errors.Is(x.request.Context().Err(), context.Canceled) && !x.left()
}

// watched is a body that remembers why it broke off.
type watched struct {
	io.ReadCloser
	err error
}

// Read reads on.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}
