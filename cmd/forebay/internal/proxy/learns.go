package proxy

import (
	"io"
	"net/http"
	"strings"

	"example.com/forebay"
)

// learns is what a limiter learns from the upstream's answer as it is there: whole, or
// just begun.
func (x *exchange) learns() forebay.Outcome {
	switch {
	case x.failure.status != 0:
		return x.failure.outcome
	case x.res == nil:
		return forebay.OutcomeIgnored // nobody has answered
	case x.tunnel.Conn != nil, x.res.StatusCode == http.StatusOK && isEventStream(x.res.Header):
		return forebay.OutcomeIgnored
	case isGRPC(x.res.Header):
		return ofGRPC(x.res)
	}
	return ofStatus(x.res.StatusCode, x.res.Header)
}

// ofStatus is what an answer says of the upstream. One that refuses is no fast success,
// and one that is broken may be as fast as it likes.
func ofStatus(status int, h http.Header) forebay.Outcome {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return forebay.OutcomeOverloaded
	case status >= 500 && h.Get("Retry-After") != "":
		return forebay.OutcomeOverloaded
	case status >= 500, status == http.StatusRequestTimeout: // of the client's body
		return forebay.OutcomeIgnored
	}
	return forebay.OutcomeDone
}

func isGRPC(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "application/grpc")
}

// ofGRPC goes by grpc-status, which comes behind the answer, or with the headers of one
// that has nothing else.
func ofGRPC(res *http.Response) forebay.Outcome {
	const name = "Grpc-Status"
	code := res.Header.Get(name)
	if code == "" {
		code = res.Trailer.Get(name)
	}
	switch code {
	case "4", "8", "14": // deadline exceeded, resource exhausted, unavailable
		return forebay.OutcomeOverloaded
	case "1", "2", "13", "15": // cancelled, unknown, internal, data loss
		return forebay.OutcomeIgnored
	}
	return ofStatus(res.StatusCode, res.Header)
}

// begins gives back the slot of a gate that wants it back when the answer begins, which
// the library does otherwise, for whom an answer is like any other.
func (x *exchange) begins() {
	if x.lease.Hold() == forebay.HoldFirstByte && x.lease.Live() {
		x.lease.ReleaseAs(x.learns())
	}
}

// slot is a lease, and as what it is to be given back once the answer has come in.
type slot struct {
	lease forebay.Lease
	ended func(error) forebay.Outcome
}

func slotOf(x *exchange) slot { return slot{x.lease, x.endedBy} }

// endedBy is what a limiter learns from an answer that has ended with an error, io.EOF
// if it is whole.
func (x *exchange) endedBy(err error) forebay.Outcome {
	switch {
	case err == io.EOF:
		return x.learns()
	case x.left():
		return forebay.OutcomeAborted
	}
	return forebay.OutcomeIgnored
}
