package proxy

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
)

// rewrite makes the request that goes to the upstream. Hop-by-hop headers are gone
// by now: a client cannot have ours removed by naming them in Connection.
func (h *Handler) rewrite(pr *httputil.ProxyRequest) {
	x := pr.In.Context().Value(exchangeKey{}).(*exchange)
	out := pr.Out
	out.URL = x.target.url(h.scheme, h.host, h.base)
	dropClaims(out.Header, h.config.RequestIDHeader, x.trusted)
	dropUpgradeToHTTP(out.Header)
	setForwarded(out.Header, pr.In, x.caller)
	out.Header[h.config.RequestIDHeader] = []string{x.id}
	out.Trailer = pr.In.Trailer // net/http fills it in when the body has ended
	if out.Body != nil {
		x.upload.from = pr.In.Body
		out.Body = &x.upload
		out.GetBody = x.upload.again
	}
}

// setForwarded says for whom, which host and how the request was, extending what
// a trusted proxy has said.
func setForwarded(h http.Header, in *http.Request, c caller) {
	own := forwardedElement(c.peer, in)
	chain, proto := "", "http"
	if in.TLS != nil {
		proto = "https"
	}
	h["X-Forwarded-Host"], h["X-Forwarded-Proto"] = []string{in.Host}, []string{proto}
	if c.trusted {
		chain = strings.Join(in.Header[forwardedFor], ", ")
		keep(h, in.Header, "X-Forwarded-Host")
		keep(h, in.Header, "X-Forwarded-Proto")
		if said := forwardedSoFar(in.Header, chain); said != "" {
			own = said + ", " + own
		}
	}
	h["Forwarded"] = []string{own}
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

// forwardedSoFar returns the Forwarded of the hops before. Many proxies set
// X-Forwarded-For and let through whatever the client put into Forwarded, so where
// the two do not end with the same address it is made anew from the chain.
func forwardedSoFar(h http.Header, chain string) string {
	said := strings.Join(h["Forwarded"], ", ")
	if chain == "" {
		return said
	}
	_, last, _ := cutLast(chain)
	if hop, ok := parseHop(last); ok && said != "" && lastForwarded(said) == hop {
		return said
	}
	var b strings.Builder
	for entry := range strings.SplitSeq(chain, ",") {
		if entry = strings.Trim(entry, " \t"); entry == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		hop, _ := parseHop(entry)
		b.WriteString("for=" + node(hop))
	}
	return b.String()
}

// lastForwarded returns the address in the last element of a Forwarded header. It
// is not valid if there is none, or if what looks like one stands between quotes.
func lastForwarded(said string) netip.Addr {
	_, last, _ := cutLast(said)
	for pair := range strings.SplitSeq(last, ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if strings.EqualFold(name, "for") && strings.Count(said, `"`)%2 == 0 {
			hop, _ := parseHop(strings.Trim(value, `"`))
			return hop
		}
	}
	return netip.Addr{}
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
