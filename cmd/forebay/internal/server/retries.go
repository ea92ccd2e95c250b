package server

import (
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	"example.com/forebay/cmd/forebay/internal/proxy"
)

// retries notes who was told to come back later, and sees who comes earlier. The same
// request of the same client is told by its address, method, URL, credentials and user
// agent: who is behind one address with others and asks for the same without credentials
// is taken for one with them. A place in the table is taken over by who is told later,
// so of very many some are missed. Make one with newRetries; it is safe for concurrent
// use.
type retries struct {
	seed  maphash.Seed
	began time.Time
	last  atomic.Int64              // until when somebody is to wait, in ms since it began; 0: nobody is
	told  [toldPlaces]atomic.Uint64 // the upper half of a key, and until when in ms
}

const (
	toldPlaces = 1 << 13
	// grace is how much too early is not counted: clients count whole seconds.
	grace = 100 * time.Millisecond
)

func newRetries() *retries { return &retries{seed: maphash.MakeSeed(), began: time.Now()} }

func (t *retries) since(now time.Time) int64 { return now.Sub(t.began).Milliseconds() }

// tell notes that the client of a request is to wait.
func (t *retries) tell(r *http.Request, wait time.Duration) {
	key := t.keyOf(r)
	until := t.since(time.Now().Add(wait - grace))
	t.told[key%toldPlaces].Store(key&^0xffffffff | uint64(uint32(until)))
	for {
		last := t.last.Load()
		if until <= last || t.last.CompareAndSwap(last, until) {
			return
		}
	}
}

// isEarly reports whether the client of a request was told to come later. While nobody
// is to wait it costs a load.
func (t *retries) isEarly(r *http.Request) bool {
	last := t.last.Load()
	if last == 0 {
		return false
	}
	now := t.since(time.Now())
	if now >= last {
		t.last.CompareAndSwap(last, 0)
		return false
	}
	key := t.keyOf(r)
	told := t.told[key%toldPlaces].Load()
	return told>>32 == key>>32 && uint32(now) < uint32(told)
}

func (t *retries) keyOf(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	addr := proxy.ClientIP(r, nil, "").As16()
	_, _ = h.Write(addr[:])
	for _, s := range [...]string{r.Method, r.RequestURI, first(r, "Authorization"), first(r, "Cookie"), first(r, "User-Agent")} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

func first(r *http.Request, header string) string {
	if lines := r.Header[header]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// seeRetry counts a request that comes too early, at the first gate of its route.
func (s *Server) seeRetry(st *state, r *http.Request, route string) {
	if s.retries.isEarly(r) {
		if gates := st.routes[route]; len(gates) > 0 {
			s.seen.Early(gates[0])
		}
	}
}
