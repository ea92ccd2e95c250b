package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"

	"example.com/forebay"
)

// statusLeft is how logs name a caller that left; it is never sent.
const statusLeft = 499

var (
	errLeft  = errors.New("proxy: the caller left")
	errPanic = errors.New("proxy: a panic ended the exchange")
)

// failure is an answer of ours in place of the upstream's.
type failure struct {
	status  int
	code    string // for the client
	because string // the error type of RFC 9209; empty: the upstream is not at fault
	retry   int    // the least that Retry-After says, in seconds; 0: waiting does not help
	outcome forebay.Outcome
	err     error // for the operator
}

// failed is ReverseProxy's way out when there is no answer.
func failed(_ http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.refuse(x.blame(err))
}

// blame says whose fault it was: the caller's, the request's, the upstream's.
func (x *exchange) blame(err error) failure {
	if x.left() {
		x.upload.settle()
	}
	broken := x.upload.broken()
	switch {
	case errors.Is(broken, os.ErrDeadlineExceeded): // net/http then says as well that it has left
		return blameUpload(broken)
	case x.isOver():
		return failure{status: http.StatusGatewayTimeout, code: "deadline_exceeded", outcome: forebay.OutcomeAborted, err: ErrDeadline}
	case x.left():
		return failure{status: statusLeft, err: errLeft, outcome: forebay.OutcomeAborted}
	case broken != nil:
		return blameUpload(broken)
	}
	f := blameUpstream(err)
	f.err = err
	return f
}

func blameUpload(err error) failure {
	var tooLarge *http.MaxBytesError
	var network net.Error
	f := failure{status: http.StatusBadRequest, code: "bad_request", outcome: forebay.OutcomeIgnored, err: err}
	switch {
	case errors.As(err, &tooLarge):
		f.status, f.code = http.StatusRequestEntityTooLarge, "too_large"
	case errors.Is(err, os.ErrDeadlineExceeded):
		f.status, f.code = http.StatusRequestTimeout, "request_timeout"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &network), errors.Is(err, context.Canceled):
		f.status, f.outcome = statusLeft, forebay.OutcomeAborted
	}
	return f
}

// blameUpstream tells silence from everything else: a limiter learns from the one
// only.
func blameUpstream(err error) failure {
	bad := func(because string) failure {
		return failure{status: http.StatusBadGateway, code: "bad_gateway", because: because, retry: 1, outcome: forebay.OutcomeIgnored}
	}
	late := func(because string) failure {
		return failure{status: http.StatusGatewayTimeout, code: "gateway_timeout", because: because, retry: 5, outcome: forebay.OutcomeOverloaded}
	}
	var op *net.OpError
	var dns *net.DNSError
	var network net.Error
	dialing := errors.As(err, &op) && op.Op == "dial"
	timedOut := errors.As(err, &network) && network.Timeout()
	switch {
	case errors.As(err, &dns):
		return bad("dns_error")
	case dialing && errors.Is(err, syscall.EAGAIN): // a unix socket with a full backlog; it says it is a timeout
		f := bad("connection_limit_reached")
		f.outcome = forebay.OutcomeOverloaded
		return f
	case dialing && timedOut:
		return late("connection_timeout")
	case dialing:
		return bad(whyNoConnection(err))
	case timedOut && op != nil && op.Op == "write":
		return late("connection_write_timeout")
	case timedOut && strings.Contains(err.Error(), "TLS handshake"):
		return late("connection_timeout")
	case timedOut, errors.Is(err, context.DeadlineExceeded):
		return late("http_response_timeout")
	}
	return bad(whyNoAnswer(err))
}

func whyNoConnection(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "destination_ip_unroutable"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return "destination_unavailable"
	}
	return "connection_terminated"
}

func whyNoAnswer(err error) string {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errUpgrade):
		return "http_upgrade_failed"
	case errors.As(err, &cert), errors.As(err, &host):
		return "tls_certificate_error"
	case errors.As(err, &record):
		return "tls_protocol_error"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls's name for an alert
		return "tls_alert_received"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op),
		errors.Is(err, errSentTwice), errors.Is(err, errRead), strings.Contains(err.Error(), "server closed idle connection"):
		return "connection_terminated"
	}
	return "http_protocol_error"
}

// refuse answers with a failure of ours, if an answer can still be given. To a
// caller that left nothing is written, and what net/http would write by itself is
// kept back.
func (x *exchange) refuse(f failure) {
	x.failure = f
	if x.answer.status != 0 {
		return // the switch to another protocol failed half way
	}
	if f.status == statusLeft {
		if x.request.Context().Value(http.ServerContextKey) != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
	if f.err == ErrDeadline && isGRPC(x.request.Header) {
		x.refuseOver()
		return
	}
	h := x.answer.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Cache-Control"] = []string{"no-store"}
	h[x.handler.config.RequestIDHeader] = []string{x.id}
	if f.because != "" {
		h["Proxy-Status"] = []string{"forebay; error=" + f.because}
	}
	if f.retry > 0 {
		// Spread threefold: those who failed together should not come back together.
		h["Retry-After"] = []string{strconv.Itoa(f.retry + rand.IntN(2*f.retry+1))}
	}
	x.answer.WriteHeader(f.status)
	if x.request.Method != http.MethodHead {
		_, _ = io.WriteString(&x.answer, `{"error":"`+f.code+`","requestId":"`+x.id+`"}`)
	}
}
