package forebay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// departed is a middleware after which the caller counts as gone, although its
// connection is still there: before the gate is asked, or while it waits in line.
func departed(g *Gate, inLine bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, leave := context.WithCancel(r.Context())
		defer leave()
		if !inLine {
			leave()
		} else {
			go func() {
				for g.Stats().Waiting == 0 && ctx.Err() == nil {
					runtime.Gosched()
				}
				leave()
			}()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// hidden hides what the server's writer can do, as careless middleware does.
type hidden struct{ http.ResponseWriter }

func hiding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(hidden{w}, r) })
}

// leftServer answers nobody: every caller of it leaves.
func leftServer(t *testing.T, version int, inLine, hides bool) (*Gate, *httptest.Server, *serverLog) {
	t.Helper()
	g := httpGate(t, Config{MaxInFlight: 1, MaxWait: time.Minute})
	if inLine {
		lease, _ := g.TryAcquire(Call{})
		t.Cleanup(lease.Release)
	}
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	if hides {
		h = hiding(h)
	}
	srv, complaints := listen(t, version, departed(g, inLine, h))
	return g, srv, complaints
}

func eachDeparture(t *testing.T, version int, test func(t *testing.T, hides bool, srv *httptest.Server)) {
	for i := range 4 {
		inLine, hides := i&1 > 0, i&2 > 0
		t.Run(fmt.Sprintf("inLine=%v,hides=%v", inLine, hides), func(t *testing.T) {
			g, srv, complaints := leftServer(t, version, inLine, hides)
			test(t, hides, srv)
			if st := g.Stats(); st.Canceled == 0 || st.Rejected() > 0 || st.Waiting > 0 {
				t.Errorf("%+v", st)
			}
			if text := complaints.String(); text != "" {
				t.Errorf("the server complains: %s", text)
			}
		})
	}
}

// Not a byte goes to a caller that left, not even net/http's own empty 200: the
// connection just closes, whether the request had a body, and whether it came.
func TestDepartedCallerGetsNoByte(t *testing.T) {
	whole := []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n",
	}
	parts := []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n",
	}
	eachDeparture(t, 1, func(t *testing.T, hides bool, srv *httptest.Server) {
		requests := whole
		if !hides { // else net/http, which cannot be told, waits for the rest before it closes
			requests = slices.Concat(whole, parts)
		}
		for _, request := range requests {
			conn := dial(t, srv)
			conn.send(request)
			if got := conn.rest(); got != "" {
				t.Errorf("%q got %q", request, got)
			}
		}
	})
}

// Over HTTP/2 the stream is reset; others on the connection go on.
func TestDepartedCallerGetsAReset(t *testing.T) {
	eachDeparture(t, 2, func(t *testing.T, _ bool, srv *httptest.Server) {
		for range 50 {
			r := newGet(t, srv.URL)
			if res, err := srv.Client().Do(r); err == nil {
				res.Body.Close()
				t.Fatalf("got %d", res.StatusCode)
			} else if !strings.Contains(err.Error(), "stream error") {
				t.Fatalf("got %v", err)
			}
		}
	})
}

// QU-19's other half: whoever leaves the line is out of it, and its handler never
// runs, also when the slot comes free in that moment.
func TestWaitingCallerThatHangsUpNeverRuns(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		seen := &httpEvents{}
		g := httpGate(t, Config{MaxInFlight: 1, MaxWait: time.Minute, MaxWaiting: 4, Observers: []Observer{seen}})
		var ran atomic.Int64
		srv, complaints := listen(t, version, g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran.Add(1) })))
		leave := occupy(t, g)
		ctx, hangUp := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := srv.Client().Do(newGet(t, srv.URL).WithContext(ctx))
			ended <- err
		}()
		waitUntil(t, "it waits", func() bool { return g.Stats().Waiting == 1 })
		hangUp()
		if err := <-ended; err == nil {
			t.Error("it was answered")
		}
		waitUntil(t, "it is out of the line", func() bool { return g.Stats().Waiting == 0 })
		leave()
		if n := ran.Load(); n != 0 {
			t.Errorf("the handler ran %d times", n)
		}
		if st := g.Stats(); st.Canceled != 1 {
			t.Errorf("%+v", st)
		}
		if res := fetch(t, srv, newGet(t, srv.URL)); res.StatusCode != http.StatusOK || ran.Load() != 1 {
			t.Errorf("the next: %d, handler ran %d times", res.StatusCode, ran.Load())
		}
		untilIdle(t, g)
		wantConserved(t, g)
		if text := complaints.String(); text != "" {
			t.Errorf("the server complains: %s", text)
		}
	})
}

// QU-19: what does not fit is answered in full, and wire, count and event agree.
func TestQU19FullGateAnswersCompletely(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		seen := &httpEvents{}
		g := httpGate(t, Config{Name: "reports", MaxInFlight: 1, Observers: []Observer{seen}})
		entered, end := make(chan struct{}), make(chan struct{})
		srv, _ := listen(t, version, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-end
			_, _ = io.WriteString(w, "done")
		})))
		first := make(chan fetched, 1)
		go func() { first <- fetch(t, srv, newGet(t, srv.URL)) }()
		<-entered
		second := fetch(t, srv, newGet(t, srv.URL))
		close(end)
		if res := <-first; res.StatusCode != http.StatusOK || string(res.body) != "done" {
			t.Errorf("the first: %d %q", res.StatusCode, res.body)
		}
		body := parseRefusal(t, second.body)
		if second.StatusCode != http.StatusServiceUnavailable || second.err != nil || second.ContentLength != int64(len(second.body)) {
			t.Errorf("the second: %d, length %d, %q, %v", second.StatusCode, second.ContentLength, second.body, second.err)
		}
		var refused []Event
		for _, e := range seen.all() {
			if e.Decision.Refused() {
				refused = append(refused, e)
			}
		}
		if len(refused) != 1 || refused[0].Decision.String() != body.Reason || refused[0].RequestID != body.RequestID {
			t.Errorf("events %+v, body %+v", refused, body)
		}
		if st := g.Stats(); st.RejectedBusy != 1 || st.Rejected() != 1 {
			t.Errorf("counts %+v", st)
		}
	})
}

// fullServer refuses everybody.
func fullServer(t *testing.T, version int, wrap func(http.Handler) http.Handler) (*Gate, *httptest.Server) {
	t.Helper()
	g := httpGate(t, Config{MaxInFlight: 1})
	occupy(t, g)
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	srv, _ := listen(t, version, wrap(h))
	return g, srv
}

func asItIs(h http.Handler) http.Handler { return h }

// RJ-13: a HEAD that is refused leaves the connection in order for the next one.
func TestRJ13ConnectionGoesOnAfterHead(t *testing.T) {
	_, srv := fullServer(t, 1, asItIs)
	conn := dial(t, srv)
	conn.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
	head, get := conn.answer("HEAD"), conn.answer("GET")
	if head.StatusCode != 503 || get.StatusCode != 503 || head.Close || get.err != nil {
		t.Errorf("HEAD %d (close %v), GET %d, %v", head.StatusCode, head.Close, get.StatusCode, get.err)
	}
	if l := head.Header.Get("Content-Length"); l != "" && l != get.Header.Get("Content-Length") {
		t.Errorf("Content-Length of HEAD %q, of GET %q", l, get.Header.Get("Content-Length"))
	}
	parseRefusal(t, get.body)
	if conn.br.Buffered() > 0 {
		t.Error("more bytes follow")
	}
}

// The body is not needed: whoever asks first is not told to go on.
func TestRefusalComesInsteadOf100Continue(t *testing.T) {
	_, srv := fullServer(t, 1, asItIs)
	for _, length := range []int{10, 1 << 20} {
		conn := dial(t, srv)
		conn.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", length))
		if res := conn.answer("POST"); res.StatusCode != 503 || !res.Close || res.err != nil {
			t.Errorf("%d bytes: %d, close %v, %v", length, res.StatusCode, res.Close, res.err)
		}
	}
}

// Nor is it read: a big one is not waited for, and a small one, which net/http
// reads to its end, leaves the connection in order.
func TestRefusalDoesNotNeedTheBody(t *testing.T) {
	_, srv := fullServer(t, 1, asItIs)
	conn := dial(t, srv)
	conn.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	if res := conn.answer("POST"); res.StatusCode != 503 || !res.Close {
		t.Errorf("a big body: %d, close %v", res.StatusCode, res.Close)
	}
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
	} {
		conn := dial(t, srv)
		for range 3 {
			conn.send(request)
			if res := conn.answer("POST"); res.StatusCode != 503 || res.Close || res.err != nil {
				t.Errorf("%q: %d, close %v, %v", request, res.StatusCode, res.Close, res.err)
			}
		}
	}
}

// Over HTTP/2 no body is waited for.
func TestRefusalDoesNotNeedTheBodyOverHTTP2(t *testing.T) {
	_, srv := fullServer(t, 2, asItIs)
	in, out := io.Pipe()
	defer out.Close()
	r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, in)
	if err != nil {
		t.Fatal(err)
	}
	if res := fetch(t, srv, r); res.StatusCode != 503 {
		t.Errorf("got %d", res.StatusCode)
	}
}

// A refusal goes out whole through writers that hide the server's.
func TestRefusalThroughAHidingWriter(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		_, srv := fullServer(t, version, hiding)
		res := fetch(t, srv, newGet(t, srv.URL))
		parseRefusal(t, res.body)
		if res.StatusCode != 503 || res.err != nil {
			t.Errorf("%d, %v", res.StatusCode, res.err)
		}
	})
}

// A draining server sends its connections away: over HTTP/2 by GOAWAY, and the
// header, which has no place there, is not sent.
func TestDrainEndsConnections(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{MaxInFlight: 1})
		srv, _ := listen(t, version, g.Wrap(http.HandlerFunc(echoOK)))
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			res := fetch(t, srv, newGet(t, srv.URL))
			if res.StatusCode != 503 || res.Close != (version == 1) || version == 2 && res.Header.Get("Connection") != "" {
				t.Errorf("%s %d, close %v, %v", res.Proto, res.StatusCode, res.Close, res.Header)
			}
		}
	})
}
