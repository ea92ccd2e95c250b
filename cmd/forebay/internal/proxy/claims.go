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

// plainName is a header's name as CGI, WSGI and PHP read it: they make the same
// variable of all that is no letter or digit. It is disguised if it is not the name
// that it is read as.
func plainName(name string) (plain string, isDisguised bool) {
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '-' {
			isDisguised = true
			break
		}
	}
	plain = strings.ToLower(name)
	if isDisguised {
		plain = strings.Map(func(c rune) rune {
			if c < 0x80 && isAlnum(byte(c)) {
				return c
			}
			return '-'
		}, plain)
	}
	return plain, isDisguised
}

// dropClaims removes a stranger's claims. Of everybody it removes the spellings
// with underscores and the like, which CGI and WSGI read as the real ones and no proxy
// writes, and Proxy, which CGI makes HTTP_PROXY of.
func (h *Handler) dropClaims(header http.Header, trusted bool) {
	for name := range header {
		plain, isDisguised := plainName(name)
		if trusted && !isDisguised {
			continue
		}
		if strings.HasPrefix(plain, "x-forwarded") || claims[plain] || isDisguised && plain == h.idName {
			delete(header, name)
		}
	}
	delete(header, "Proxy")
}

// notInTrailers are headers, besides claims, that an upstream which takes trailers for
// headers must not be given there: they say who asks, for what, or how long it is.
var notInTrailers = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "host": true, "proxy": true,
	"connection": true, "keep-alive": true, "te": true, "upgrade": true, "expect": true,
	"content-length": true, "transfer-encoding": true, "trailer": true, "content-type": true, "content-encoding": true,
	"forwarded": true, requestIDName: true,
}

func (h *Handler) mayTrail(name string) bool {
	plain, _ := plainName(name)
	return !strings.HasPrefix(plain, "x-forwarded") && !claims[plain] && !notInTrailers[plain] && plain != h.idName && !h.callerNames[plain]
}

// announced returns the trailers that the upstream is told of. What they hold comes
// with the end of the body; a name that was not announced is dropped.
func (h *Handler) announced(trailer http.Header) http.Header {
	var out http.Header
	for name := range trailer {
		if h.mayTrail(name) {
			if out == nil {
				out = http.Header{}
			}
			out[name] = nil
		}
	}
	return out
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
