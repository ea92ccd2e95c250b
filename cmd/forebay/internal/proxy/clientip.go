package proxy

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const forwardedFor = "X-Forwarded-For"

// forwarded is the header of RFC 7239, which says the same in another form.
const forwarded = "Forwarded"

// ClientIP returns the address of whoever sent the request: the peer, or, when
// the peer is a trusted proxy, whom X-Forwarded-For names, or Forwarded where that is
// the header that is read. It is read from the
// right, past trusted proxies, to the first address that none of them stands for;
// what is further left is that one's own claim. Something that is no address
// ("unknown", a name) ends the walk at the proxy that reported it, and no other
// header is looked at. Addresses come without port and zone, IPv4 in IPv6 as IPv4.
//
// The result is not valid when the peer has no address (a unix socket) and nobody
// trusted names one.
func ClientIP(r *http.Request, trusted []netip.Prefix, header string) netip.Addr {
	if c, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return c.client
	}
	return findCaller(r, trusted, header).client
}

// caller is who sent a request.
type caller struct {
	peer    netip.Addr // at the other end of the connection; not valid: it has no address
	client  netip.Addr
	trusted bool // the peer is a trusted proxy
	id      string
	asked   string // what the client called the request, if that was not taken for its id
}

func findCaller(r *http.Request, trusted []netip.Prefix, header string) caller {
	c := caller{}
	if at := r.RemoteAddr; strings.HasPrefix(at, "@") || strings.HasPrefix(at, "/") { // a unix socket
		c.trusted = len(trusted) > 0
	} else if peer, ok := parseHop(at); ok {
		c.peer, c.trusted = peer, trusts(trusted, peer)
	}
	c.client = c.peer
	switch {
	case !c.trusted:
	case header == forwarded:
		c.client = walkForwarded(c.peer, r.Header[forwarded], trusted)
	default:
		c.client = walk(c.peer, r.Header[forwardedFor], trusted)
	}
	return c
}

// Trusts reports whether the peer at addr is a trusted proxy: its address is in one of
// the networks, or it has none because it connects through a unix socket, which file
// permissions have let it into. Where no network is trusted nobody is.
func Trusts(trusted []netip.Prefix, addr net.Addr) bool {
	if len(trusted) == 0 || addr == nil {
		return false
	}
	if addr.Network() == "unix" {
		return true
	}
	peer, ok := parseHop(addr.String())
	return ok && trusts(trusted, peer)
}

// walk goes through the lines of X-Forwarded-For from the right for as long as
// the one who reports is trusted.
func walk(reporter netip.Addr, lines []string, trusted []netip.Prefix) netip.Addr {
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var entry string
			rest, entry, more = cutLast(rest)
			if entry == "" {
				continue
			}
			hop, ok := parseHop(entry)
			if !ok {
				return reporter
			}
			if reporter = hop; !trusts(trusted, hop) {
				return hop
			}
		}
	}
	return reporter
}

// cutLast cuts the last entry off a list.
func cutLast(list string) (rest, entry string, more bool) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], strings.Trim(list[i+1:], " \t"), i >= 0
}

func trusts(trusted []netip.Prefix, addr netip.Addr) bool {
	for _, p := range trusted {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// parseHop reads an address as proxies write it: alone, with a port, in brackets.
func parseHop(s string) (netip.Addr, bool) {
	if inside, isBracketed := strings.CutPrefix(s, "["); isBracketed {
		host, port, closed := strings.Cut(inside, "]")
		if !closed || !strings.Contains(host, ":") || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		s = host
	} else if i := strings.IndexByte(s, ':'); i >= 0 && i == strings.LastIndexByte(s, ':') {
		if !isPort(s[i:]) {
			return netip.Addr{}, false
		}
		s = s[:i]
	}
	addr, err := netip.ParseAddr(s)
	return addr.WithZone("").Unmap(), err == nil
}

func isPort(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != ':' {
		return false
	}
	return strings.Trim(s[1:], "0123456789") == ""
}
