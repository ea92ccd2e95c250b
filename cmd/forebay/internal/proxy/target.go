package proxy

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

var (
	errConnect = errors.New("proxy: CONNECT is not handed on")
	errTarget  = errors.New("proxy: the request target is neither a path nor a URL, or has blanks in it")
)

// target is what the request line names, as the client sent it.
type target struct {
	path  string
	query string // with its question mark, if it has one
}

// requestTarget cuts the target out of the request line. net/url's reading of it
// is not enough: it re-escapes what it finds in a form other than its own.
func requestTarget(r *http.Request) (target, bool) {
	t := r.RequestURI
	if t == "" { // not from a server
		t = r.URL.RequestURI()
	}
	if !strings.HasPrefix(t, "/") {
		_, rest, isURL := strings.Cut(t, "://")
		if !isURL {
			return target{}, false
		}
		if i := strings.IndexAny(rest, "/?"); i < 0 {
			t = "/"
		} else if t = rest[i:]; t[0] == '?' {
			t = "/" + t
		}
	}
	if strings.IndexFunc(t, blankOrControl) >= 0 {
		return target{}, false // it would end the request line early
	}
	path, query := t, ""
	if i := strings.IndexByte(t, '?'); i >= 0 {
		path, query = t[:i], t[i:]
	}
	return target{path: strings.ReplaceAll(path, "#", "%23"), query: query}, true
}

func blankOrControl(c rune) bool { return c <= ' ' || c == 0x7f }

// url makes the URL of which net/http writes the request line base + t.
func (t target) url(scheme, host, base string) *url.URL {
	u := &url.URL{Scheme: scheme, Host: host, Opaque: base + t.path}
	if t.query != "" {
		u.RawQuery = t.query[1:]
		u.ForceQuery = u.RawQuery == ""
	}
	if strings.HasPrefix(u.Opaque, "//") {
		// Opaque is written as it is, but two slashes at its start make it a host.
		// A path is not, and is written as RawPath has it where that is valid.
		raw := u.Opaque
		u.Opaque = ""
		if path, err := url.PathUnescape(raw); err == nil {
			u.Path, u.RawPath = path, raw
		} else {
			u.Path = raw // net/http has refused such a request long before
		}
	}
	return u
}
