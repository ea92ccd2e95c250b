package forebay

import (
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Retries finds out which requests come again: by what they say of themselves, and by a
// key that all attempts at one thing have in common. Those go one lane lower while others
// wait; see [Call.Again]. A caller who claims it falsely harms nobody else. Give it to
// gates as [Config.Retries]; several may share one, and then a request that one has
// refused comes again at each. Make one with [NewRetries], the zero value is not usable;
// it is safe for concurrent use and has nothing to close.
type Retries struct {
	attempt, key string // names of headers; empty: none
	seed         maphash.Seed
	some         atomic.Bool // there are keys that were refused

	mu    sync.Mutex             // guards what follows
	keys  [2]map[uint64]struct{} // that were refused, salted and hashed; the younger ones first
	began time.Time              // the younger ones
}

// RetriesConfig says how requests tell that they come again. One of the two is needed.
type RetriesConfig struct {
	// AttemptHeader names the header in which a caller says how often it has tried before:
	// a whole number, above 0 for a request that comes again. Empty: there is none.
	AttemptHeader string
	// KeyHeader names the header with what all attempts at one thing have in common, as
	// Idempotency-Key has, up to 256 bytes. A request comes again if one from the same
	// address with the same key was refused within the last minute. Empty: there is none.
	KeyHeader string
}

const (
	longestKey = 256
	// keptFor is how long a refused key is remembered, at least; at most for twice as long.
	// Most callers that come again do so within half of it.
	keptFor = time.Minute
	// keptKeys is after how many refused keys the older half is forgotten sooner. Twice
	// that many take one MiB.
	keptKeys = 16 << 10
)

// NewRetries returns one that has seen nothing, or every mistake at once.
func NewRetries(c RetriesConfig) (*Retries, error) {
	var errs []error
	for _, f := range []struct{ name, header string }{{"AttemptHeader", c.AttemptHeader}, {"KeyHeader", c.KeyHeader}} {
		if f.header != "" && !isFieldName(f.header) {
			errs = append(errs, fmt.Errorf("forebay: RetriesConfig.%s is %q; it must be the name of a header", f.name, f.header))
		}
	}
	if c == (RetriesConfig{}) {
		errs = append(errs, errors.New("forebay: RetriesConfig names no header; set AttemptHeader or KeyHeader"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Retries{
		attempt: http.CanonicalHeaderKey(c.AttemptHeader), key: http.CanonicalHeaderKey(c.KeyHeader), seed: maphash.MakeSeed(),
		keys: [2]map[uint64]struct{}{{}, {}}, began: clock(),
	}, nil
}

// isAgain reports whether a request comes again. It reads the clock only if the request
// has a key and some were refused.
func (t *Retries) isAgain(r *http.Request) bool {
	if t.attempt != "" && isAttempt(headerOf(r, t.attempt)) {
		return true
	}
	if !t.some.Load() {
		return false
	}
	key, ok := t.keyOf(r)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(clock(), false)
	_, young := t.keys[0][key]
	_, old := t.keys[1][key]
	return young || old
}

// refused remembers the key of a request that was turned away.
func (t *Retries) refused(r *http.Request) {
	key, ok := t.keyOf(r)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turnLocked(clock(), len(t.keys[0]) >= keptKeys)
	t.keys[0][key] = struct{}{}
	t.some.Store(true)
}

// turnLocked forgets what is over, and the older half if there is no more room.
func (t *Retries) turnLocked(now time.Time, full bool) {
	passed := now.Sub(t.began)
	if passed < keptFor && !full {
		return
	}
	t.keys[0], t.keys[1] = t.keys[1], t.keys[0]
	clear(t.keys[0])
	if passed >= 2*keptFor {
		clear(t.keys[1])
	}
	t.began = now
	t.some.Store(len(t.keys[1]) > 0)
}

// isAttempt reports whether s is a whole number above 0.
func isAttempt(s string) bool {
	const longest = 9
	digits := strings.Trim(s, "0123456789") == "" && len(s) <= longest
	return digits && strings.Trim(s, "0") != ""
}

// keyOf returns what a request's key and its caller's address are told apart by:
// another's key can be known, and must not be of use.
func (t *Retries) keyOf(r *http.Request) (key uint64, ok bool) {
	text := headerOf(r, t.key)
	if text == "" || len(text) > longestKey {
		return 0, false
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		ip := at.Addr().As16()
		known := ip[:]
		if !at.Addr().Unmap().Is4() {
			known = known[:defaultIPv6Prefix/8]
		}
		_, _ = h.Write(known)
	}
	_, _ = h.WriteString(text)
	return h.Sum64(), true
}

// retriesOf returns the first of several gates' that there is.
func retriesOf(gates []*Gate) *Retries {
	for _, g := range gates {
		if t := g.settings.Load().Retries; t != nil {
			return t
		}
	}
	return nil
}
