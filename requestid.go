package forebay

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
)

const (
	requestIDHeader = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns what the client or a proxy in front calls the request, if
// that is harmless to repeat; else a new random one.
func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); harmlessID(id) {
		return id
	}
	const digits = "0123456789abcdef"
	var id [16]byte
	n := rand.Uint64()
	for i := range id {
		id[i] = digits[n&15]
		n >>= 4
	}
	return string(id[:])
}

// harmlessID reports whether id can stand in a header, a log line and JSON as it
// is.
func harmlessID(id string) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	return strings.IndexFunc(id, func(c rune) bool {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			return false
		}
		return !strings.ContainsRune("-_.:/+=@", c)
	}) < 0
}

// remoteIP returns the address of the peer without its port and zone.
func remoteIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	host, _, _ = strings.Cut(host, "%")
	return host
}
