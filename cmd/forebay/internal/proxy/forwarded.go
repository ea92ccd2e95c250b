package proxy

import (
	"net/http"
	"net/netip"
	"strings"
)

// rewrite makes the request that goes to the upstream. Hop-by-hop headers are gone
// by now: a client cannot have ours removed by naming them in Connection.
func (x *exchange) rewrite(in, out *http.Request) {
	h := x.handler
	out.URL = x.target.url(h.scheme, h.host, h.base)
	h.dropClaims(out.Header, x.trusted)
	h.setCallers(out.Header, in.Header, x.trusted)
	dropUpgradeToHTTP(out.Header)
	setForwarded(out.Header, in, x.caller, h.config.CallerHeader)
	out.Header[h.config.RequestIDHeader] = []string{x.id}
	out.Trailer = h.announced(in.Trailer)
	if out.Body != nil {
		x.upload.from, x.upload.trailer, x.upload.sent = in.Body, in.Trailer, out.Trailer
		out.Body = &x.upload
		out.GetBody = x.upload.again
	}
}

// setCallers hands on who calls as the gates have seen it: a client may have named the
// header in Connection, and it would be gone by now.
func (h *Handler) setCallers(out, in http.Header, trusted bool) {
	for _, name := range h.config.CallerHeaders {
		if lines := in[name]; trusted && len(lines) > 0 {
			out[name] = lines
		} else {
			delete(out, name)
		}
	}
}

// setForwarded says for whom, which host and how the request was, extending what
// a trusted proxy has said in header.
func setForwarded(h http.Header, in *http.Request, c caller, header string) {
	own := forwardedElement(c.peer, in)
	chain, proto := "", "http"
	if in.TLS != nil {
		proto = "https"
	}
	h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = []string{in.Host}, []string{proto}
	if c.trusted {
		keep(h, in.Header, "X-Forwarded-Host")
		keep(h, in.Header, "X-Forwarded-Proto")
		var said string
		if chain, said = soFar(in.Header, header); said != "" {
			own = said + ", " + own
		}
	}
	h[forwarded] = []string{own}
	if c.peer.IsValid() { // else there is nothing to add
		if chain != "" {
			chain += ", "
		}
		chain += c.peer.String()
	}
	if chain != "" {
		h[forwardedFor] = []string{chain}
	}
}

func keep(h, from http.Header, name string) {
	if said := from[name]; len(said) > 0 && said[0] != "" {
		h[name] = said
	}
}

// soFar returns the X-Forwarded-For and the Forwarded of the hops before. Many proxies
// set one of the two and let through whatever the client put into the other, so where
// they do not end with the same address, the one that is not read for it is made anew
// from the one that is.
func soFar(h http.Header, header string) (chain, said string) {
	chain = strings.Join(h[forwardedFor], ", ")
	var all []netip.Addr
	for i := len(h[forwarded]) - 1; i >= 0; i-- { // behind a line that nobody can read
		line := h[forwarded][i]
		more, ok := hops(line)
		if !ok {
			break
		}
		all = append(more, all...)
		said = strings.TrimSuffix(line+", "+said, ", ")
	}
	_, last, _ := cutLast(chain)
	hop, ok := parseHop(last)
	agree := ok && len(all) > 0 && all[len(all)-1] == hop
	switch {
	case agree:
	case header == forwarded:
		chain = join(all, "", netip.Addr.String)
	case chain != "":
		all = all[:0]
		for entry := range strings.SplitSeq(chain, ",") {
			if entry = strings.Trim(entry, " \t"); entry != "" {
				hop, _ := parseHop(entry)
				all = append(all, hop)
			}
		}
		said = join(all, "for=", node)
	}
	return chain, said
}

// join lists addresses, those that are none as unknown.
func join(all []netip.Addr, before string, text func(netip.Addr) string) string {
	var b strings.Builder
	for i, a := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(before)
		if a.IsValid() {
			b.WriteString(text(a))
		} else {
			b.WriteString("unknown")
		}
	}
	return b.String()
}

// forwardedElement is what RFC 7239 has a proxy say about its own hop.
func forwardedElement(peer netip.Addr, in *http.Request) string {
	e := "for=" + node(peer)
	if in.Host != "" {
		e += ";host=" + tokenOrQuoted(in.Host)
	}
	if in.TLS != nil {
		return e + ";proto=https"
	}
	return e + ";proto=http"
}

func node(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "unknown"
	case a.Is6():
		return `"[` + a.String() + `]"`
	}
	return a.String()
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func tokenOrQuoted(s string) string {
	notToken := func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	}
	if strings.IndexFunc(s, notToken) < 0 {
		return s
	}
	return `"` + quoter.Replace(s) + `"`
}
