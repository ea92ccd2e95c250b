package forebaytest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

// Lifetime checks, over real connections, that what open builds gives every slot back,
// and once, however a request ends: with an answer or without, by a panic, by a client
// that hangs up, resets, sends half a body or reads nothing, in line, in the middle of
// the answer, in a stream, by a stop of the server; over HTTP/1.1 and over HTTP/2. Each
// ending happens once more than there are slots; then the books balance (one decision for
// each request, one release for each lease), a full set of calls is admitted, and no
// goroutine and no descriptor is left over. Each is a subtest; those for which the system
// lacks an ability, SetLimit or Drain, are skipped.
//
// The handler is given real requests of net/http's, and the server has
// [forebay.ConnContext]. The Stats of the system are those of all its gates.
func Lifetime(t *testing.T, open Opener) {
	for _, e := range endings() {
		for _, version := range e.versions {
			t.Run(fmt.Sprintf("%s/HTTP%d", e.name, version), func(t *testing.T) { e.check(t, open, version) })
		}
	}
}

// lifeEnding is one way in which requests end.
type lifeEnding struct {
	name     string
	versions []int
	change   func(*http.Server) // nil: the server as it is
	run      func(l *life)
}

var (
	both     = []int{1, 2}
	onlyOne  = []int{1}
	onlyTwo  = []int{2}
	lifeSize = 2 // slots of the gate under test
)

// check lets the ending happen.
func (e *lifeEnding) check(t testing.TB, open Opener, version int) {
	CheckLeaks(t)
	l := &life{TB: t, version: version, work: newWork()}
	intake, err := forebay.NewIntake(forebay.IntakeConfig{DiscardTime: shortly})
	if err != nil {
		t.Fatal(err)
	}
	l.sys = open(t, forebay.Config{
		Name: gateName, MaxInFlight: lifeSize, MaxWait: time.Hour, MaxWaiting: 100, Intake: intake,
		Refusal: forebay.Refusal{RetryAfter: forebay.RetryAfter{Fixed: time.Second}},
	}, l.work)
	gated := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked.Add(1)
		l.sys.Handler.ServeHTTP(w, r)
	})
	l.server = NewLoopback(t, gated, func(s *http.Server) {
		s.ConnContext = forebay.ConnContext
		if e.change != nil {
			e.change(s)
		}
	})
	t.Cleanup(l.work.letAllGo) // before the server ends, which waits for nobody
	for range lifeSize + 1 {
		e.run(l)
		l.idle()
	}
	l.fullSet()
	l.idle()
}

// life is one system under test behind a server on a real socket.
type life struct {
	testing.TB
	version  int
	sys      *System
	server   *Loopback
	work     *work
	asked    atomic.Uint64 // requests that came to the system
	happened bool          // the ending, to all that there will be
	stopped  bool          // the server is: nobody else can be admitted
}

// decided returns how many decisions there were.
func (l *life) decided() (n uint64) {
	for _, st := range l.sys.Stats() {
		n += st.Decisions()
	}
	return n
}

// idle waits until nobody runs or waits and the books balance: for each request one
// decision, for each lease one release.
func (l *life) idle() {
	l.Helper()
	var faults []string
	defer func() {
		for _, fault := range faults {
			l.Error(fault)
		}
	}()
	Eventually(l, "nobody runs or waits, and the books balance", func() bool {
		faults = l.faults()
		return len(faults) == 0
	})
}

// faults returns what is not as it is when all requests have ended.
func (l *life) faults() []string {
	stats := l.sys.Stats()
	faults := unbalanced(l.asked.Load(), stats)
	if n := l.work.inFlight.Load(); n > 0 {
		faults = append(faults, fmt.Sprint(n, " requests run"))
	}
	for _, st := range stats {
		if st.InUse > 0 || st.Calls > 0 || st.Waiting > 0 {
			faults = append(faults, fmt.Sprintf("gate %q: %d in use, %d leases out, %d waiting", st.Name, st.InUse, st.Calls, st.Waiting))
		}
		if st.StaleReleases > 0 {
			faults = append(faults, fmt.Sprintf("gate %q: %d leases were given back twice", st.Name, st.StaleReleases))
		}
	}
	return faults
}

// running waits until n requests have reached the work and are in it.
func (l *life) running(n int) {
	l.Helper()
	Eventually(l, fmt.Sprint(n, " run"), func() bool { return l.work.inFlight.Load() == int64(n) })
}

func (l *life) waiting(n int) {
	l.Helper()
	Eventually(l, fmt.Sprint(n, " wait"), func() bool {
		waiting := 0
		for _, st := range l.sys.Stats() {
			waiting += st.Waiting
		}
		return waiting == n
	})
}

// fill takes all slots by work that goes on until it is let go.
func (l *life) fill() {
	l.Helper()
	for i := range lifeSize {
		l.call("GET", "/held", 0, "")
		l.running(i + 1)
	}
}

// fullSet admits as many calls as there are slots, at once.
func (l *life) fullSet() {
	l.Helper()
	if l.stopped {
		return
	}
	l.fill()
	l.work.letAllGo()
}

// caller is a client with one request, on a connection of its own.
type caller struct {
	*life
	method string
	raw    *Raw
	frames *Frames // nil: it speaks HTTP/1.1
}

const stream = 1

// call begins a request. Of its body, which is announced with the given length, -1 for
// not saying, only that much is sent.
func (l *life) call(method, path string, length int, body string) *caller {
	l.Helper()
	c := &caller{life: l, method: method}
	if l.version == 2 {
		c.frames = l.server.DialHTTP2()
		c.raw = c.frames.Raw
		var headers []string
		if length > 0 {
			headers = []string{"content-length", fmt.Sprint(length)}
		}
		c.frames.Open(stream, length == 0, method, path, headers...)
		if body != "" {
			c.frames.Data(stream, len(body) == length, body)
		}
		return c
	}
	c.raw = l.server.Dial()
	head := method + " " + path + " HTTP/1.1\r\nHost: x\r\n"
	switch {
	case length > 0:
		head += fmt.Sprintf("Content-Length: %d\r\n", length)
	case length < 0:
		head += "Transfer-Encoding: chunked\r\n"
		if body != "" {
			body = fmt.Sprintf("%x\r\n%s\r\n", len(body), body)
		}
	}
	c.raw.Send(head + "\r\n" + body)
	return c
}

// more sends more of the body, and its end.
func (c *caller) more(body string) {
	c.Helper()
	if c.frames != nil {
		c.frames.Data(stream, true, body)
		return
	}
	c.raw.Send(body)
}

// leave makes the client go: by a reset, of the stream over HTTP/2.
func (c *caller) leave() {
	if c.frames != nil {
		c.frames.ResetStream(stream, 8)
		return
	}
	c.raw.Reset()
}

const (
	breaksOff = -1 // the answer breaks off, or says that the work failed
	whatever  = -2 // it ends somehow
)

// expect reads the answer to its end, and fails the check unless it is whole and has this
// status.
func (c *caller) expect(status int) {
	c.Helper()
	got, whole := 0, false
	if c.frames != nil {
		got, whole = c.answerOfStream()
	} else {
		got, whole = c.raw.answer(c.method)
	}
	switch {
	case status == whatever:
	case status == breaksOff && (!whole || got >= http.StatusInternalServerError):
	case got != status || !whole:
		c.Errorf("the answer is %d, whole: %v; want %d", got, whole, status)
	}
}

// firstByte reads until the first byte of the answer's body.
func (c *caller) firstByte() {
	c.Helper()
	if c.frames == nil {
		for c.raw.Line() != "" {
		}
		c.raw.Line() // the size of a chunk
		return
	}
	for {
		if f, ok := c.frames.Next(); !ok || f.Type == DataFrame {
			return
		}
	}
}

// full runs f while nobody is admitted, and nobody may wait.
func (l *life) full(f func()) {
	l.Helper()
	if l.sys.SetLimit == nil {
		l.Skip("the system has no SetLimit")
	}
	if err := l.sys.SetLimit(0); err != nil {
		l.Fatalf("SetLimit(0): %v", err)
	}
	f()
	if err := l.sys.SetLimit(lifeSize); err != nil {
		l.Fatalf("SetLimit(%d): %v", lifeSize, err)
	}
}

// upgrade returns a connection that the work has taken over.
func (l *life) upgrade() *Raw {
	l.Helper()
	raw := l.server.Dial()
	raw.Send("GET /upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	if line := raw.Line(); !strings.HasPrefix(line, "HTTP/1.1 101") {
		l.Fatalf("the upgrade is answered by %q", line)
	}
	for raw.Line() != "" {
	}
	raw.Send("ping\n")
	if line := raw.Line(); line != "ping" {
		l.Errorf("the connection repeats %q", line)
	}
	return raw
}

// answerOfStream reads what comes of the stream.
func (c *caller) answerOfStream() (status int, whole bool) {
	for {
		f, ok := c.frames.Next()
		switch {
		case !ok, f.Stream == stream && f.Type == ResetFrame, f.Type == GoAwayFrame && f.Code != 0:
			return status, false
		case f.Stream != stream:
			continue
		case f.Status >= 200:
			status = f.Status
		}
		if f.Ends {
			return status, true
		}
	}
}

// drainSystem stops admitting and lets the running finish.
func (l *life) drainSystem(meanwhile func()) {
	l.Helper()
	if l.sys.Drain == nil || l.sys.Resume == nil {
		l.Skip("the system has no Drain and Resume")
	}
	ctx, cancel := context.WithTimeout(context.Background(), mayWait)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.sys.Drain(ctx) }()
	l.waiting(0)
	meanwhile()
	if err := <-done; err != nil {
		l.Errorf("Drain: %v", err)
	}
	l.sys.Resume()
}
