package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

// shortPatience is for answers alone: connections have the time that they need.
const shortPatience = 30 * time.Millisecond

func (h *Handler) patience(d time.Duration) {
	if h.config.ResponseTimeout = d; h.transports.lean != nil {
		h.transports.lean.patience = d
	}
}

// lateRig is a proxy with no patience behind a gate, before an upstream that works for as
// long as it is told.
type lateRig struct {
	*rig
	gate    *forebay.Gate
	remains *Remains
	working atomic.Int64 // requests at the upstream
	told    atomic.Int64 // of them, that their client had gone
	let     chan struct{}
}

func newLateRig(t testing.TB, scheme string, change func(*Config)) *lateRig {
	t.Helper()
	l := &lateRig{remains: NewRemains(), let: make(chan struct{})}
	up := strings.Replace(backend(t, l.work), "http:", scheme+":", 1)
	l.gate = newGate(t, forebay.Config{Name: "g", MaxInFlight: 1})
	l.rig = inFront(t, up, func(c *Config) {
		c.StillRunning, c.Remains = time.Hour, l.remains
		if change != nil {
			change(c)
		}
	}, func(h http.Handler) http.Handler {
		gated := l.gate.HandlerFunc(h.(*Handler).Serve)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/exempt" {
				h.ServeHTTP(w, r)
				return
			}
			gated.ServeHTTP(w, r)
		})
	})
	l.proxy.patience(shortPatience)
	t.Cleanup(func() {
		l.remains.End()
		l.is(0, 0)
		if st := l.gate.Stats(); st.StaleReleases > 0 || st.Granted != st.Released || l.remains.Size() > 0 {
			t.Errorf("%+v", st)
		}
	})
	return l
}

func (l *lateRig) work(w http.ResponseWriter, r *http.Request) {
	l.working.Add(1)
	defer l.working.Add(-1)
	if r.URL.Path == "/quick" {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	select {
	case <-l.let:
	case <-r.Context().Done():
		l.told.Add(1)
		return
	}
	switch r.URL.Path {
	case "/large":
		_, _ = w.Write(make([]byte, large))
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		_, _ = io.WriteString(w, "done")
	}
}

// is waits until so many slots are taken, and so much still runs for nobody.
func (l *lateRig) is(inUse, stillRunning int) {
	l.Helper()
	eventually(l, fmt.Sprintf("%d in use, %d still running", inUse, stillRunning), func() bool {
		st := l.gate.Stats()
		return st.InUse == inUse && st.StillRunning == stillRunning
	})
}

// timesOut sends a request that is answered 504.
func (l *lateRig) timesOut(method, path string, body io.Reader) {
	l.Helper()
	res, text := l.get(method, path, body)
	if res.StatusCode != 504 || !strings.Contains(text, `"gateway_timeout"`) || res.Header.Get("Proxy-Status") != "forebay; error=http_response_timeout" {
		l.Errorf("%s: %d %s", path, res.StatusCode, text)
	}
	var timeout net.Error
	if r := l.result(); !errors.As(r.Err, &timeout) || !timeout.Timeout() || r.Outcome != forebay.OutcomeOverloaded {
		l.Errorf("%+v", r)
	}
}

// TestSL12TimedOutStillRunning: the slot is taken until the upstream has answered, in
// whatever way, and nobody else runs beside its work.
func TestSL12TimedOutStillRunning(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct{ scheme, transport string }{{"http", ""}, {"http", TransportStandard}, {"h2c", ""}} {
		l := newLateRig(t, c.scheme, func(config *Config) { config.Transport = c.transport })
		for _, path := range []string{"/", "/large", "/events"} {
			l.timesOut("POST", path, strings.NewReader("body"))
			l.is(1, 1)
			if res, _ := l.get("GET", "/quick", nil); res.StatusCode != 503 {
				t.Errorf("beside it: %d", res.StatusCode)
			}
			eventually(t, "the upstream has it", func() bool { return l.working.Load() == 1 })
			l.let <- struct{}{}
			l.is(0, 0)
			if l.told.Load() > 0 {
				t.Errorf("%s: the upstream was told that the client has gone", path)
			}
			eventually(t, "the upstream is rid of it", func() bool { return l.working.Load() == 0 })
		}
	}
}

// TestTimedOutUpgrade: who asks for another protocol, as some clients do with each request,
// keeps its slot no less.
func TestTimedOutUpgrade(t *testing.T) {
	noLeaks(t)
	for _, transport := range []string{TransportLean, TransportStandard} {
		l := newLateRig(t, "http", func(c *Config) { c.Transport = transport })
		if res, _ := l.get("GET", "/", nil, "Connection", "Upgrade", "Upgrade", "h2c"); res.StatusCode != 504 {
			t.Errorf("%s: status %d", transport, res.StatusCode)
		}
		l.is(1, 1)
		if l.told.Load() != 0 {
			t.Errorf("%s: the connection was closed", transport)
		}
		close(l.let)
		l.is(0, 0)
	}
}

// TestSL12TimedOutForTooLong: what hangs gives its slot back in the end.
func TestSL12TimedOutForTooLong(t *testing.T) {
	noLeaks(t)
	for _, transport := range []string{"", TransportStandard} {
		l := newLateRig(t, "http", func(c *Config) { c.Transport, c.StillRunning = transport, 50*time.Millisecond })
		l.timesOut("GET", "/", nil)
		l.is(0, 0)
		eventually(t, "the upstream is told", func() bool { return l.told.Load() == 1 })
	}
}

// TestTimedOutWithoutASlot: there is nothing to keep, so the upstream is told.
func TestTimedOutWithoutASlot(t *testing.T) {
	noLeaks(t)
	for i, path := range []string{"/", "/exempt", "/", "/exempt"} {
		l := newLateRig(t, "http", func(c *Config) {
			if i > 1 {
				c.Transport = TransportStandard
			}
			if path == "/" {
				c.StillRunning = 0
			}
		})
		l.timesOut("GET", path, nil)
		l.is(0, 0)
		eventually(t, "the upstream is told", func() bool { return l.told.Load() == 1 })
	}
}

// TestTimedOutAtTheEnd: of the program, which closes the connections.
func TestTimedOutAtTheEnd(t *testing.T) {
	noLeaks(t)
	for _, transport := range []string{"", TransportStandard} {
		l := newLateRig(t, "http", func(c *Config) { c.Transport = transport })
		l.timesOut("GET", "/", nil)
		l.is(1, 1)
		l.remains.End()
		l.is(0, 0)
		l.timesOut("GET", "/", nil) // nothing is kept any more
		l.is(0, 0)
	}
}

// TestTimedOutUpstreamDies: with it ends the work.
func TestTimedOutUpstreamDies(t *testing.T) {
	noLeaks(t)
	die := make(chan struct{})
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		u.head(r)
		<-die
	})
	l := newLateRig(t, "http", nil)
	gone := inFront(t, u.url, func(c *Config) {
		c.StillRunning, c.Remains = time.Hour, l.remains
	}, func(h http.Handler) http.Handler { return l.gate.HandlerFunc(h.(*Handler).Serve) })
	gone.proxy.patience(shortPatience)
	if res, _ := gone.get("GET", "/", nil); res.StatusCode != 504 {
		t.Errorf("%d", res.StatusCode)
	}
	l.is(1, 1)
	close(die)
	l.is(0, 0)
}

// TestTimedOutOrNot: answers that begin in the very instant are whole or 504, and never
// both, and each slot comes back once.
func TestTimedOutOrNot(t *testing.T) {
	for _, transport := range []string{"", TransportStandard} {
		timedOutOrNot(t, transport)
	}
}

func timedOutOrNot(t *testing.T, transport string) {
	noLeaks(t)
	remains := NewRemains()
	defer remains.End()
	const work = 3 * time.Millisecond
	up := backend(t, func(w http.ResponseWriter, _ *http.Request) {
		<-time.After(work)
		_, _ = io.WriteString(w, "in time")
	})
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1000})
	g := inFront(t, up, func(c *Config) { c.Transport, c.StillRunning, c.Remains = transport, time.Hour, remains }, func(h http.Handler) http.Handler {
		return gate.HandlerFunc(h.(*Handler).Serve)
	})
	g.proxy.patience(work + work/3)
	var all sync.WaitGroup
	var inTime, late atomic.Int64
	tr := &http.Transport{MaxIdleConnsPerHost: 8}
	defer tr.CloseIdleConnections()
	for range 8 {
		all.Go(func() {
			for range 40 {
				r, _ := http.NewRequestWithContext(context.Background(), "GET", "http://"+g.addr, nil)
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				switch {
				case res.StatusCode == 200 && string(body) == "in time" && err == nil:
					inTime.Add(1)
				case res.StatusCode == 504 && err == nil:
					late.Add(1)
				default:
					t.Errorf("%d %q %v", res.StatusCode, body, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d in time, %d late", inTime.Load(), late.Load())
	eventually(t, "every slot is back", func() bool {
		st := gate.Stats()
		return st.InUse == 0 && st.StillRunning == 0 && st.Granted == st.Released
	})
	if st := gate.Stats(); st.StaleReleases > 0 || st.Granted != 320 {
		t.Errorf("%+v", st)
	}
}
