package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

// TestCallerLeavesBeforeTheAnswer: the upstream is told, nothing is written.
func TestCallerLeavesBeforeTheAnswer(t *testing.T) {
	noLeaks(t)
	came, gone := make(chan bool, 1), make(chan bool, 1)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- true
		<-r.Context().Done()
		gone <- true
	})
	for name, request := range map[string]string{
		"GET":  "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"POST": "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
	} {
		g := inFront(t, up, nil)
		c := g.dial()
		_, _ = io.WriteString(c, request)
		<-came
		_ = c.(*net.TCPConn).CloseWrite() // still listening: it must hear nothing
		if got, _ := io.ReadAll(c); len(got) != 0 {
			t.Errorf("%s: written for a caller that left: %q", name, got)
		}
		<-gone
		if r := g.result(); r.Status != 499 || r.Outcome != forebay.OutcomeAborted || r.Err != errLeft {
			t.Errorf("%s: result %+v", name, r)
		}
		g.noMore()
	}
}

// TestCallerLeavesInItsUpload: the fault is not the upstream's.
func TestCallerLeavesInItsUpload(t *testing.T) {
	noLeaks(t)
	came := make(chan bool, 1)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		came <- true
		_, _ = io.Copy(io.Discard, r.Body)
	})
	for _, reset := range []bool{false, true} {
		g := inFront(t, up, nil)
		c := g.dial()
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nbegin")
		<-came
		if reset {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
		_ = c.Close()
		if r := g.result(); r.Status != 499 || r.Outcome != forebay.OutcomeAborted {
			t.Errorf("reset %v: result %+v", reset, r)
		}
		g.noMore()
	}
}

// TestSL13CallerLeavesInLineInItsUpload: its place is free at once, and the upstream never
// sees it. A large body is not read ahead, so only the socket can tell.
func TestSL13CallerLeavesInLineInItsUpload(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sockets are asked on Linux only")
	}
	noLeaks(t)
	var reached atomic.Int64
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
	})
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, MaxWait: time.Hour})
	running, ok := gate.TryAcquire(forebay.Call{})
	if !ok {
		t.Fatal("no slot")
	}
	g := inFront(t, up, nil, gate.Wrap)
	for _, leave := range []func(*net.TCPConn) error{(*net.TCPConn).Close, (*net.TCPConn).CloseWrite, func(c *net.TCPConn) error {
		_ = c.SetLinger(0)
		return c.Close()
	}} {
		c := g.dial()
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\nbegin")
		eventually(t, "it waits", func() bool { return gate.Stats().Waiting == 1 })
		_ = leave(c.(*net.TCPConn))
		eventually(t, "it has left the line", func() bool { return gate.Stats().Waiting == 0 })
	}
	running.Release()
	if n := reached.Load(); n != 0 || gate.Stats().InUse != 0 {
		t.Errorf("%d reached the upstream; %+v", n, gate.Stats())
	}
}

// TestSL02ClientClosesAProxiedStreamHalfWay: aborted, not an error, nothing glued on.
func TestSL02ClientClosesAProxiedStreamHalfWay(t *testing.T) {
	noLeaks(t)
	gone := make(chan bool, 1)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		gone <- true
	})
	g := inFront(t, up, nil)
	for _, method := range []string{"h1", "h2"} {
		tr := &http.Transport{DialContext: guarded}
		if method == "h2" {
			tr = h2c()
		}
		r, _ := http.NewRequest("GET", "http://"+g.addr+"/events", nil)
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: 1\n" || err != nil {
			t.Errorf("%s: first event %q, %v", method, line, err)
		}
		_ = res.Body.Close()
		tr.CloseIdleConnections()
		<-gone
		if r := g.result(); r.Status != 499 || r.Outcome != forebay.OutcomeAborted || r.Bytes != 9 {
			t.Errorf("%s: result %+v", method, r)
		}
		g.noMore()
	}
}

// TestSlowReaderThatLeaves: the write fails, not the read.
func TestSlowReaderThatLeaves(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 64<<20)) })
	g := inFront(t, up, nil)
	c := g.dial()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	_, _ = c.Read(make([]byte, 1000))
	_ = c.Close()
	if r := g.result(); r.Status != 499 || r.Outcome != forebay.OutcomeAborted || r.Err == nil {
		t.Errorf("result %+v", r)
	}
	g.noMore()
}

// TestPanicOfOurOwn: a panic of the writer in front goes up untouched and is
// reported.
func TestPanicOfOurOwn(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {})
	var seen any
	g := inFront(t, up, nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { seen = recover() }()
			next.ServeHTTP(panicky{w}, r)
		})
	})
	g.get("GET", "/", nil)
	if r := g.result(); r.Err != errPanic || r.Outcome != forebay.OutcomeIgnored || seen != "broken writer" {
		t.Errorf("result %+v, panic %v", r, seen)
	}
	g.noMore()
}

type panicky struct{ http.ResponseWriter }

func (panicky) WriteHeader(int) { panic("broken writer") }
