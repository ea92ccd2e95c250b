package forebaytest

import (
	"context"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// endings returns all of them.
func endings() []lifeEnding {
	return slices.Concat(endingsOfAnswers, endingsOfCallers, endingsOfBodies, endingsInLine, endingsOfStreams, endingsOfServers)
}

// answered returns an ending in which a request without a body has that answer.
func answered(path string, status int) func(*life) {
	return func(l *life) { l.call("GET", path, 0, "").expect(status) }
}

// endingsOfAnswers are the work's own.
var endingsOfAnswers = []lifeEnding{
	{"an answer", both, nil, answered("/", 200)},
	{"an answer that nobody wrote", both, nil, answered("/nothing", 200)},
	{"trailers and early hints", both, nil, answered("/trailers", 200)},
	{"HEAD", both, nil, func(l *life) { l.call("HEAD", "/", 0, "").expect(200) }},
	{"SL-01 an abort before the answer", both, nil, answered("/abort", breaksOff)},
	{"SL-01 an abort in the middle", both, nil, answered("/half", breaksOff)},
	{"an answer shorter than it says", both, nil, answered("/short", whatever)},
	{"SL-15 a panic", both, nil, answered("/panic", breaksOff)},
}

// endingsOfCallers are those of a client that leaves.
var endingsOfCallers = []lifeEnding{
	{"SL-13 the caller leaves while it runs", both, nil, func(l *life) {
		c := l.call("GET", "/attentive", 0, "")
		l.running(1)
		c.leave()
		l.running(0)
	}},
	{"SL-13 the caller hangs up while it runs", both, nil, func(l *life) {
		c := l.call("GET", "/attentive", 0, "")
		l.running(1)
		c.raw.Hangup()
		l.running(0)
	}},
	{"the caller closes one half while it runs", onlyOne, nil, func(l *life) {
		c := l.call("GET", "/attentive", 0, "")
		l.running(1)
		c.raw.CloseWrite()
		l.running(0)
	}},
	{"SL-14 the caller leaves and the work goes on", both, nil, func(l *life) {
		left, ran := l.work.left.Load(), l.work.ran.Load()
		c := l.call("GET", "/held", 0, "")
		l.running(1)
		c.leave()
		Eventually(l, "the work is told", func() bool { return l.work.left.Load() > left })
		if !l.sys.ReleasesDeparted { // then nobody may run beside it
			for range lifeSize {
				l.call("GET", "/held", 0, "")
			}
			l.running(lifeSize)
			l.waiting(1)
			l.work.letAllGo()
			Eventually(l, "the third runs", func() bool { return l.work.ran.Load() == ran+3 })
		}
		l.work.letAllGo()
	}},
	{"SL-02 the caller leaves in the middle of an answer", both, nil, func(l *life) {
		c := l.call("GET", "/events", 0, "")
		l.running(1)
		c.firstByte()
		c.leave()
	}},
	{"SL-11 the caller reads nothing and leaves", both, nil, func(l *life) {
		c := l.call("GET", "/endless", 0, "")
		l.running(1)
		c.leave()
	}},
	{"SL-11 the caller reads nothing and stays", both, func(s *http.Server) {
		s.WriteTimeout = shortly
		s.HTTP2 = &http.HTTP2Config{WriteByteTimeout: shortly} // of the connection
	}, together(func(l *life) { l.call("GET", "/endless", 0, "") })},
	{"SL-14 streams that are opened and reset", onlyTwo, nil, func(l *life) {
		f := l.server.DialHTTP2()
		for i := range uint32(200) {
			f.Open(2*i+1, true, "GET", "/attentive")
			f.ResetStream(2*i+1, 8)
		}
		f.Open(401, true, "GET", "/nothing") // behind all of them
		for frame, ok := f.Next(); ok && (frame.Stream != 401 || !frame.Ends); frame, ok = f.Next() {
		}
	}},
}

// endingsOfBodies are about requests of which the body comes late, half or never.
var endingsOfBodies = []lifeEnding{
	{"a body that is read", both, nil, func(l *life) { l.call("POST", "/read", 4, "body").expect(200) }},
	{"a body that nobody reads", both, nil, func(l *life) { l.call("POST", "/", 4, "body").expect(200) }},
	{"a body that comes late", both, nil, func(l *life) {
		c := l.call("POST", "/read", 8, "half")
		l.running(1)
		c.more("more")
		c.expect(200)
	}},
	{"an answer before the body", both, nil, func(l *life) {
		c := l.call("POST", "/early", 8, "half")
		l.running(1)
		c.more("more")
		c.expect(whatever) // not every proxy can hand on both at once
	}},
	{"a body that breaks off", both, nil, func(l *life) {
		c := l.call("POST", "/read", 8, "half")
		l.running(1)
		c.leave()
	}},
	{"a body in pieces that breaks off", both, nil, func(l *life) {
		c := l.call("POST", "/read", -1, "half")
		l.running(1)
		c.leave()
	}},
	{"SL-18 a body that never ends", both, func(s *http.Server) { s.ReadTimeout = shortly }, together(func(l *life) {
		l.call("POST", "/read", 8, "half")
	})},
	{"RJ-02 a refusal while the body comes", both, nil, func(l *life) {
		l.full(func() {
			c := l.call("POST", "/read", 1000, "half")
			c.expect(http.StatusServiceUnavailable)
			c.leave()
		})
	}},
}

// endingsInLine are those of requests that wait.
var endingsInLine = []lifeEnding{
	{"a wait that is over", both, nil, func(l *life) {
		l.fill()
		c := l.call("POST", "/read", 4, "body")
		l.waiting(1)
		l.work.letAllGo()
		c.expect(200)
	}},
	{"a wait that is over, and a body that comes after it", both, nil, func(l *life) {
		l.fill()
		c := l.call("POST", "/read", 8, "half")
		l.waiting(1)
		l.work.letAllGo()
		c.more("more")
		c.expect(200)
	}},
	{"a drain while some wait", both, nil, func(l *life) {
		l.fill()
		c := l.call("POST", "/read", 4, "body")
		l.waiting(1)
		l.drainSystem(l.work.letAllGo)
		c.expect(http.StatusServiceUnavailable)
	}},
	{"SL-13 the caller leaves in line", both, nil, leaveInLine(0, "")},
	{"SL-13 the caller leaves in line, body sent", both, nil, leaveInLine(4, "body")},
	{"SL-13 the caller leaves in line, half of the body sent", both, nil, leaveInLine(8, "half")},
	{"SL-13 the caller leaves in line, nothing of the body sent", both, nil, leaveInLine(8, "")},
	{"SL-13 the caller leaves in line, body in pieces", both, nil, leaveInLine(-1, "half")},
	{"SL-13 the caller leaves in line, with a large body", both, nil, func(l *life) {
		if runtime.GOOS != "linux" {
			l.Skip("here a socket does not say that its peer has gone")
		}
		leaveInLine(1<<20, strings.Repeat("x", 10_000))(l)
	}},
	{"QU-02 the caller leaves as the slot comes", both, nil, leaveAtTheGrant},
}

// leaveInLine lets a caller leave that waits. It is out of the line although nothing else
// happens, and never runs.
func leaveInLine(length int, body string) func(*life) {
	return func(l *life) {
		l.fill()
		c := l.call("POST", "/", length, body)
		l.waiting(1)
		ran := l.work.ran.Load()
		c.leave()
		l.waiting(0)
		l.work.letAllGo()
		l.idle()
		if n := l.work.ran.Load() - ran; n > 0 {
			l.Errorf("it ran for a caller that had left")
		}
	}
}

// leaveAtTheGrant lets a caller leave in the moment in which it gets a slot.
func leaveAtTheGrant(l *life) {
	l.fill()
	c := l.call("POST", "/", 8, "half")
	l.waiting(1)
	var let sync.WaitGroup
	let.Go(l.work.letAllGo)
	c.leave()
	let.Wait()
}

// endingsOfStreams are about answers that last.
var endingsOfStreams = []lifeEnding{
	{"SL-06 an event stream that its reader leaves", both, nil, func(l *life) {
		c := l.call("GET", "/events", 0, "")
		c.firstByte()
		l.running(1)
		c.raw.Hangup()
	}},
	{"OP-01 a connection that was taken over, and the client hangs up", onlyOne, nil, func(l *life) {
		l.upgrade().Hangup()
	}},
	{"OP-01 a connection that was taken over, and the client resets it", onlyOne, nil, func(l *life) {
		l.upgrade().Reset()
	}},
	{"OP-01 a connection that was taken over, and the work closes it", onlyOne, nil, func(l *life) {
		raw := l.upgrade()
		raw.Send("bye\n")
		if rest := raw.Rest(); rest != "" {
			l.Errorf("after the end came %q", rest)
		}
		raw.Hangup() // whoever stands between may wait for this half
	}},
}

// endingsOfServers are those of a server that stops: no request comes after them.
var endingsOfServers = []lifeEnding{
	{"OP-01 a graceful stop lets the running finish", both, nil, once(stopGracefully)},
	{"a stop that waits for nobody", both, nil, once(func(l *life) {
		l.call("GET", "/attentive", 0, "")
		l.running(1)
		_ = l.server.Server.Close()
		l.running(0)
	})},
	{"OP-03 a stop while some wait", both, nil, once(func(l *life) {
		l.fill()
		l.call("POST", "/read", 8, "half")
		l.waiting(1)
		_ = l.server.Server.Close()
		l.waiting(0)
		l.work.letAllGo()
	})},
}

// stopGracefully stops the server while a request runs, which is answered.
func stopGracefully(l *life) {
	c := l.call("GET", "/held", 0, "")
	l.running(1)
	ctx, cancel := context.WithTimeout(context.Background(), mayWait)
	defer cancel()
	l.server.Server.RegisterOnShutdown(l.work.letAllGo)
	stopped := make(chan error, 1)
	go func() { stopped <- l.server.Server.Shutdown(ctx) }()
	c.expect(200)
	c.raw.Hangup()
	if err := <-stopped; err != nil {
		l.Errorf("the graceful stop: %v", err)
	}
}

// shortly is a time-out that comes by itself. It is long enough for whatever has to be
// sent before.
const shortly = 200 * time.Millisecond

// together lets an ending that takes its time happen to all requests at once.
func together(f func(*life)) func(*life) {
	return func(l *life) {
		if l.happened {
			return
		}
		l.happened = true
		for range lifeSize + 1 {
			f(l)
		}
		Eventually(l, "all are decided", func() bool { return l.asked.Load() == uint64(lifeSize+1) && l.decided() == l.asked.Load() })
	}
}

// once lets an ending happen that a server has once.
func once(f func(*life)) func(*life) {
	return func(l *life) {
		if !l.stopped {
			l.stopped = true
			f(l)
		}
	}
}
