package proxy

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"example.com/forebay"
)

// Config is what [New] takes.
type Config struct {
	// Upstream is where requests go: http://host:port or https://host:port (h2c://host:port
	// for HTTP/2 without encryption, which upgrades cannot pass), with a
	// base path if it has one, or unix:/path/to/socket. Query and user are ignored.
	Upstream *url.URL
	// ResponseTimeout is how long the upstream may take from the end of the request
	// to the headers of its answer, and to take in each piece of the request. The
	// client is then told 504; of the request see StillRunning. 0 means 30 s. What
	// comes after the headers is not timed: streams last.
	ResponseTimeout time.Duration
	// StillRunning is how long a request that was answered 504, because its answer had not
	// begun in time, may go on at the upstream with its slot: until it is answered there,
	// and when this is over its connection is closed. 0, without Remains, or without a
	// slot: the connection is closed, and the slot given back, at once.
	StillRunning time.Duration
	// Remains has those requests. Nil: there are none.
	Remains *Remains
	// WriteTimeout is how long a client of HTTP/2 may take in nothing of an answer: its
	// connection may live while one of its streams stands still. HTTP/1 is left to the
	// connection. 0: as long as it likes.
	WriteTimeout time.Duration
	// TrustedProxies are those whose X-Forwarded-For and the like are believed. When
	// it is not empty, so is whoever connects through a unix socket: file permissions
	// have let it in. Nil: nobody.
	TrustedProxies []netip.Prefix
	// CallerHeader is where trusted proxies say whom they ask for: X-Forwarded-For or
	// Forwarded. The other one is not asked instead. Empty means X-Forwarded-For.
	CallerHeader string
	// CallerHeaders are the canonical names of further headers by which trusted proxies
	// say who calls. From anybody else they are removed before a gate sees them.
	CallerHeaders []string
	// DeadlineHeader is the canonical name of the header in which callers say how long they
	// wait: a number of seconds, or one with a unit. Calls of gRPC say it in grpc-timeout,
	// always. Empty: there is none.
	DeadlineHeader string
	// BadDeadlines counts deadlines that could not be read, and were ignored. Nil: nobody
	// wants to know.
	BadDeadlines *atomic.Uint64
	// RequestIDHeader carries the request's id. Empty means X-Request-Id.
	RequestIDHeader string
	// TrustRequestID keeps the id that a stranger sends, if it is harmless. Else only
	// a trusted proxy's is kept.
	TrustRequestID bool
	// NewRequestIDs gives every request a new id, whoever it comes from.
	NewRequestIDs bool
	// IdlePerHost is how many connections to the upstream are kept for the next
	// request: as many as may be in flight, the sum of the gates' limits. 0 means 64.
	IdlePerHost int
	// IdleTimeout is how long a kept connection may lie idle. It has to be below the
	// upstream's own, or a request meets a connection that is just being closed.
	// 0 means 1.5 s, below the 2 s of gunicorn, the shortest in common use.
	IdleTimeout time.Duration
	// Spool takes in the answers to requests that have passed a gate with
	// [forebay.HoldUpstreamDone]. Nil: such a gate is like any other.
	Spool *Spool
	// Transport is what speaks HTTP/1.1 to an upstream without encryption. Empty means
	// TransportLean.
	Transport string
	// Blocked returns where it is counted how many requests with a slot of a gate wait at
	// this moment for their clients to take in what is written; nil: nowhere. Nil: nobody
	// counts.
	Blocked func(gate string) *atomic.Int64
	// Done is called once for each request, when its answer has been written or
	// given up, before ServeHTTP returns or panics on. It must not block. Nil: nobody.
	Done func(Result)
}

// Transports. Both write requests and read answers with net/http, and keep to the same
// rules.
const (
	// TransportLean does a request in its handler's goroutine.
	TransportLean = "lean"
	// TransportStandard is [http.Transport], with two goroutines for each connection.
	TransportStandard = "standard"
)

const (
	defaultResponseTimeout = 30 * time.Second
	defaultIdleTimeout     = 1500 * time.Millisecond
	defaultIdlePerHost     = 64
	requestIDHeader        = "X-Request-Id" // the one that gates read
	requestIDName          = "x-request-id"
)

// Result is how one request ended. Nothing is logged: whoever wants to know looks
// here.
type Result struct {
	// Request is the request as it came to the handler, with the context that the
	// gate gave it.
	Request *http.Request
	// Status is what was sent: the upstream's, or one of ours. 502 bad_gateway: the
	// upstream could not be reached or answered no HTTP. 504 gateway_timeout: it was
	// silent; deadline_exceeded: longer than the caller waits (of gRPC 200 is sent). 400,
	// 408 and 413: the fault was the request's. 501: CONNECT. 499: the caller left before
	// it had the answer; the client has seen nothing or half of it. 0: a panic that is
	// none of ours.
	Status int
	// Err is why there was no answer or only half of one, for the operator: it is not
	// told to the client. Nil when the upstream's answer was handed back whole. That
	// the caller left is no fault of anybody's, whatever Err says.
	Err error
	// Over is why the gate's rules for streams have ended it, by forebay.ErrStreamOver. Nil:
	// they have not.
	Over error
	// Outcome is what a limiter learns, and what the lease was given back as: of an answer
	// of the upstream as the table in docs/operations.md has it; OutcomeOverloaded of a
	// timeout; OutcomeAborted when the caller left; OutcomeIgnored when the upstream could
	// not be reached or broke off, which says nothing about how long its work takes, when
	// the fault was the request's, and of streams, which last as long as they like.
	Outcome forebay.Outcome
	// Upstream is the time until the headers of the answer came, or until it was
	// clear that they would not.
	Upstream time.Duration
	// Bytes of the answer's body, or of an upgraded connection, that went to the
	// client.
	Bytes int64
}

// Handler hands requests on to the upstream. It is safe for concurrent use, never
// changes, and must be closed. Make it with [New].
type Handler struct {
	reverse    httputil.ReverseProxy
	transports *transports
	scheme     string
	host       string
	base       string // of the path, escaped, without a slash at its end
	idName     string // of the header with the request's id, in small letters

	callerNames map[string]bool // of CallerHeaders, as plainName has them
	linger      time.Duration
	config      Config
}

// New returns a handler. It panics when there is no usable upstream, which the
// check of a configuration keeps out.
func New(c Config) *Handler {
	if c.Upstream == nil {
		panic("proxy: Upstream is nil; give http://host:port, https://host:port or unix:/path")
	}
	c.ResponseTimeout = orDefault(c.ResponseTimeout, defaultResponseTimeout)
	c.IdleTimeout = orDefault(c.IdleTimeout, defaultIdleTimeout)
	c.IdlePerHost = orDefault(c.IdlePerHost, defaultIdlePerHost)
	if c.RequestIDHeader == "" {
		c.RequestIDHeader = requestIDHeader
	}
	c.RequestIDHeader = http.CanonicalHeaderKey(c.RequestIDHeader)
	if c.CallerHeader == "" {
		c.CallerHeader = forwardedFor
	}
	h := &Handler{
		config: c, transports: newTransports(c), linger: lingerTime,
		idName: strings.ToLower(c.RequestIDHeader), callerNames: map[string]bool{},
	}
	for _, name := range c.CallerHeaders {
		plain, _ := plainName(name)
		h.callerNames[plain] = true
	}
	switch u := c.Upstream; u.Scheme {
	case "http", "https":
		h.scheme, h.host, h.base = u.Scheme, u.Host, strings.TrimRight(u.EscapedPath(), "/")
	case "h2c":
		h.scheme, h.host, h.base = "http", u.Host, strings.TrimRight(u.EscapedPath(), "/")
	case "unix":
		h.scheme, h.host = "http", "localhost" // for a request that names no host
	default:
		panic("proxy: Upstream " + u.Redacted() + " has no scheme known here; it must be http, https, h2c or unix")
	}
	h.reverse = httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { exchangeOf(r.In).rewrite(r.In, r.Out) },
		Transport:      timed{h},
		BufferPool:     buffers{},
		ModifyResponse: func(r *http.Response) error { return exchangeOf(r.Request).answered(r) },
		ErrorHandler:   failed,
		ErrorLog:       log.New(io.Discard, "", 0), // an error is in the Result
	}
	return h
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// ServeHTTP hands the request on and the answer back. As net/http asks of a
// handler that cannot finish its answer, it then panics with
// http.ErrAbortHandler, which ends the connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Serve(w, r, forebay.Lease{})
}

// Serve is ServeHTTP for a request that has passed gates, as [forebay.Groups.HandlerFunc]
// hands it on: where they say so the lease is given back when the upstream is done.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, lease forebay.Lease) {
	x := h.newExchange(w, r, lease)
	defer x.finish()
	switch target, ok := requestTarget(r); {
	case r.Method == http.MethodConnect:
		x.refuse(failure{status: http.StatusNotImplemented, code: "not_implemented", outcome: forebay.OutcomeIgnored, err: errConnect})
	case !ok:
		x.refuse(failure{status: http.StatusBadRequest, code: "bad_request", outcome: forebay.OutcomeIgnored, err: errTarget})
	case h.transports.takesLean(r):
		x.target = target
		x.forward()
	default:
		x.target = target
		h.reverse.ServeHTTP(&x.answer, r.WithContext(x.traced()))
	}
	x.returned = true
}

// Close drops the idle connections to the upstream. Requests that run go on, and
// the connections they leave are closed after Config.IdleTimeout.
func (h *Handler) Close() { h.transports.close() }
