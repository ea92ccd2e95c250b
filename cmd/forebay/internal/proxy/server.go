package proxy

import (
	"io"
	"log"
	"net/http"
	"time"

	"example.com/forebay"
)

// Timeouts of a [Server]. Zero means the default that each comment names.
type Timeouts struct {
	// ReadHeader is how long a client may take for the headers of a request. 0 means
	// 5 s.
	ReadHeader time.Duration
	// Idle is how long a connection may wait for the next request. It should be above
	// what the proxy in front keeps its connections for, or that one meets connections
	// that are just being closed. 0 means 75 s, above the 60 s of nginx.
	Idle time.Duration
}

const (
	defaultReadHeader = 5 * time.Second
	defaultIdle       = 75 * time.Second
	maxStreams        = 250 // of one HTTP/2 connection at once; net/http's own default
)

// Server returns a server with the limits that net/http leaves open: times for
// the headers and between requests, 64 KiB of headers (431 beyond), pings that
// find HTTP/2 clients that vanished. It speaks HTTP/1 and, to clients that begin
// with it, HTTP/2, with TLS or without. What takes longer once the headers are
// there, uploads and answers, is not timed. Gates see its connections, so that who leaves
// in line with a large upload under way never reaches the upstream.
//
// Its error log is silent: a stranger who sends garbage or hangs up could fill a
// disk with it. Set ErrorLog to see the stacks of handlers that panic.
func Server(h http.Handler, t Timeouts) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		ConnContext:       forebay.ConnContext,
		ReadHeaderTimeout: orDefault(t.ReadHeader, defaultReadHeader),
		IdleTimeout:       orDefault(t.Idle, defaultIdle),
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingAfter,
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
}
