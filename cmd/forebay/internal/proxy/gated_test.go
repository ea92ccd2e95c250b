package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

func newGate(t testing.TB, c forebay.Config) *forebay.Gate {
	t.Helper()
	g, err := forebay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestSL01UpstreamDropsTheAnswerHalfWay(t *testing.T) {
	noLeaks(t)
	const limit = 5
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		if strings.HasPrefix(u.head(r), "GET /whole") {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
	})
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: limit})
	g := inFront(t, u.url, nil, gate.Wrap)
	for round := range 4 {
		for range limit {
			g.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			if r := g.result(); r.Err == nil {
				t.Errorf("result %+v", r)
			}
		}
		eventually(t, "nothing is in flight", func() bool { return gate.Stats().InUse == 0 })
		if res, body := g.get("GET", "/whole", nil); res.StatusCode != 200 || body != "ok" {
			t.Errorf("round %d: the next request: %d %s", round, res.StatusCode, body)
		}
		g.result()
	}
	g.noMore()
}

func TestSL12SilentUpstream(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1})
	g := inFront(t, u.url, func(c *Config) { c.ResponseTimeout = 100 * time.Millisecond }, gate.Wrap)
	for _, accept := range []string{"*/*", "text/event-stream"} {
		res, body := g.get("GET", "/", nil, "Accept", accept)
		if res.StatusCode != 504 || !strings.Contains(body, `"gateway_timeout"`) {
			t.Errorf("%s: %d %s", accept, res.StatusCode, body)
		}
		eventually(t, "the slot is free", func() bool { return gate.Stats().InUse == 0 })
	}
}

// TestUpstreamNeverSeesMoreThanTheLimit: the upstream counts for itself.
func TestUpstreamNeverSeesMoreThanTheLimit(t *testing.T) {
	noLeaks(t)
	const limit, clients, each = 10, 100, 20
	var now, peak, served atomic.Int64
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		served.Add(1)
		<-time.After(2 * time.Millisecond) // the work
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: limit, MaxWait: time.Second, MaxWaiting: 3 * limit})
	g := inFront(t, url, func(c *Config) { c.IdlePerHost = limit }, gate.Wrap)
	var all sync.WaitGroup
	var ok, refused atomic.Int64
	for i := range clients {
		all.Go(func() {
			tr := &http.Transport{DialContext: guarded}
			defer tr.CloseIdleConnections()
			for j := range each {
				want := fmt.Sprintf("%d-%d", i, j)
				r, _ := http.NewRequest("POST", "http://"+g.addr, strings.NewReader(want))
				res, err := tr.RoundTrip(r)
				if err != nil {
					t.Error(err)
					return
				}
				got, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				switch {
				case res.StatusCode == 200 && string(got) == want:
					ok.Add(1)
				case res.StatusCode == 503:
					refused.Add(1)
				default:
					t.Errorf("answer %d %s", res.StatusCode, got)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d answered, %d refused, at most %d at once", ok.Load(), refused.Load(), peak.Load())
	if peak.Load() > limit || peak.Load() < limit/2 {
		t.Errorf("the upstream saw %d at once, want at most %d, and not much less", peak.Load(), limit)
	}
	if ok.Load() == 0 || refused.Load() == 0 {
		t.Error("want answers and refusals")
	}
	if ok.Load()+refused.Load() != clients*each || ok.Load() != served.Load() {
		t.Errorf("%d answered, %d refused, %d reached the upstream", ok.Load(), refused.Load(), served.Load())
	}
	eventually(t, "nothing is in flight", func() bool { s := gate.Stats(); return s.InUse == 0 && s.Waiting == 0 })
	if n := int64(len(g.results)); n != ok.Load() {
		t.Errorf("%d results for %d requests", n, ok.Load())
	}
}

// TestConservation: whatever ends a request, it is reported once and its slot is
// free.
func TestConservation(t *testing.T) {
	noLeaks(t)
	const limit, clients, each = 4, 8, 40
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch _, _ = io.Copy(io.Discard, r.Body); r.URL.Path {
		case "/slow":
			<-time.After(3 * time.Millisecond)
		case "/dies":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/endless":
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 1000))
			}
		}
	})
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: limit, MaxWait: 50 * time.Millisecond})
	g := inFront(t, up, nil, gate.Wrap)
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
			tr := &http.Transport{DialContext: guarded}
			if i%2 == 1 {
				tr = h2c()
			}
			defer tr.CloseIdleConnections()
			for range each {
				path := []string{"/", "/slow", "/dies", "/half", "/endless"}[random.IntN(5)]
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(8000))*time.Microsecond)
				r, _ := http.NewRequestWithContext(ctx, []string{"GET", "POST"}[random.IntN(2)], "http://"+g.addr+path, strings.NewReader("body"))
				if res, err := tr.RoundTrip(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				cancel()
			}
		})
	}
	all.Wait()
	eventually(t, "nothing is in flight", func() bool { s := gate.Stats(); return s.InUse == 0 && s.Waiting == 0 })
	if s := gate.Stats(); uint64(len(g.results)) != uint64(s.Accepted) {
		t.Errorf("%d results for %d accepted requests", len(g.results), s.Accepted)
	}
	for range limit {
		g.get("GET", "/", nil)
	}
}

// TestRJ11RefusalsNeverReachTheProxy: they are neither sent on nor tried again.
func TestRJ11RefusalsNeverReachTheProxy(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1})
	gate.SetLimit(0)
	g := inFront(t, u.url, nil, gate.Wrap)
	res, _ := g.get("GET", "/", nil)
	if res.StatusCode != 503 || res.Header.Get("Proxy-Status") == "" || len(u.heads()) != 0 {
		t.Errorf("answer %d %v, %d requests upstream", res.StatusCode, res.Header, len(u.heads()))
	}
	g.noMore()
}

// TestOneIDEverywhere: the gate's event, the upstream's header and the result
// agree on id and client.
func TestOneIDEverywhere(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	var recorder forebaytest.Recorder
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, Observers: []forebay.Observer{&recorder}})
	g := inFront(t, u.url, trust("127.0.0.0/8"), gate.Wrap)
	head := send(g, u, get1("X-Forwarded-For: 203.0.113.7", "X-Request-Id: abc"))
	e := recorder.Events()[0]
	if e.RequestID != "abc" || e.RemoteIP != "203.0.113.7" || field(head, "X-Request-Id") != "abc" {
		t.Errorf("event %+v, upstream %q", e, head)
	}
	head = send(g, u, get1())
	e = recorder.Events()[2]
	if e.RequestID == "" || e.RequestID != field(head, "X-Request-Id") || e.RemoteIP != "127.0.0.1" {
		t.Errorf("event %+v, upstream %q", e, head)
	}
}

// TestOutcomeReachesTheLease: Done finds the lease in the request's context.
func TestOutcomeReachesTheLease(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) })
	var recorder forebaytest.Recorder
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, LeaseInContext: true, Observers: []forebay.Observer{&recorder}})
	g := inFront(t, up, func(c *Config) {
		report := c.Done
		c.Done = func(r Result) {
			if lease, ok := forebay.LeaseFrom(r.Request.Context()); ok {
				lease.ReleaseAs(r.Outcome)
			}
			report(r)
		}
	}, gate.Wrap)
	g.get("GET", "/", nil)
	g.result()
	if e := recorder.Events()[1]; e.Kind != forebay.EventReleased || e.Outcome != forebay.OutcomeOverloaded {
		t.Errorf("event %+v", e)
	}
	if s := gate.Stats(); s.InUse != 0 || s.StaleReleases != 0 {
		t.Errorf("stats %+v", s)
	}
}
