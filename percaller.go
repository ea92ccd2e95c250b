package forebay

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"example.com/forebay/internal/admit"
)

// PerCaller bounds how much of a gate one caller may have at once. A call above it waits
// in line, as everybody does, until a call of the same caller has ended, and passes
// nobody; those behind it who have another caller do not wait for it. Calls above it take
// half of the line at most. Who does not get a slot for it within the patience is
// refused as [RejectedCaller], 429.
//
// It counts requests, not connections: a browser that asks for a hundred pictures over
// one has a hundred calls, of which some wait for a moment. Of a gate in a cluster it is
// each process's own, and who is above it, with what stands in line, is refused at once.
//
// A gate with it takes its lock for every call.
type PerCaller struct {
	// MaxInFlight is how many units one caller may have in flight. 0: no bound. Half of
	// the gate's leaves the other half to the others whatever one caller does; as much as
	// the gate's bounds nothing.
	MaxInFlight int

	// Fair gives a place in a full line to a caller who has less than somebody else in it:
	// who has most, running and in line, loses his newest place there, as [RejectedCaller],
	// to one who would still have less with it. So one caller's crowd keeps nobody else
	// out. Off: the line is whose calls come first. Without a line it does nothing.
	Fair bool

	// Header names the header of requests that says who calls: a company, a key. It has to
	// be set by somebody you trust, and taken from everybody else's requests before they
	// come here, which the program forebay does. A request without it counts by its
	// address. Empty: all do.
	Header string

	// IPv6Prefix is how many bits of an IPv6 address make one caller, up to 128. 0 means
	// 64, the least that a customer has: with more of them one caller is as many as it
	// likes, with fewer neighbours are one.
	IPv6Prefix int

	// MaxCallers is how many callers are told apart at once, up to 1,048,575; each costs
	// some 150 bytes. Who has no call here needs no place. The calls of those who find none
	// share one bound, and are counted in [Stats.CallersBeyond]. 0 means 16384: with half of
	// it a gate with a long line might need more, twice it costs 5 MB.
	MaxCallers int

	// Status is that of the refusals, 400 to 599. 0 means 429: it is the caller who has too
	// much.
	Status int
}

const (
	defaultIPv6Prefix = 64
	defaultMaxCallers = admit.DefaultMaxCallers
	maxCallerName     = 128 // of what is kept for as long as a call runs
)

func (p *PerCaller) validate() (errs []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("forebay: PerCaller."+format, args...))
		}
	}
	wrong(p.MaxInFlight < 0 || p.MaxInFlight > maxUnits, "MaxInFlight is %d; it must be 0 (no bound) to %d", p.MaxInFlight, maxUnits)
	wrong(p.Header != "" && !isFieldName(p.Header), "Header is %q; it must be the name of a header", p.Header)
	wrong(p.IPv6Prefix < 0 || p.IPv6Prefix > 128, "IPv6Prefix is %d; it must be 0 (meaning %d) to 128", p.IPv6Prefix, defaultIPv6Prefix)
	wrong(p.MaxCallers < 0 || p.MaxCallers > maxUnits, "MaxCallers is %d; it must be 0 (meaning %d) to %d", p.MaxCallers, defaultMaxCallers, maxUnits)
	wrong(p.Status != 0 && (p.Status < 400 || p.Status > 599), "Status is %d; it must be 0 (meaning 429) or 400 to 599", p.Status)
	wrong(!p.tells() && *p != PerCaller{}, "MaxInFlight is 0, Fair is not set, and other fields are, which do nothing then; set one of the two, or leave them out")
	return errs
}

// tells reports whether callers are told apart.
func (p *PerCaller) tells() bool { return p.MaxInFlight > 0 || p.Fair }

// callerOf returns what a call's caller is told apart by; empty: nothing is known of him,
// or there is no bound. A call with a request counts by that one's header, or by its
// address.
func (s *settings) callerOf(call *Call, in *inbound) string {
	p := &s.PerCaller
	switch {
	case !p.tells():
		return ""
	case call.Caller != "":
		return shortName(call.Caller)
	case in != nil && in.r != nil:
		if name := headerOf(in.r, p.Header); name != "" {
			return shortName(name)
		}
		return addressName(in.r.RemoteAddr, p.IPv6Prefix)
	}
	return addressName(call.RemoteIP, p.IPv6Prefix)
}

// headerOf returns the last line of a header: what the one nearest to us has said.
func headerOf(r *http.Request, name string) string {
	if name == "" {
		return ""
	}
	lines := r.Header[http.CanonicalHeaderKey(name)]
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

func shortName(name string) string { return name[:min(len(name), maxCallerName)] }

// addressName returns what an address, with or without a port, is told apart by. It
// allocates for IPv6 only.
func addressName(addr string, prefix int) string {
	if strings.Count(addr, ":") < 2 { // IPv4
		host, _, _ := strings.Cut(addr, ":")
		if host == "@" { // a unix socket's peer has no address
			return ""
		}
		return host
	}
	ip, err := netip.ParseAddr(addr)
	if err != nil {
		withPort, err := netip.ParseAddrPort(addr)
		if err != nil {
			return ""
		}
		ip = withPort.Addr()
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	if prefix == 0 {
		prefix = defaultIPv6Prefix
	}
	network, _ := ip.Prefix(prefix) // of a number of bits that validate has seen
	return network.String()
}
