package proxy

import (
	"net/http"
	"strings"
)

// claims are the headers, besides all of X-Forwarded…, by which a proxy tells
// its upstream who called and what was asked for. From a stranger they are lies:
// addresses that applications log, block and meter by, and URLs that some
// frameworks route by instead of the request line.
var claims = map[string]bool{
	"x-real-ip":                true,
	"x-client-ip":              true,
	"x-cluster-client-ip":      true,
	"x-original-forwarded-for": true,
	"true-client-ip":           true,
	"cf-connecting-ip":         true,
	"cf-connecting-ipv6":       true,
	"fastly-client-ip":         true,
	"fly-client-ip":            true,
	"x-original-url":           true,
	"x-original-host":          true,
	"x-rewrite-url":            true,
	"x-url-scheme":             true,
	"front-end-https":          true,
}

// dropClaims removes a stranger's claims. Of everybody it removes the spellings
// with underscores, which CGI and WSGI read as the real ones and no proxy writes,
// and Proxy, which CGI makes HTTP_PROXY of.
func dropClaims(h http.Header, idHeader string, trusted bool) {
	for name := range h {
		disguised := strings.IndexByte(name, '_') >= 0
		if trusted && !disguised {
			continue
		}
		plain := strings.ToLower(name)
		if disguised {
			plain = strings.ReplaceAll(plain, "_", "-")
		}
		if strings.HasPrefix(plain, "x-forwarded") || claims[plain] || disguised && strings.EqualFold(plain, idHeader) {
			delete(h, name)
		}
	}
	delete(h, "Proxy")
}

// dropUpgradeToHTTP keeps an upstream from being asked to go on in HTTP/2, or in
// HTTP inside TLS, on the same connection: requests would pass in it that no gate
// has seen.
func dropUpgradeToHTTP(h http.Header) {
	for protocol := range strings.SplitSeq(h.Get("Upgrade"), ",") {
		protocol = strings.ToLower(strings.Trim(protocol, " \t"))
		if protocol == "h2c" || protocol == "h2" || strings.HasPrefix(protocol, "http") || strings.HasPrefix(protocol, "tls") {
			delete(h, "Upgrade")
			delete(h, "Connection")
		}
	}
	delete(h, "Http2-Settings")
}
