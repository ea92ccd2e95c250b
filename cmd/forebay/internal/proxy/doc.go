// Package proxy hands requests on to the one upstream of the program and its
// answers back. Gates stand in front of it, and hand it their leases.
//
//	p := proxy.New(proxy.Config{Upstream: upstream, IdlePerHost: 16, Done: note})
//	srv := proxy.Server(p.Identify(groups.HandlerFunc(p.Serve)), proxy.Timeouts{})
//
// [Handler.Identify] goes outermost: it finds out who calls and gives the request
// its id, so that gate, log, refusal and upstream tell of the same caller under
// the same id.
//
// # What the upstream gets
//
// The request line as the client sent it: dots, doubled slashes, escapes,
// semicolons and lone percent signs included, behind the upstream's base path.
// Three exceptions, each because something worse would follow: a # in a path goes
// on as %23 (an upstream that cuts there would serve another path than the one the
// gates saw); a target with a blank or a control character, which only HTTP/2 can
// carry, is a 400; and after two slashes at the start the characters that no URL
// may contain are escaped (net/http would take what follows for a host).
//
// The client's Host, so that the upstream makes the links and cookies it would
// make without a proxy. Hop-by-hop headers are removed, then X-Forwarded-For,
// X-Forwarded-Host, X-Forwarded-Proto, Forwarded and the request id are set. From
// a peer in Config.TrustedProxies what is there is extended; from anybody else it
// is replaced, and with it goes every other header by which proxies tell who
// called and how (X-Real-Ip, X-Forwarded-*, X-Original-Url and their kin), also
// in the spelling with underscores, which CGI and WSGI cannot tell apart.
// Upgrades to HTTP itself (h2c) are not passed on: what came after would pass no
// gate.
//
// HTTP/1.1 is spoken, to https as well: with a connection for each request in
// flight one broken connection costs one request, and one slow reader holds up
// nobody else. Requests of gRPC, which has no other way, go by HTTP/2, to an http
// or unix upstream without encryption.
//
// There are two transports for HTTP/1.1 in the clear, [TransportLean] and
// [TransportStandard], with the same rules and the same tests.
//
// # Who listens
//
// [Server] makes a net/http server, and [LeanServer] answers simple requests before it,
// by the same handler and with the same bytes.
//
// # What the client gets
//
// The upstream's answer, unchanged but for hop-by-hop headers: 1xx, trailers, an
// answer without a Content-Type, the Retry-After of an upstream that is full. An
// answer of unknown length, and every event stream, is flushed with each write. An
// upstream that breaks off in the middle of an answer breaks the client's
// connection as well, so that half an answer never looks like a whole one. When
// there is no answer at all, see [Result].
//
// With [forebay.HoldUpstreamDone] and a [Spool] the answer is taken in as fast as the
// upstream gives it, and the slot is given back at the end of that, however slowly the
// client reads.
//
// An upstream that takes too long is not told: the client gets a 504, and the request
// stays where it is, with its slot, until it is answered; see [Config.StillRunning].
//
// # Retries
//
// A request that failed on a kept connection before any byte of it was written is
// sent again on another; so is, once, a GET, HEAD, OPTIONS or TRACE without a body
// to which the connection ended before any byte of the answer. Both happen when an
// upstream closes an idle connection just as it is used again. Nothing else is
// ever sent twice, and no second slot is taken.
//
// # What it does not do
//
// No balancing, no caching, no compression, no health checks of the upstream, no
// CONNECT. The names of headers reach the upstream in net/http's spelling and
// order. A body or an answer that stalls half way is not timed here.
package proxy
