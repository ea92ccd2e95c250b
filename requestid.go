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

// CallOf describes a request to [Gate.Acquire], as [Gate.Wrap] does: by the pattern
// by which net/http's ServeMux found the handler, the request's id and the peer's
// address. It puts the id into the answer's X-Request-Id header, so that a [Refuse],
// the application's logs and the client have the same one.
func CallOf(w http.ResponseWriter, r *http.Request) Call {
	id := requestID(w, r)
	w.Header()[requestIDHeader] = []string{id}
	return Call{Route: r.Pattern, RequestID: id, RemoteIP: remoteIP(r)}
}

// requestID returns what the answer says already that the request is called, or
// what the client or a proxy in front calls it, if that is harmless to repeat; else
// a new random one.
func requestID(w http.ResponseWriter, r *http.Request) string {
	for _, h := range [...]http.Header{w.Header(), r.Header} {
		if ids := h[requestIDHeader]; len(ids) > 0 && harmlessID(ids[0]) {
			return ids[0]
		}
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
	for i := range len(id) {
		if !harmlessBytes[id[i]] {
			return false
		}
	}
	return true
}

// harmlessBytes is a table because every request is looked at.
var harmlessBytes = func() (harmless [256]bool) {
	for c := range harmless {
		harmless[c] = isAlphanumeric(rune(c)) || strings.ContainsRune("-_.:/+=@", rune(c))
	}
	return harmless
}()

// remoteIP returns the address of the peer without its port and zone.
func remoteIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	host, _, _ = strings.Cut(host, "%")
	return host
}
