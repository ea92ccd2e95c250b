package proxy

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
)

// Identify finds out who sent a request before the gates see it. Its request
// carries an id in the configured header and in X-Request-Id, where gates read
// it: the one it came with, from a trusted proxy, if that is harmless, else a new
// one. Its RemoteAddr is the client's, with port 0 when a trusted proxy stands
// between, so that events and logs tell of the client. Its context ends with the
// deadline that the caller has sent. It goes outermost; the
// header map of the request is changed in place.
func (h *Handler) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := h.within(r)
		defer cancel()
		who := h.identify(r)
		var id []string
		if c, ok := ctx.(*requestContext); ok {
			c.caller, c.isKnown, c.id[0] = who, true, who.id
			c.isSpent = true // what stands behind keeps to that
			id = c.id[:1:1]
		} else {
			r = r.WithContext(&identified{ctx, who})
			id = []string{who.id}
		}
		if who.client != who.peer {
			r.RemoteAddr = netip.AddrPortFrom(who.client, 0).String()
		}
		h.keepCallers(r.Header, who.trusted)
		r.Header[h.config.RequestIDHeader] = id
		r.Header[requestIDHeader] = id
		next.ServeHTTP(w, r)
	})
}

// keepCallers leaves of the headers that say who calls what a trusted proxy has said
// last: what stands before it may be the client's.
func (h *Handler) keepCallers(header http.Header, trusted bool) {
	if len(h.config.CallerHeaders) == 0 {
		return
	}
	for name, lines := range header {
		plain, isDisguised := plainName(name)
		if !h.callerNames[plain] {
			continue
		}
		if !trusted || isDisguised && !slices.Contains(h.config.CallerHeaders, name) {
			delete(header, name)
		} else if len(lines) > 1 {
			header[name] = lines[len(lines)-1:]
		}
	}
}

type callerKey struct{}

// identified is the context of a request whose caller is known.
type identified struct {
	context.Context
	caller
}

func (i *identified) Value(key any) any {
	if key == (callerKey{}) {
		return &i.caller
	}
	return i.Context.Value(key)
}

// callerOf returns who sent the request, as Identify has found out if it stands
// in front.
func (h *Handler) callerOf(r *http.Request) caller {
	if known, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return *known
	}
	return h.identify(r)
}

func (h *Handler) identify(r *http.Request) caller {
	c := findCaller(r, h.config.TrustedProxies, h.config.CallerHeader)
	sent := r.Header.Get(h.config.RequestIDHeader)
	if !harmlessID(sent) {
		c.id = newID()
		return c
	}
	if (c.trusted || h.config.TrustRequestID) && !h.config.NewRequestIDs {
		c.id = sent
		return c
	}
	c.id, c.asked = newID(), sent
	return c
}

// IDs returns the id of a request that came through Identify, and what the client called
// it, if that was not taken for its id and is harmless; else that is empty. It is the
// client's claim: others may use the same.
func IDs(r *http.Request) (id, asked string) {
	if known, ok := r.Context().Value(callerKey{}).(*caller); ok {
		return known.id, known.asked
	}
	return "", ""
}

// newID returns 64 random bits in the form that the library gives its ids.
func newID() string {
	const digits = "0123456789abcdef"
	var id [16]byte
	n := rand.Uint64()
	for i := range id {
		id[i] = digits[n&15]
		n >>= 4
	}
	return string(id[:])
}

const maxID = 128

// harmlessID reports whether id can stand in a header, a log line and JSON as it
// is. It is the library's rule: an id that only one of the two takes would be two.
func harmlessID(id string) bool {
	if len(id) == 0 || len(id) > maxID {
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
	const members = "-_.:/+=@abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for i := range len(members) {
		harmless[members[i]] = true
	}
	return harmless
}()
