package forebay_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// closedGate refuses everybody.
func closedGate(t testing.TB, c forebay.Config) *forebay.Gate {
	t.Helper()
	c.MaxInFlight = 1
	c.Refusal.RetryAfter.Fixed = time.Second
	g, err := forebay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	return g
}

func newIntake(t testing.TB, c forebay.IntakeConfig) *forebay.Intake {
	t.Helper()
	in, err := forebay.NewIntake(c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// refusing starts a server that refuses everybody, with an intake of its own, and looks
// at its end whether anything is left over.
func refusing(t *testing.T, c forebay.IntakeConfig, wrap func(http.Handler) http.Handler) (*forebaytest.Loopback, *forebay.Intake) {
	t.Helper()
	return refusingBy(t, newIntake(t, c), wrap)
}

// patient is refusing where every small body comes in time, however slow the machine is.
func patient(t *testing.T, wrap func(http.Handler) http.Handler) (*forebaytest.Loopback, *forebay.Intake) {
	t.Helper()
	in := newIntake(t, forebay.IntakeConfig{})
	in.LookFor(time.Hour)
	return refusingBy(t, in, wrap)
}

func refusingBy(t *testing.T, in *forebay.Intake, wrap func(http.Handler) http.Handler) (*forebaytest.Loopback, *forebay.Intake) {
	t.Helper()
	forebaytest.CheckLeaks(t)
	g := closedGate(t, forebay.Config{Intake: in})
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	if wrap != nil {
		h = wrap(h)
	}
	s := forebaytest.NewLoopback(t, h)
	t.Cleanup(func() {
		s.Close()
		idle(t, in)
		if st := g.Stats(); st.InUse != 0 || st.Granted != 0 || st.Accepted != 0 {
			t.Errorf("%+v", st)
		}
		if text := s.ErrorLog(); text != "" {
			t.Errorf("the server complains: %s", text)
		}
	})
	return s, in
}

// idle waits until the intake holds nothing.
func idle(t testing.TB, in *forebay.Intake) {
	t.Helper()
	forebaytest.Eventually(t, "the intake is idle", func() bool {
		st := in.Stats()
		return st.Discarding == 0 && st.Bytes.Held == 0 && st.Promised.Held == 0
	})
}

const (
	head    = "POST / HTTP/1.1\r\nHost: x\r\n"
	chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
)

func sized(n int, more ...string) string {
	return head + fmt.Sprintf("Content-Length: %d\r\n", n) + strings.Join(more, "") + "\r\n"
}

// RJ-02: a body that has come leaves the connection for the next request.
func TestRJ02ConnectionSurvivesASmallBody(t *testing.T) {
	s, in := patient(t, nil)
	for name, request := range map[string]string{
		"with a length": sized(4) + "body",
		"in chunks":     chunked + "4\r\nbody\r\n0\r\n\r\n",
		"with trailers": chunked + "4\r\nbody\r\n0\r\nX-Trailer: y\r\n\r\n",
		"64 KiB":        sized(64<<10) + strings.Repeat("x", 64<<10),
		"empty":         sized(0),
		"empty chunks":  chunked + "0\r\n\r\n",
	} {
		c := s.Dial()
		for range 3 {
			c.Send(request)
			if a := c.Answer("POST"); a.StatusCode != 503 || a.Close || a.Err != nil || a.ContentLength != int64(len(a.Text)) {
				t.Errorf("%s: %d, close %v, %q %v", name, a.StatusCode, a.Close, a.Text, a.Err)
			}
		}
		if n := c.Buffered(); n > 0 {
			t.Errorf("%s: %d more bytes", name, n)
		}
		c.Hangup()
	}
	if st := in.Stats(); st.Cut > 0 || st.Discarded == 0 {
		t.Errorf("%+v", st)
	}
}

// In one packet with the next request, which is no part of the body.
func TestRJ02PipelinedRequestsAreAllRefused(t *testing.T) {
	s, _ := patient(t, nil)
	c := s.Dial()
	c.Send(strings.Repeat(sized(4)+"body"+chunked+"4\r\nbody\r\n0\r\n\r\n", 20))
	for i := range 40 {
		if a := c.Answer("POST"); a.StatusCode != 503 || a.Close || a.Err != nil {
			t.Fatalf("answer %d: %d, close %v, %v", i, a.StatusCode, a.Close, a.Err)
		}
	}
}

// RJ-02: the refusal comes though the body does not, and says that the connection ends,
// which it does.
func TestRJ02RefusalArrivesBeforeTheBody(t *testing.T) {
	for name, request := range map[string]string{
		"nothing of it":            sized(1000),
		"half of it":               sized(1000) + strings.Repeat("x", 500),
		"half of a big one":        sized(10<<20) + strings.Repeat("x", 1<<20),
		"no chunk":                 chunked,
		"half a chunk":             chunked + "1000\r\nxxxx",
		"half a size":              chunked + "10",
		"a chunk and no end":       chunked + "4\r\nbody\r\n",
		"no end of trailers":       chunked + "0\r\nX-Trailer: y\r\n",
		"asks to go on":            sized(1000, "Expect: 100-continue\r\n"),
		"asks to go on, in chunks": head + "Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
		"asks and goes on":         sized(1000, "Expect: 100-continue\r\n") + "half",
		"HTTP/1.0":                 "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 10\r\n\r\nhalf",
		"no chunk at all":          chunked + "zzz\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, in := refusing(t, forebay.IntakeConfig{DiscardTime: 20 * time.Millisecond}, nil)
			c := s.Dial()
			c.Send(request)
			a := c.Answer("POST")
			if a.StatusCode != 503 || !a.Close || a.Err != nil || !strings.Contains(a.Text, "rejected_busy") {
				t.Errorf("%d, close %v, %q %v", a.StatusCode, a.Close, a.Text, a.Err)
			}
			if rest := c.Rest(); rest != "" {
				t.Errorf("then came %q", rest)
			}
			idle(t, in)
			if st := in.Stats(); st.Cut != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// The client hangs up when it has read the refusal: nothing is waited for any more,
// though the intake would for an hour.
func TestRJ02ClientThatHangsUpEndsTheDiscarding(t *testing.T) {
	s, in := refusing(t, forebay.IntakeConfig{DiscardTime: time.Minute}, nil)
	for _, request := range []string{sized(1000), chunked, sized(1000, "Expect: 100-continue\r\n"), sized(1 << 30)} {
		for _, end := range []func(*forebaytest.Raw){(*forebaytest.Raw).Hangup, (*forebaytest.Raw).Reset, (*forebaytest.Raw).CloseWrite} {
			c := s.Dial()
			c.Send(request)
			if a := c.Answer("POST"); a.StatusCode != 503 {
				t.Errorf("%d", a.StatusCode)
			}
			end(c)
			idle(t, in)
		}
	}
}

// RJ-02: clients that write everything before they read get their refusal.
func TestRJ02ClientsThatWriteFirstReadTheRefusal(t *testing.T) {
	s, in := refusing(t, forebay.IntakeConfig{DiscardTime: time.Minute}, nil)
	piece := strings.Repeat("x", 1<<20)
	for name, megabytes := range map[string]int{"8 MB": 8, "64 MB": 64} {
		for _, inChunks := range []bool{false, true} {
			c := s.Dial()
			if inChunks {
				c.Send(chunked)
			} else {
				c.Send(sized(megabytes << 20))
			}
			for i := range megabytes {
				switch {
				case !inChunks:
					c.Send(piece)
				case i < megabytes-1:
					c.Send("100000\r\n" + piece + "\r\n")
				}
			}
			if inChunks {
				c.Send("0\r\n\r\n")
			}
			if a := c.Answer("POST"); a.StatusCode != 503 || !a.Close || a.Err != nil {
				t.Errorf("%s: %d, close %v, %v", name, a.StatusCode, a.Close, a.Err)
			}
			if rest := c.Rest(); rest != "" {
				t.Errorf("then came %q", rest)
			}
		}
	}
	if st := in.Stats(); st.Cut != 0 || st.Discarded < 140<<20 {
		t.Errorf("%+v", st)
	}
}

// A body without end is read up to the bound, and no further.
func TestRJ02EndlessBody(t *testing.T) {
	const bound = 1 << 20
	s, in := refusing(t, forebay.IntakeConfig{Discard: bound, DiscardTime: time.Minute}, nil)
	for _, request := range []string{chunked, sized(1<<31 - 1)} {
		before := in.Stats().Discarded
		c := s.Dial()
		c.Send(request)
		var writing sync.WaitGroup
		writing.Go(func() {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, "1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n")
			}
		})
		if a := c.Answer("POST"); a.StatusCode != 503 || !a.Close {
			t.Errorf("%d, close %v", a.StatusCode, a.Close)
		}
		writing.Wait() // the connection was closed
		if n := in.Stats().Discarded - before; n < bound || n > bound {
			t.Errorf("%d bytes were thrown away, want %d", n, bound)
		}
		c.Hangup()
	}
}

// What is to be thrown away at one time is bounded over all connections; beyond that the
// refusal comes, and the connection ends at once.
func TestRJ02DiscardingIsBoundedInTotal(t *testing.T) {
	for name, c := range map[string]forebay.IntakeConfig{
		"in total": {DiscardTotal: 3 << 20, DiscardTime: time.Minute},
		"memory":   {Bytes: forebay.NewBytes(100 << 10), DiscardTime: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := refusing(t, c, nil)
			for range 3 { // each has a buffer of 32 KiB, and a MiB to come
				c := s.Dial()
				c.Send(sized(1 << 20))
				c.Answer("POST")
			}
			forebaytest.Eventually(t, "three bodies are thrown away", func() bool { return in.Stats().Promised.Held == 3<<20 })
			fourth := s.Dial()
			fourth.Send(sized(300))
			if a := fourth.Answer("POST"); a.StatusCode != 503 || !a.Close {
				t.Errorf("the fourth: %d, close %v", a.StatusCode, a.Close)
			}
			if rest := fourth.Rest(); rest != "" {
				t.Errorf("then came %q", rest)
			}
			if st := in.Stats(); st.Discarding != 3 || st.Cut != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A graceful stop waits for no body: with bounds of a minute this test would take one.
func TestRJ02ShutdownIsNotDelayed(t *testing.T) {
	s, in := refusing(t, forebay.IntakeConfig{DiscardTime: time.Minute}, nil)
	requests := []string{sized(1000), chunked, chunked + "4\r\nbo", sized(1000, "Expect: 100-continue\r\n"), sized(1 << 20)}
	for _, request := range requests {
		c := s.Dial()
		c.Send(request)
		c.Answer("POST")
	}
	forebaytest.Eventually(t, "all are thrown away", func() bool { return in.Stats().Discarding == int64(len(requests)) })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Server.Shutdown(ctx); err != nil {
		t.Errorf("the graceful stop: %v", err)
	}
	idle(t, in)
}

// Nor for one that comes while the server stops already.
func TestRJ02ShutdownIsNotDelayedByWhoIsRefusedMeanwhile(t *testing.T) {
	entered, goOn := make(chan struct{}), make(chan struct{})
	s, in := refusing(t, forebay.IntakeConfig{DiscardTime: time.Minute}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/late" {
				close(entered)
				<-goOn
			}
			h.ServeHTTP(w, r)
		})
	})
	first, late := s.Dial(), s.Dial()
	first.Send(sized(1000)) // the server is known by now
	first.Answer("POST")
	late.Send(strings.Replace(sized(1000), "/", "/late", 1))
	<-entered
	down := make(chan struct{})
	s.Server.RegisterOnShutdown(func() { close(down) })
	stopped := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go func() { stopped <- s.Server.Shutdown(ctx) }()
	<-down
	forebaytest.Eventually(t, "the first has ended", func() bool { return in.Stats().Discarding == 0 })
	close(goOn)
	if a := late.Answer("POST"); a.StatusCode != 503 || !a.Close {
		t.Errorf("%d, close %v", a.StatusCode, a.Close)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the graceful stop: %v", err)
	}
}

// counting is a middleware that wraps the body, as those for metrics do.
type counting struct{ io.ReadCloser }

func wrapsBody(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = counting{r.Body}
		h.ServeHTTP(w, r)
	})
}

// limits wraps it in net/http's own limit, which remembers errors, and touches the
// answer when the limit is reached.
func limits(h http.Handler) http.Handler { return http.MaxBytesHandler(h, 100) }

// hides is a middleware that hides what the server's writer can do.
func hides(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
}

// RJ-02 behind other middleware: the refusal arrives all the same.
func TestRJ02RefusalArrivesBehindMiddleware(t *testing.T) {
	for name, wrap := range map[string]func(http.Handler) http.Handler{"wraps the body": wrapsBody, "limits the body": limits} {
		t.Run(name, func(t *testing.T) {
			s, _ := refusing(t, forebay.IntakeConfig{DiscardTime: 50 * time.Millisecond}, wrap)
			waits, _ := patient(t, wrap)
			kept := waits.Dial()
			for range 3 {
				kept.Send(sized(4) + "body")
				if a := kept.Answer("POST"); a.StatusCode != 503 || a.Close {
					t.Errorf("a small body: %d, close %v", a.StatusCode, a.Close)
				}
			}
			for _, request := range []string{sized(99) + "half", sized(1000) + "half", chunked + "4\r\n", sized(1000) + strings.Repeat("x", 200)} {
				c := s.Dial()
				c.Send(request)
				if a := c.Answer("POST"); a.StatusCode != 503 || !a.Close {
					t.Errorf("%q: %d, close %v", request, a.StatusCode, a.Close)
				}
				if rest := c.Rest(); rest != "" {
					t.Errorf("%q: then came %q", request, rest)
				}
			}
		})
	}
}

// Behind a writer that hides everything the refusal arrives; how long the connection
// then lasts is the client's to say.
func TestRJ02RefusalArrivesThroughAHidingWriter(t *testing.T) {
	s, _ := refusing(t, forebay.IntakeConfig{}, hides)
	for _, request := range []string{sized(1000) + "half", chunked, sized(1000, "Expect: 100-continue\r\n")} {
		c := s.Dial()
		c.Send(request)
		if a := c.Answer("POST"); a.StatusCode != 503 || !a.Close {
			t.Errorf("%q: %d, close %v", request, a.StatusCode, a.Close)
		}
		c.Hangup()
	}
}

// HEAD has no body, whatever it brought.
func TestRJ13HeadWithABody(t *testing.T) {
	waits, _ := patient(t, nil)
	c := waits.Dial()
	c.Send(strings.Replace(sized(4), "POST", "HEAD", 1) + "body")
	if a := c.Answer("HEAD"); a.StatusCode != 503 || a.Close {
		t.Errorf("%d, close %v", a.StatusCode, a.Close)
	}
	c.Hangup()
	s, _ := refusing(t, forebay.IntakeConfig{DiscardTime: 20 * time.Millisecond}, nil)
	c = s.Dial()
	c.Send(strings.Replace(sized(4), "POST", "HEAD", 1))
	if a := c.Answer("HEAD"); a.StatusCode != 503 || !a.Close {
		t.Errorf("%d, close %v", a.StatusCode, a.Close)
	}
	if rest := c.Rest(); rest != "" {
		t.Errorf("then came %q", rest)
	}
}

// RJ-17: thousands of streams on one connection, each of them refused in full, in
// rounds of as many as the server allows, with bodies and without, some of them reset.
// The connection goes on.
func TestRJ17StreamsByTheThousand(t *testing.T) {
	s, _ := refusing(t, forebay.IntakeConfig{}, nil)
	f := s.DialHTTP2()
	const round, rounds = 200, 15
	stream := uint32(1)
	for range rounds {
		want := map[uint32]bool{}
		for i := range round {
			whole := i%3 == 0
			f.Open(stream, whole, "POST", "/")
			if i%3 == 1 {
				f.Data(stream, false, "half of a body")
			}
			if i%10 == 9 {
				f.ResetStream(stream, 8)
			} else {
				want[stream] = true
			}
			stream += 2
		}
		for len(want) > 0 {
			frame, ok := f.Next()
			if !ok || frame.Type == forebaytest.GoAwayFrame {
				t.Fatalf("%+v, with %d streams to answer", frame, len(want))
			}
			if !want[frame.Stream] {
				continue // its answer has ended, or nobody wants it any more
			}
			if frame.Type == forebaytest.HeadersFrame && frame.Status != 503 || frame.Type == forebaytest.ResetFrame {
				t.Fatalf("%+v", frame)
			}
			if frame.Ends {
				delete(want, frame.Stream)
			}
		}
	}
	f.Hangup()
}

// RJ-02 over HTTP/2: the answer is there before the body ends, and no reset is on its heels,
// which some clients take for the end of both. A stream whose length nobody knows is reset
// at once: its client may be waiting for the end of the answer.
func TestRJ02StreamsAreNotResetAtOnce(t *testing.T) {
	const length = 40_000
	answer := func(t *testing.T, f *forebaytest.Frames, stream uint32) (last forebaytest.Frame) {
		t.Helper()
		frame, ok := f.Next()
		for ok && frame.Stream != stream { // a piece of a body may have come too late for the stream before
			frame, ok = f.Next()
		}
		if frame.Type != forebaytest.HeadersFrame || frame.Status != 503 || frame.Stream != stream {
			t.Fatalf("the answer begins with %+v", frame)
		}
		frame, _ = f.Next()
		if frame.Type != forebaytest.DataFrame || !strings.Contains(string(frame.Payload), "rejected_busy") {
			t.Fatalf("it goes on with %+v", frame)
		}
		return frame
	}
	ends := func(t *testing.T, f *forebaytest.Frames) {
		t.Helper()
		if frame, _ := f.Next(); frame.Type != forebaytest.DataFrame || !frame.Ends || len(frame.Payload) > 0 {
			t.Errorf("it ends with %+v", frame)
		}
	}
	for name, c := range map[string]struct {
		intake forebay.IntakeConfig
		finish func(*forebaytest.Frames)
		reset  bool // by the server
	}{
		"it is sent":      {forebay.IntakeConfig{DiscardTime: time.Minute}, func(f *forebaytest.Frames) { f.Data(1, true, strings.Repeat("x", length-4)) }, false},
		"it stops":        {forebay.IntakeConfig{DiscardTime: 50 * time.Millisecond}, func(*forebaytest.Frames) {}, true},
		"there is a lot":  {forebay.IntakeConfig{DiscardTime: time.Minute, DiscardTotal: 1}, func(*forebaytest.Frames) {}, true},
		"the client left": {forebay.IntakeConfig{DiscardTime: time.Minute}, func(f *forebaytest.Frames) { f.ResetStream(1, 8) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, in := refusing(t, c.intake, nil)
			f := s.DialHTTP2()
			f.Open(1, false, "POST", "/", "content-length", fmt.Sprint(length))
			f.Data(1, false, "half")
			if answer(t, f, 1).Ends {
				t.Error("it ends before the body")
			}
			c.finish(f)
			if name != "the client left" {
				ends(t, f)
			}
			if c.reset {
				if frame, _ := f.Next(); frame.Type != forebaytest.ResetFrame || frame.Code != 0 {
					t.Errorf("then came %+v", frame)
				}
			}
			idle(t, in)
			f.Open(3, false, "POST", "/") // of no known length
			if frame := answer(t, f, 3); !frame.Ends {
				t.Errorf("%+v does not end the answer", frame)
			}
			if frame, _ := f.Next(); frame.Type != forebaytest.ResetFrame || frame.Stream != 3 || frame.Code != 0 {
				t.Errorf("then came %+v", frame)
			}
		})
	}
}

// Within milliseconds, to the millisecond: at once where the body can never come in
// time or must not be asked for, and after a look where it may.
func TestRJ02RefusalIsOnItsWayWithinMilliseconds(t *testing.T) {
	for request, want := range map[string]time.Duration{
		sized(4) + "body":                           0,
		sized(1000) + "half":                        5 * time.Millisecond,
		chunked + "4\r\nbody\r\n":                   5 * time.Millisecond,
		sized(300<<10) + "half":                     0,
		sized(1000, "Expect: 100-continue\r\n"):     0,
		strings.Replace(sized(1), "POST", "GET", 1): 5 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := closedGate(t, forebay.Config{})
			s := forebaytest.NewServer(t, g.Wrap(http.NotFoundHandler()))
			c := s.Dial()
			go io.WriteString(c, request)
			start := time.Now()
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if at := time.Since(start); at != want || res.StatusCode != 503 {
				t.Errorf("%.80q: %d after %v, want it after %v", request, res.StatusCode, at, want)
			}
			c.Close()
		})
	}
}

// busyBody says when it is read while the answer is written.
type busyBody struct {
	io.ReadCloser
	reading atomic.Bool
}

func (b *busyBody) Read(p []byte) (int, error) {
	b.reading.Store(true)
	defer b.reading.Store(false)
	return b.ReadCloser.Read(p)
}

type strictWriter struct {
	http.ResponseWriter
	t    *testing.T
	body *busyBody
}

func (w *strictWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *strictWriter) WriteHeader(status int) {
	if w.body.reading.Load() {
		w.t.Error("the body of a middleware is read while the answer is written")
	}
	w.ResponseWriter.WriteHeader(status)
}

// A body that a middleware has wrapped may touch the answer when it is read, as
// http.MaxBytesReader does: the two never happen at once. It is thrown away all the same.
func TestRJ02WrappedBodiesAreNotReadBesideTheAnswer(t *testing.T) {
	s, in := refusing(t, forebay.IntakeConfig{DiscardTime: time.Minute}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := &busyBody{ReadCloser: r.Body}
			r.Body = body
			h.ServeHTTP(&strictWriter{w, t, body}, r)
		})
	})
	for request, more := range map[string]string{sized(8) + "half": "more", chunked + "4\r\nhalf\r\n": "4\r\nmore\r\n0\r\n\r\n"} {
		c := s.Dial()
		c.Send(request)
		if a := c.Answer("POST"); a.StatusCode != 503 || !a.Close {
			t.Errorf("%d, close %v", a.StatusCode, a.Close)
		}
		c.Send(more)
		if rest := c.Rest(); rest != "" {
			t.Errorf("then came %q", rest)
		}
	}
	if st := in.Stats(); st.Cut != 0 || st.Discarded < 16 {
		t.Errorf("%+v", st)
	}
}

// Whoever stands in front of the gate may go on after the refusal: a body that had come
// leaves nothing behind that ends the request later.
func TestRJ02RequestLivesOnAfterItsRefusal(t *testing.T) {
	for _, read := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := closedGate(t, forebay.Config{})
			s := forebaytest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if read {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				g.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
				time.Sleep(time.Hour)
				if err := r.Context().Err(); err != nil {
					t.Errorf("body read before: %v; an hour later: %v", read, err)
				}
			}))
			res, err := s.Client().Post(forebaytest.URL, "text/plain", strings.NewReader("body"))
			if err != nil || res.StatusCode != 503 || res.Close {
				t.Fatalf("%+v, %v", res, err)
			}
			res.Body.Close()
		})
	}
}
