package forebay_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
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

// free waits until a gate has all its slots, and looks at its books.
func free(t testing.TB, gates ...*forebay.Gate) {
	t.Helper()
	for _, g := range gates {
		forebaytest.Eventually(t, g.Name()+" is free", func() bool { return g.Stats().InUse == 0 })
		if st := g.Stats(); st.Granted != st.Released || st.Calls != 0 || st.StaleReleases != 0 || st.StillRunning != 0 {
			t.Errorf("%+v", st)
		}
	}
}

func inUse(t testing.TB, g *forebay.Gate, n int) {
	t.Helper()
	if got := g.Stats().InUse; got != n {
		t.Errorf("%s: %d in use, want %d", g.Name(), got, n)
	}
}

// streams answers /events with event streams that last until the caller leaves, /ws by
// taking the connection over until it is closed, and everything else at once.
func streams(t testing.TB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			w.Header().Set("X-Stream", "1")
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(w, "data: %d\n\n", i); err != nil {
					return
				}
				if http.NewResponseController(w).Flush() != nil || i > 0 {
					return
				}
				<-r.Context().Done()
			}
		case "/ws":
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				_, _, err = http.NewResponseController(w).Hijack() // refused for good
				http.Error(w, "hijack: "+err.Error(), http.StatusInternalServerError)
				if !errors.Is(err, forebay.ErrRejected) {
					t.Errorf("hijack: %v", err)
				}
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			for line, err := rw.ReadString('\n'); err == nil; line, err = rw.ReadString('\n') {
				_, _ = io.WriteString(c, line)
			}
		default:
			_, _ = io.WriteString(w, "ok")
		}
	}
}

const upgrade = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

// events opens an event stream and reads its first event, or returns the refusal.
func events(t testing.TB, s *forebaytest.Loopback, client *http.Client) (res *http.Response, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err = client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); res.Body.Close() })
	if res.StatusCode == 200 {
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: 0\n" {
			t.Errorf("the first event: %q, %v", line, err)
		}
	}
	return res, func() { cancel(); res.Body.Close() }
}

// ws opens a connection that is taken over, or returns the refusal.
func ws(t testing.TB, s *forebaytest.Loopback) (*forebaytest.Raw, string) {
	t.Helper()
	c := s.Dial()
	c.Send(upgrade)
	line := c.Line()
	if strings.HasPrefix(line, "HTTP/1.1 101") {
		for c.Line() != "" {
		}
		c.Send("ping\n")
		if echo := c.Line(); echo != "ping" {
			t.Errorf("echo %q", echo)
		}
	}
	return c, line
}

func overBoth(t *testing.T, test func(t *testing.T, client func(*forebaytest.Loopback) *http.Client)) {
	t.Run("HTTP1", func(t *testing.T) { test(t, (*forebaytest.Loopback).Client) })
	t.Run("HTTP2", func(t *testing.T) { test(t, (*forebaytest.Loopback).ClientHTTP2) })
}

// ask returns the status of an ordinary request.
func ask(t testing.TB, s *forebaytest.Loopback, client *http.Client) int {
	t.Helper()
	res, err := client.Get(s.URL() + "/api")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// SL-07: as many streams as there are slots, and ordinary requests still get in: streams
// have a gate of their own, or none.
func TestSL07StreamsDoNotEatTheSlots(t *testing.T) {
	overBoth(t, func(t *testing.T, client func(*forebaytest.Loopback) *http.Client) {
		sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 4})
		for name, rules := range map[string]forebay.Streams{"a gate of their own": {Gate: sockets}, "no slot": {Release: true}} {
			t.Run(name, func(t *testing.T) {
				api := newGate(t, forebay.Config{Name: "api", MaxInFlight: 4, Streams: rules})
				s := forebaytest.NewLoopback(t, api.Wrap(streams(t)))
				var leave []func()
				for range 4 {
					res, l := events(t, s, client(s))
					if res.StatusCode != 200 || res.Header.Get("X-Stream") != "1" {
						t.Errorf("%d %v", res.StatusCode, res.Header)
					}
					leave = append(leave, l)
				}
				inUse(t, api, 0)
				if got := ask(t, s, client(s)); got != 200 {
					t.Errorf("an ordinary request: %d", got)
				}
				if rules.Gate != nil {
					inUse(t, sockets, 4)
				}
				for _, l := range leave {
					l()
				}
				free(t, api, sockets)
			})
		}
	})
}

// The gate of the streams is full: the client gets that gate's refusal, whole, in place of
// the stream, and the connection goes on; the handler's context ends.
func TestSL07StreamIsRefusedProperly(t *testing.T) {
	overBoth(t, func(t *testing.T, client func(*forebaytest.Loopback) *http.Client) {
		sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1, Refusal: forebay.Refusal{Status: 429}})
		api := newGate(t, forebay.Config{Name: "api", MaxInFlight: 4, Streams: forebay.Streams{Gate: sockets}})
		ended := make(chan error, 10)
		inner := streams(t)
		gated := api.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inner(w, r)
			_, err := io.WriteString(w, "more")
			if err != nil && !errors.Is(context.Cause(r.Context()), forebay.ErrRejected) && r.URL.Path == "/events" {
				err = fmt.Errorf("%w, and the context's cause is %v", err, context.Cause(r.Context()))
			}
			ended <- err
		}))
		s := forebaytest.NewLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Front", "1")
			gated.ServeHTTP(w, r)
		}))
		_, leave := events(t, s, client(s))
		for range 3 {
			res, _ := events(t, s, client(s))
			body, err := io.ReadAll(res.Body)
			if res.StatusCode != 429 || err != nil || !strings.Contains(string(body), `"reason":"rejected_busy","gate":"sockets"`) || res.Header.Get("Retry-After") == "" || res.Header.Get("X-Front") == "" || res.Header.Get("X-Stream") != "" {
				t.Errorf("%d %q %v %v", res.StatusCode, body, err, res.Header)
			}
			if err := <-ended; !errors.Is(err, forebay.ErrRejected) || strings.Contains(err.Error(), "cause") {
				t.Errorf("the handler is told %v", err)
			}
		}
		if n := sockets.Stats().RejectedBusy; n != 3 {
			t.Errorf("%d refused", n)
		}
		if got := ask(t, s, client(s)); got != 200 {
			t.Errorf("then %d", got)
		}
		leave()
		free(t, api, sockets)
		if text := s.ErrorLog(); text != "" {
			t.Errorf("the server complains: %s", text)
		}
	})
}

// The same of connections that are taken over.
func TestSL07UpgradeIsRefusedProperly(t *testing.T) {
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	api := newGate(t, forebay.Config{Name: "api", MaxInFlight: 4, Streams: forebay.Streams{Gate: sockets}})
	s := forebaytest.NewLoopback(t, api.Wrap(streams(t)))
	first, line := ws(t, s)
	if !strings.HasPrefix(line, "HTTP/1.1 101") {
		t.Errorf("%q", line)
	}
	inUse(t, api, 0)
	inUse(t, sockets, 1)
	second := s.Dial()
	for range 3 { // on one connection, which goes on
		second.Send(upgrade)
		a := second.Answer("GET")
		if a.StatusCode != 503 || a.Close || !strings.Contains(a.Text, `"gate":"sockets"`) || strings.Contains(a.Text, "hijack") {
			t.Errorf("%d %q", a.StatusCode, a.Text)
		}
	}
	if n := sockets.Stats().RejectedBusy; n != 3 {
		t.Errorf("%d refused", n)
	}
	first.Reset()
	free(t, api, sockets)
	if _, line := ws(t, s); !strings.HasPrefix(line, "HTTP/1.1 101") {
		t.Errorf("when there is room: %q", line)
	}
	if text := s.ErrorLog(); text != "" {
		t.Errorf("the server complains: %s", text)
	}
}

// SL-08: a stream that is handed on by a proxy comes under the same rules.
func TestSL08ProxiedStreamsComeUnderTheSameRules(t *testing.T) {
	upstream := forebaytest.NewLoopback(t, streams(t))
	target, _ := url.Parse(upstream.URL())
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 2})
	api := newGate(t, forebay.Config{Name: "api", MaxInFlight: 1, Streams: forebay.Streams{Gate: sockets}})
	s := forebaytest.NewLoopback(t, api.Wrap(&httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: log.New(io.Discard, "", 0),
	}))
	_, leave := events(t, s, s.Client())
	c, line := ws(t, s)
	if !strings.HasPrefix(line, "HTTP/1.1 101") {
		t.Errorf("%q", line)
	}
	inUse(t, api, 0)
	inUse(t, sockets, 2)
	if res, _ := events(t, s, s.Client()); res.StatusCode != 503 || res.Header.Get("X-Stream") != "" {
		t.Errorf("a third: %d", res.StatusCode)
	}
	if a, line := ws(t, s); line != "HTTP/1.1 503 Service Unavailable" {
		t.Errorf("a fourth: %q, %q", line, a.Rest())
	}
	if got := ask(t, s, s.Client()); got != 200 {
		t.Errorf("an ordinary request: %d", got)
	}
	leave()
	c.Hangup()
	free(t, api, sockets)
}

// SL-06: the slot lasts as long as the answer, or until it begins, as the gate says.
func TestSL06HoldOfAnAnswer(t *testing.T) {
	overBoth(t, func(t *testing.T, client func(*forebaytest.Loopback) *http.Client) {
		for hold, want := range map[forebay.Hold]int{forebay.HoldHandler: 1, forebay.HoldFirstByte: 0, forebay.HoldUpstreamDone: 1} {
			g := newGate(t, forebay.Config{MaxInFlight: 1, Hold: hold})
			begins := map[string]func(http.ResponseWriter){
				"/header":  func(w http.ResponseWriter) { w.WriteHeader(201) },
				"/write":   func(w http.ResponseWriter) { _, _ = w.Write([]byte("x")) },
				"/string":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") },
				"/flush":   func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
				"/control": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
				"/copy":    func(w http.ResponseWriter) { _, _ = io.Copy(w, io.LimitReader(strings.NewReader("xxx"), 2)) },
				"/hints":   func(w http.ResponseWriter) { w.WriteHeader(103); inUse(t, g, 1); w.WriteHeader(200) },
			}
			s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inUse(t, g, 1)
				begins[r.URL.Path](w)
				inUse(t, g, want)
			})))
			for path := range begins {
				res, err := client(s).Get(s.URL() + path)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				free(t, g)
			}
		}
	})
}

// A connection that was taken over keeps its slot until somebody closes it, whatever the
// handler has done since; if nobody ever does, until it is forgotten.
func TestSlotOfAConnectionUntilItIsClosed(t *testing.T) {
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	for name, rules := range map[string]forebay.Streams{"held": {UntilClosed: true}, "moved": {UntilClosed: true, Gate: sockets}} {
		t.Run(name, func(t *testing.T) {
			forebaytest.CheckLeaks(t)
			g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: rules})
			holder := g
			if rules.Gate != nil {
				holder = rules.Gate
			}
			conns := make(chan net.Conn)
			s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Upgrade") == "" {
					return
				}
				c, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Errorf("hijack: %v", err)
				}
				go func() { conns <- c }()
			})))
			for range 3 {
				client := s.Dial()
				client.Send(upgrade)
				c := <-conns
				inUse(t, holder, 1)
				if n := ask(t, s, s.Client()); rules.Gate == nil && n != 503 {
					t.Errorf("the slot is taken, and the next gets %d", n)
				}
				_ = c.Close()
				_ = c.Close() // once more does nothing
				free(t, g, sockets)
				client.Hangup()
			}
			client := s.Dial()
			client.Send(upgrade)
			<-conns // and forgotten
			forebaytest.Eventually(t, "the slot of a forgotten connection comes back", func() bool {
				runtime.GC()
				return holder.Stats().InUse == 0
			})
			free(t, g, sockets)
		})
	}
}

// One that lasts too long is closed, and its slot free, whether its owner notices or not.
func TestSlotOfAConnectionThatLastsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{UntilClosed: true, MaxLife: time.Minute}})
		kept := make(chan net.Conn, 1)
		s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			kept <- c
		})))
		client := s.Dial()
		_, _ = io.WriteString(client, upgrade)
		time.Sleep(59 * time.Second)
		inUse(t, g, 1)
		time.Sleep(2 * time.Second)
		inUse(t, g, 0)
		_ = (<-kept).Close()
		free(t, g)
	})
}

// Without the rule it is the handler's end that counts, as it always was.
func TestSlotOfAConnectionUntilTheHandlerReturns(t *testing.T) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{MaxLife: time.Hour}})
	conns := make(chan net.Conn)
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		inUse(t, g, 1)
		go func() { conns <- c }()
	})))
	client := s.Dial()
	client.Send(upgrade)
	c := <-conns
	free(t, g)
	_ = c.Close()
	free(t, g)
}

// Streams end when they have lasted, or idled, as long as they may: to the millisecond.
func TestSL07StreamsEnd(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		name  string
		rules forebay.Streams
		beats []time.Duration // when something goes through it
		want  time.Duration
	}{
		{"life", forebay.Streams{MaxLife: 10 * second}, []time.Duration{second, 9 * second}, 10 * second},
		{"idle from the start", forebay.Streams{MaxIdle: 3 * second}, nil, 3 * second},
		{"idle later", forebay.Streams{MaxIdle: 3 * second}, []time.Duration{2 * second, 4 * second, 6 * second}, 9 * second},
		{"both", forebay.Streams{MaxIdle: 3 * second, MaxLife: 5 * second}, []time.Duration{2 * second, 4 * second}, 5 * second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { eventStreamEnds(t, c.rules, c.beats, c.want, false) })
			synctest.Test(t, func(t *testing.T) { eventStreamEnds(t, c.rules, c.beats, c.want, true) })
			for _, path := range []string{"/ws", "/takes", "/gives"} {
				synctest.Test(t, func(t *testing.T) { connectionEnds(t, path, c.rules, c.beats, c.want) })
			}
		})
	}
}

// eventStreamEnds runs in a bubble.
func eventStreamEnds(t *testing.T, rules forebay.Streams, beats []time.Duration, want time.Duration, http2 bool) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: rules})
	start := time.Now()
	s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for _, at := range beats {
			time.Sleep(at - time.Since(start))
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
		wantOver(t, r, rules, want)
	})))
	client := s.Client()
	if http2 {
		client = s.ClientHTTP2()
	}
	res, err := client.Get(forebaytest.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	if at := time.Since(start); at != want {
		t.Errorf("the event stream ended after %v, want %v", at, want)
	}
	synctest.Wait()
	free(t, g)
}

// wantOver checks that a request's context says why its stream ended.
func wantOver(t *testing.T, r *http.Request, rules forebay.Streams, at time.Duration) {
	t.Helper()
	why := fmt.Sprintf("nothing has come or gone for %v", rules.MaxIdle)
	if rules.MaxLife == at {
		why = fmt.Sprintf("it has lasted for %v", rules.MaxLife)
	}
	cause := context.Cause(r.Context())
	if !errors.Is(cause, forebay.ErrStreamOver) || !strings.HasSuffix(cause.Error(), why) {
		t.Errorf("the context ended by %v, want %q", cause, why)
	}
}

// connectionEnds runs in a bubble.
func connectionEnds(t *testing.T, path string, rules forebay.Streams, beats []time.Duration, want time.Duration) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: rules})
	start := time.Now()
	beat := func(c io.Writer) {
		for _, at := range beats {
			time.Sleep(at - time.Since(start))
			_, _ = io.WriteString(c, "x\n")
		}
	}
	s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path == "/ws" {
			streams(t)(w, r)
			return
		}
		c, _, _ := http.NewResponseController(w).Hijack()
		defer c.Close()
		if path == "/gives" {
			beat(c)
		}
		_, _ = io.Copy(io.Discard, c)
		wantOver(t, r, rules, want)
	})))
	c := s.Dial()
	go func() {
		_, _ = io.WriteString(c, upgrade)
		if path != "/gives" {
			beat(c)
		}
	}()
	_, _ = io.Copy(io.Discard, c)
	if at := time.Since(start); at != want {
		t.Errorf("the connection ended after %v, want %v", at, want)
	}
	synctest.Wait()
	free(t, g)
}

// A stream that has ended leaves its limits behind: they are not those of the next request
// on the connection.
func TestLimitsEndWithTheirStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{MaxLife: 10 * time.Second}})
		ran := 0
		s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ran++
			if r.URL.Path == "/events" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			_, _ = io.WriteString(w, "data: x\n\n")
			time.Sleep(8 * time.Second)
		})))
		for _, path := range []string{"/events", "/other"} { // from 0 to 8 s, and from 8 to 16
			res, err := s.Client().Get(forebaytest.URL + path)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if text, err := io.ReadAll(res.Body); string(text) != "data: x\n\n" || err != nil {
				t.Errorf("%s: %q, %v", path, text, err)
			}
			res.Body.Close()
		}
		if ran != 2 { // clients ask again where a connection breaks
			t.Errorf("%d requests came", ran)
		}
	})
}

// A handler that panics when its stream is refused has panicked all the same.
func TestPanicOfARefusedStream(t *testing.T) {
	sockets := closedGate(t, forebay.Config{Name: "sockets"})
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{Gate: sockets}})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		panic("a mistake")
	})))
	if res, err := s.Client().Get(s.URL()); err == nil {
		res.Body.Close()
	}
	free(t, g)
	forebaytest.Eventually(t, "it is logged", func() bool { return strings.Contains(s.ErrorLog(), "a mistake") })
}

// A stream whose client reads nothing is ended all the same.
func TestSL11StreamOfAClientThatDoesNotRead(t *testing.T) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{MaxIdle: 50 * time.Millisecond}})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for piece := strings.Repeat("data: x\n", 10_000); ; {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	})), func(s *http.Server) { s.HTTP2 = &http.HTTP2Config{WriteByteTimeout: 50 * time.Millisecond} })
	c := s.Dial()
	c.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	f := s.DialHTTP2()
	forebaytest.Eventually(t, "it runs", func() bool { return g.Stats().Accepted == 1 })
	free(t, g)
	f.Open(1, true, "GET", "/")
	forebaytest.Eventually(t, "it runs", func() bool { return g.Stats().Accepted == 2 })
	free(t, g)
}

// What the client sends together with its upgrade is not lost, and is said to be there.
func TestEarlyBytesOfAnUpgrade(t *testing.T) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: forebay.Streams{MaxLife: time.Hour}})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "%d buffered\n", rw.Reader.Buffered())
		_, _ = io.CopyN(c, rw, 12)
		_, _ = rw.WriteString("\nbye\n")
		_ = rw.Flush()
	})))
	c := s.Dial()
	c.Send(upgrade + "early\n")
	if line := c.Line(); line != "6 buffered" {
		t.Errorf("%q", line)
	}
	c.Send("late.\n")
	if rest := c.Rest(); rest != "early\nlate.\n\nbye\n" {
		t.Errorf("%q", rest)
	}
	free(t, g)
}

// A handler that gives its slot back early, panics, or never writes, under every rule.
func TestStreamsEndWell(t *testing.T) {
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	for _, rules := range []forebay.Streams{{Release: true}, {Gate: sockets}, {UntilClosed: true}, {MaxLife: time.Hour}} {
		for _, hold := range []forebay.Hold{forebay.HoldHandler, forebay.HoldFirstByte} {
			g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: rules, Hold: hold})
			s := forebaytest.NewLoopback(t, g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, l forebay.Lease) {
				w.Header().Set("Content-Type", "text/event-stream")
				switch r.URL.Path {
				case "/early":
					l.Release()
					_, _ = io.WriteString(w, "data: x\n\n")
				case "/panic":
					_, _ = io.WriteString(w, "data: x\n\n")
					panic(http.ErrAbortHandler)
				case "/hijack":
					c, _, _ := http.NewResponseController(w).Hijack()
					defer c.Close()
					if hold == forebay.HoldFirstByte {
						inUse(t, g, 0)
					}
					panic(http.ErrAbortHandler)
				case "/error", "/page": // is no stream
					if r.URL.Path == "/page" {
						w.Header().Set("Content-Type", "text/html; charset=utf-8")
						w.WriteHeader(http.StatusOK)
					} else {
						w.WriteHeader(http.StatusTeapot)
					}
					if hold == forebay.HoldHandler {
						inUse(t, g, 1)
					}
				}
			}))
			for _, path := range []string{"/early", "/panic", "/hijack", "/error", "/page", "/nothing"} {
				res, err := s.Client().Get(s.URL() + path)
				if err == nil {
					res.Body.Close()
				}
				free(t, g, sockets)
			}
		}
	}
}

func TestStreamMistakes(t *testing.T) {
	g := newGate(t, forebay.Config{MaxInFlight: 1})
	for _, c := range []struct {
		config forebay.Config
		want   string
	}{
		{forebay.Config{Streams: forebay.Streams{Release: true, Gate: g}}, "Release and a Gate"},
		{forebay.Config{Streams: forebay.Streams{Release: true, UntilClosed: true}}, "Release and UntilClosed"},
		{forebay.Config{Streams: forebay.Streams{MaxLife: -1}}, "MaxLife is -1ns"},
		{forebay.Config{Streams: forebay.Streams{MaxIdle: 1 << 62}}, "MaxIdle is"},
		{forebay.Config{Hold: 3}, "Hold is 3"},
		{forebay.Config{MaxRun: -1}, "MaxRun is -1ns"},
	} {
		c.config.MaxInFlight = 1
		if _, err := forebay.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	c := g.Config()
	c.Streams.Gate = g
	if err := g.Reconfigure(c); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("%v", err)
	}
	if words := forebay.HoldHandler.String() + forebay.HoldFirstByte.String() + forebay.HoldUpstreamDone.String() + forebay.Hold(9).String(); words != "handlerfirst_byteupstream_doneunknown" {
		t.Errorf("%q", words)
	}
}

// Streams never move to a gate that their request has passed: chains and groups of such
// gates are not made, and where a path names that gate by another reading the stream keeps
// what it has.
func TestStreamsNeverWaitForTheirOwnSlot(t *testing.T) {
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1})
	api := newGate(t, forebay.Config{Name: "api", MaxInFlight: 1, MaxWait: time.Hour, Streams: forebay.Streams{Gate: sockets}})
	const want = `streams of gate "api" are to move to gate "sockets", which is in the same chain`
	if _, err := forebay.NewChain(api, sockets); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a chain: %v, want %q", err, want)
	}
	both := []forebay.Route{{Match: "/", Gates: []*forebay.Gate{sockets, api}}}
	if _, err := forebay.NewGroups(forebay.GroupsConfig{Routes: both}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a group: %v, want %q", err, want)
	}
	groups, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "/", Gates: []*forebay.Gate{api}}, {Match: "/ws", Gates: []*forebay.Gate{sockets}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := forebaytest.NewLoopback(t, groups.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/ws"
		streams(t)(w, r)
	})))
	c := s.Dial()
	c.Send(strings.Replace(upgrade, "/ws", "//ws", 1)) // which some read as /ws
	line := c.Line()
	if line != "HTTP/1.1 101 Switching Protocols" || api.Stats().InUse != 1 || sockets.Stats().InUse != 1 {
		t.Errorf("%q, with %d and %d slots; want both", line, api.Stats().InUse, sockets.Stats().InUse)
	}
	c.Hangup()
	free(t, api)
	free(t, sockets)
}

// AD-13: how long a stream lasts says nothing about a backend: a limiter is told so, by
// the gate in which it lasts. Where it only began it was as quick as its beginning.
func TestAD13StreamsSayNothing(t *testing.T) {
	for name, c := range map[string]struct {
		streams forebay.Streams
		want    forebay.Outcome
	}{
		"kept while the handler runs": {forebay.Streams{MaxLife: time.Hour}, forebay.OutcomeIgnored},
		"kept until it is closed":     {forebay.Streams{UntilClosed: true}, forebay.OutcomeIgnored},
		"given back as it begins":     {forebay.Streams{Release: true}, forebay.OutcomeDone},
	} {
		var seen forebaytest.Recorder
		g := newGate(t, forebay.Config{MaxInFlight: 1, Streams: c.streams, Observers: []forebay.Observer{&seen}})
		s := forebaytest.NewLoopback(t, g.Wrap(streams(t)))
		first, _ := ws(t, s)
		first.Hangup()
		forebaytest.Eventually(t, name, func() bool { return seen.CountKind(forebay.EventReleased) == 1 })
		for _, e := range seen.Events() {
			if e.Kind == forebay.EventReleased && e.Outcome != c.want {
				t.Errorf("%s: %v, want %v", name, e.Outcome, c.want)
			}
		}
	}
}
