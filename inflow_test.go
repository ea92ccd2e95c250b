package forebay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// lined is a server with one slot, which is taken, and a line before it.
type lined struct {
	*forebaytest.Loopback
	t     *testing.T
	gate  *forebay.Gate
	in    *forebay.Intake
	ran   atomic.Int64
	lease forebay.Lease // of the slot
}

func newLined(t *testing.T, c forebay.IntakeConfig, h http.HandlerFunc, change ...func(*http.Server)) *lined {
	t.Helper()
	forebaytest.CheckLeaks(t)
	l := &lined{t: t, in: newIntake(t, c)}
	var err error
	l.gate, err = forebay.New(forebay.Config{MaxInFlight: 1, MaxWait: time.Hour, MaxWaiting: 1000, Intake: l.in})
	if err != nil {
		t.Fatal(err)
	}
	if h == nil {
		h = func(http.ResponseWriter, *http.Request) {}
	}
	l.Loopback = forebaytest.NewLoopback(t, l.gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.ran.Add(1)
		h(w, r)
	})), change...)
	l.take()
	t.Cleanup(l.end)
	return l
}

// withSockets lets the gate ask the sockets.
func withSockets(s *http.Server) { s.ConnContext = forebay.ConnContext }

func (l *lined) take() {
	l.t.Helper()
	lease, ok := l.gate.TryAcquire(forebay.Call{})
	if !ok {
		l.t.Fatal("the slot is not free")
	}
	l.lease = lease
}

func (l *lined) end() {
	l.t.Helper()
	l.lease.Release()
	l.Close()
	forebaytest.Eventually(l.t, "the gate is idle", func() bool { st := l.gate.Stats(); return st.InUse+st.Waiting == 0 })
	idle(l.t, l.in)
	if text := l.ErrorLog(); text != "" {
		l.t.Errorf("the server complains: %s", text)
	}
}

func (l *lined) waiting(n int) {
	l.t.Helper()
	forebaytest.Eventually(l.t, fmt.Sprint(n, " wait"), func() bool { return l.gate.Stats().Waiting == n })
}

// endings are the ways in which a client leaves. A half that closes counts as one.
var endings = map[string]func(*forebaytest.Raw){
	"hangs up": (*forebaytest.Raw).Hangup, "resets": (*forebaytest.Raw).Reset, "closes one half": (*forebaytest.Raw).CloseWrite,
}

var (
	// readAhead are requests of which the body can be read ahead.
	readAhead = map[string]string{
		"no body":             "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"whole":               sized(4) + "body",
		"whole, in chunks":    chunked + "4\r\nbody\r\n0\r\n\r\n",
		"whole, 64 KiB":       sized(64<<10) + strings.Repeat("x", 64<<10),
		"whole, 60000 in two": chunked + "7530\r\n" + strings.Repeat("x", 30000) + "\r\n7530\r\n" + strings.Repeat("x", 30000) + "\r\n0\r\n\r\n",
		"nothing of it":       sized(1000),
		"half of it":          sized(1000) + strings.Repeat("x", 500),
		"nothing, in chunks":  chunked,
		"no end of chunks":    chunked + "4\r\nbody\r\n",
		"half a chunk":        chunked + "1000\r\nx",
		"PUT, half of 64 KiB": strings.Replace(sized(64<<10), "POST", "PUT", 1) + strings.Repeat("x", 32<<10),
		"DELETE with a body":  strings.Replace(sized(10), "POST", "DELETE", 1) + "x",
		"GET with a body":     strings.Replace(sized(10), "POST", "GET", 1) + "x",
	}
	// notAhead are those of which it cannot.
	notAhead = map[string]string{
		"large":                   sized(1<<20) + strings.Repeat("x", 100<<10),
		"large, nothing of it":    sized(1 << 20),
		"above the bound":         sized(64<<10+1) + "x",
		"large, in chunks":        chunked + "20000\r\n" + strings.Repeat("x", 0x20000) + "\r\n1000\r\n",
		"asks to go on":           sized(1000, "Expect: 100-continue\r\n"),
		"asks to go on, in chunk": head + "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
	}
)

// SL-13: whoever leaves in line is out of it, though nothing else happens, and never
// runs, whatever the method and as far as its body may have come.
func TestSL13WhoLeavesInLineIsNoticed(t *testing.T) {
	leaveInLine(t, newLined(t, forebay.IntakeConfig{}, nil), readAhead)
}

// And with the server's connections known, those too whose body is not read.
func TestSL13WhoLeavesInLineIsNoticedByItsSocket(t *testing.T) {
	needsSockets(t)
	some := map[string]string{"whole": readAhead["whole"], "half of it": readAhead["half of it"], "no end of chunks": readAhead["no end of chunks"]}
	t.Run("read ahead", func(t *testing.T) { leaveInLine(t, newLined(t, forebay.IntakeConfig{}, nil, withSockets), readAhead) })
	t.Run("too large", func(t *testing.T) {
		l := newLined(t, forebay.IntakeConfig{}, nil, withSockets)
		leaveInLine(t, l, notAhead)
		if st := l.in.Stats(); st.Bytes.Peak > 64<<10 {
			t.Errorf("more is read ahead than may be: %+v", st)
		}
	})
	t.Run("not at all", func(t *testing.T) {
		leaveInLine(t, newLined(t, forebay.IntakeConfig{ReadAhead: -1}, nil, withSockets), some)
	})
	t.Run("no room", func(t *testing.T) {
		leaveInLine(t, newLined(t, forebay.IntakeConfig{Bytes: forebay.NewBytes(0)}, nil, withSockets), some)
	})
	t.Run("wrapped", func(t *testing.T) {
		l := newLined(t, forebay.IntakeConfig{}, nil, withSockets, func(s *http.Server) { s.Handler = wrapsBody(s.Handler) })
		leaveInLine(t, l, some)
	})
}

// So does one behind TLS, and behind a listener's wrapper.
func TestSL13WhoLeavesInLineIsNoticedBehindTLS(t *testing.T) {
	needsSockets(t)
	l := newLined(t, forebay.IntakeConfig{}, nil)
	s := httptest.NewUnstartedServer(l.Server.Handler)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return forebay.ConnContext(ctx, wrapped{c})
	}
	s.StartTLS()
	defer s.Close()
	for how, leave := range map[string]func(*tls.Conn) error{"closes": (*tls.Conn).Close, "resets": func(c *tls.Conn) error {
		_ = c.NetConn().(*net.TCPConn).SetLinger(0)
		return c.NetConn().Close()
	}} {
		c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, notAhead["large"])
		l.waiting(1)
		if err := leave(c); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		l.waiting(0)
	}
	if l.ran.Load() != 0 {
		t.Error("it ran for nobody")
	}
}

// wrapped is a connection of a listener that wraps its own.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

func needsSockets(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sockets do not tell here")
	}
}

func leaveInLine(t *testing.T, l *lined, requests map[string]string) {
	for request, text := range requests {
		for how, leave := range endings {
			before := l.gate.Stats().Canceled
			c := l.Dial()
			c.Send(text)
			l.waiting(1)
			leave(c)
			forebaytest.Eventually(t, request+" "+how, func() bool { return l.gate.Stats().Waiting == 0 })
			if n := l.gate.Stats().Canceled - before; n != 1 {
				t.Errorf("%s, %s: %d have left", request, how, n)
			}
			if how == "closes one half" {
				if rest := c.Rest(); rest != "" {
					t.Errorf("%s, %s: got %q", request, how, rest)
				}
			}
			c.Hangup()
		}
	}
	idle(t, l.in)
	l.lease.Release()
	if n := l.ran.Load(); n != 0 {
		t.Errorf("%d ran for nobody", n)
	}
	c := l.Dial()
	c.Send(sized(4) + "body")
	if a := c.Answer("POST"); a.StatusCode != 200 || l.ran.Load() != 1 {
		t.Errorf("the next: %d", a.StatusCode)
	}
}

// Who leaves in the moment in which it gets the slot does not run either: the socket is
// asked once more, and the slot goes to the next.
func TestQU02WhoLeavesAtTheGrantDoesNotRun(t *testing.T) {
	needsSockets(t)
	l := newLined(t, forebay.IntakeConfig{}, nil, withSockets)
	for range 20 {
		first, second := l.Dial(), l.Dial()
		first.Send(notAhead["large"])
		l.waiting(1)
		second.Send(sized(4) + "body")
		l.waiting(2)
		first.Reset()
		l.lease.Release()
		if a := second.Answer("POST"); a.StatusCode != 200 {
			t.Errorf("the next: %d", a.StatusCode)
		}
		second.Hangup()
		forebaytest.Eventually(t, "the slot is free", func() bool { return l.gate.Stats().InUse == 0 })
		l.take()
	}
	if n, st := l.ran.Load(), l.gate.Stats(); n != 20 || st.Canceled != 20 {
		t.Errorf("%d ran, %+v", n, st)
	}
}

// Reading ahead ends with the wait: what comes later is not held.
func TestReadingAheadEndsWithTheWait(t *testing.T) {
	sent := make(chan struct{})
	l := newLined(t, forebay.IntakeConfig{}, func(w http.ResponseWriter, r *http.Request) {
		<-sent
		<-time.After(20 * time.Millisecond) // whoever read on would have read it
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	c := l.Dial()
	c.Send(chunked + "4\r\nbody\r\n")
	l.waiting(1)
	forebaytest.Eventually(t, "it is read ahead", func() bool { return l.in.Stats().Bytes.Held == 4<<10 })
	l.lease.Release()
	forebaytest.Eventually(t, "it runs", func() bool { return l.ran.Load() == 1 })
	c.Send("7530\r\n" + strings.Repeat("x", 30_000) + "\r\n0\r\n\r\n")
	close(sent)
	if a := c.Answer("POST"); a.Text != "30004 <nil>" {
		t.Errorf("%q", a.Text)
	}
	if st := l.in.Stats(); st.Bytes.Peak != 4<<10 {
		t.Errorf("%+v", st)
	}
}

// Where a body of unknown length needs more room than there is, no more of it is read.
func TestReadingAheadEndsWithTheRoom(t *testing.T) {
	b := forebay.NewBytes(6000)
	l := newLined(t, forebay.IntakeConfig{Bytes: b}, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})
	c := l.Dial()
	c.Send(chunked + "7530\r\n" + strings.Repeat("x", 30_000) + "\r\n0\r\n\r\n")
	l.waiting(1)
	forebaytest.Eventually(t, "there is no room", func() bool { return b.Stats().Refused == 1 })
	l.lease.Release()
	if a := c.Answer("POST"); a.Text != "30000 <nil>" {
		t.Errorf("%q", a.Text)
	}
}

// With hundreds of them at once, who leave one by one.
func TestSL13HundredsLeaveInLine(t *testing.T) {
	l := newLined(t, forebay.IntakeConfig{}, nil, withSockets)
	n := 300
	all := make([]*forebaytest.Raw, n)
	for i := range all {
		all[i] = l.Dial()
		switch i % 3 {
		case 0:
			all[i].Send(sized(1000) + "half")
		case 1:
			all[i].Send(chunked + "4\r\nbody\r\n0\r\n\r\n")
		default:
			all[i].Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
	}
	l.waiting(n)
	for i, c := range all {
		if i%2 == 0 {
			c.Reset()
		} else {
			c.Hangup()
		}
	}
	l.waiting(0)
	if st := l.gate.Stats(); st.Canceled != uint64(n) || l.ran.Load() != 0 {
		t.Errorf("%+v, %d ran", st, l.ran.Load())
	}
}

// What was read ahead is the handler's, byte by byte, wherever reading ahead stopped and
// whenever the rest comes; and the connection goes on.
func TestBodiesThatWereReadAheadAreWhole(t *testing.T) {
	sums := make(chan [32]byte, 1)
	l := newLined(t, forebay.IntakeConfig{}, func(w http.ResponseWriter, r *http.Request) {
		all, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading: %v", err)
		}
		if n := r.ContentLength; n >= 0 && n != int64(len(all)) {
			t.Errorf("%d bytes, want %d", len(all), n)
		}
		sums <- sha256.Sum256(all)
		fmt.Fprint(w, len(all), r.Trailer.Get("X-Trailer"))
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	c := l.Dial()
	for round := range 60 {
		body := make([]byte, random.IntN([]int{10, 5000, 70_000, 200_000}[round%4]))
		for i := range body {
			body[i] = byte(random.Uint32())
		}
		request, trailer := sized(len(body))+string(body), ""
		if round%2 > 0 {
			request, trailer = inChunks(random, body), "end"
		}
		cut := random.IntN(len(request) + 1)
		c.Send(request[:cut])
		if cut >= strings.Index(request, "\r\n\r\n")+4 {
			l.waiting(1)
		}
		var rest sync.WaitGroup
		rest.Go(func() {
			for text := request[cut:]; text != ""; {
				n := min(len(text), 1+random.IntN(20_000))
				c.Send(text[:n])
				text = text[n:]
			}
		})
		l.waiting(1)
		l.lease.Release()
		if got := <-sums; got != sha256.Sum256(body) {
			t.Fatalf("round %d: another body of %d came", round, len(body))
		}
		rest.Wait()
		if a := c.Answer("POST"); a.Text != fmt.Sprint(len(body), trailer) || a.Close {
			t.Fatalf("round %d: %q", round, a.Text)
		}
		forebaytest.Eventually(t, "the slot is free", func() bool { return l.gate.Stats().InUse == 0 })
		l.take()
	}
}

func inChunks(random *rand.Rand, body []byte) string {
	var b bytes.Buffer
	b.WriteString(strings.Replace(chunked, "\r\n\r\n", "\r\nTrailer: X-Trailer\r\n\r\n", 1))
	for len(body) > 0 {
		n := min(len(body), 1+random.IntN(30_000))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	b.WriteString("0\r\nX-Trailer: end\r\n\r\n")
	return b.String()
}

// A handler may do with such a body what it may do with any other.
func TestBodiesThatWereReadAheadBehaveAsAnyOther(t *testing.T) {
	whole, half := sized(8)+"the body", sized(8)+"the "
	for name, c := range map[string]struct {
		request, more string
		handle        func(w http.ResponseWriter, r *http.Request) string
		want          string
		keeps         bool
	}{
		"nobody reads it":       {whole, "", func(http.ResponseWriter, *http.Request) string { return "" }, "", true},
		"nobody reads the half": {half, "body", func(http.ResponseWriter, *http.Request) string { return "" }, "", true},
		"closed": {whole, "", func(_ http.ResponseWriter, r *http.Request) string {
			err := r.Body.Close()
			_, after := r.Body.Read(make([]byte, 1))
			return fmt.Sprint(err, after)
		}, "<nil> http: invalid Read on closed Body", true},
		"byte by byte": {half, "body", func(_ http.ResponseWriter, r *http.Request) string {
			text, p := "", make([]byte, 1)
			for {
				n, err := r.Body.Read(p)
				text += string(p[:n])
				if err != nil {
					return text + err.Error()
				}
			}
		}, "the bodyEOF", true},
		"limited": {whole, "", func(w http.ResponseWriter, r *http.Request) string {
			text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3))
			return string(text) + err.Error()
		}, "thehttp: request body too large", false},
		"full duplex": {half, "body", func(w http.ResponseWriter, r *http.Request) string {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.WriteString(w, "at once ")
			text, _ := io.ReadAll(r.Body)
			return string(text)
		}, "at once the body", true},
		"read with nothing": {whole, "", func(_ http.ResponseWriter, r *http.Request) string {
			n, err := r.Body.Read(nil)
			return fmt.Sprint(n, err)
		}, "0 <nil>", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLined(t, forebay.IntakeConfig{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, c.handle(w, r))
			})
			raw := l.Dial()
			raw.Send(c.request)
			l.waiting(1)
			l.lease.Release()
			raw.Send(c.more)
			a := raw.Answer("POST")
			if a.Text != c.want || a.Close == c.keeps {
				t.Errorf("%q, close %v", a.Text, a.Close)
			}
			if c.keeps {
				raw.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				if a := raw.Answer("GET"); a.StatusCode != 200 {
					t.Errorf("the next on the connection: %d", a.StatusCode)
				}
			}
		})
	}
}

// A connection that is taken over in the middle of a body is the handler's.
func TestHijackOfABodyThatIsReadAhead(t *testing.T) {
	l := newLined(t, forebay.IntakeConfig{}, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("hijack: %v", err)
			return
		}
		defer c.Close()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString("raw " + line)
		_ = rw.Flush()
	})
	c := l.Dial()
	c.Send(sized(1000) + "half")
	l.waiting(1)
	l.lease.Release()
	forebaytest.Eventually(t, "it runs", func() bool { return l.ran.Load() == 1 })
	forebaytest.Eventually(t, "the bytes are back", func() bool { return l.in.Stats().Bytes.Held == 0 })
	c.Send("line\n")
	if rest := c.Rest(); rest != "raw halfline\n" { // as much of the body as had come, and what follows
		t.Errorf("%q", rest)
	}
}

// Nothing is read ahead of a request that need not wait, or whose client has to be told
// to go on: that is the handler's to say.
func TestNothingIsReadBeforeItHasToWait(t *testing.T) {
	l := newLined(t, forebay.IntakeConfig{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}, withSockets)
	c := l.Dial()
	c.Send(sized(4, "Expect: 100-continue\r\n"))
	l.waiting(1)
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Conn.Read(make([]byte, 1)); n > 0 {
		t.Errorf("bytes came while it waits: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	l.lease.Release()
	if line := c.Line() + c.Line(); line != "HTTP/1.1 100 Continue" {
		t.Errorf("%q", line)
	}
	c.Send("body")
	if a := c.Answer("POST"); a.Text != "body" || a.StatusCode != 200 {
		t.Errorf("%d %q", a.StatusCode, a.Text)
	}
	if st := l.in.Stats(); st.Bytes.Peak != 0 {
		t.Errorf("%+v", st)
	}
}

// What is read ahead counts, is bounded, and goes back whatever ends the wait.
func TestBytesReadAheadAreCounted(t *testing.T) {
	const each, room = 10_000, 5
	b := forebay.NewBytes(room*each + each/2)
	l := newLined(t, forebay.IntakeConfig{Bytes: b}, func(w http.ResponseWriter, r *http.Request) {
		before := b.Stats().Held
		switch r.URL.Path {
		case "/panics":
			panic(http.ErrAbortHandler)
		case "/reads":
			_, _ = io.Copy(io.Discard, r.Body)
			if after := b.Stats().Held; before > 0 && after > before-each {
				t.Errorf("%d bytes are held when a body has been read, %d before", after, before)
			}
		}
	})
	var all []*forebaytest.Raw
	for i, path := range []string{"/reads", "/panics", "/ignores", "/leaves", "/reads", "/ignores", "/reads", "/panics"} {
		c := l.Dial()
		c.Send(strings.Replace(sized(each), "/", path, 1) + strings.Repeat("x", each))
		l.waiting(i + 1)
		forebaytest.Eventually(t, "it is read ahead, or there is no room", func() bool {
			st := b.Stats()
			return st.Held == int64(min(i+1, room)*each) && st.Refused == uint64(max(0, i+1-room))
		})
		all = append(all, c)
	}
	all[3].Hangup()
	l.waiting(len(all) - 1)
	forebaytest.Eventually(t, "who left gives back", func() bool { return b.Stats().Held == (room-1)*each })
	l.lease.Release()
	forebaytest.Eventually(t, "all have run", func() bool { return l.ran.Load() == int64(len(all)-1) })
	forebaytest.Eventually(t, "everything is given back", func() bool { return b.Stats().Held == 0 })
}

// A wait in vain gives back as well, and the refusal arrives though the body does not.
func TestRJ02RefusalAfterAWaitInVain(t *testing.T) {
	l := newLined(t, forebay.IntakeConfig{DiscardTime: 50 * time.Millisecond}, nil)
	c := l.gate.Config()
	c.MaxWait = 10 * time.Millisecond
	if err := l.gate.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	for _, requests := range []map[string]string{readAhead, notAhead} {
		for name, request := range requests {
			whole := strings.HasPrefix(name, "whole") || name == "no body"
			c := l.Dial()
			c.Send(request)
			a := c.Answer("POST")
			if a.StatusCode != 503 || !strings.Contains(a.Text, "rejected_timeout") || a.Close == whole {
				t.Errorf("%s: %d %q, close %v", name, a.StatusCode, a.Text, a.Close)
			}
			if !whole {
				if rest := c.Rest(); rest != "" {
					t.Errorf("%s: then came %q", name, rest)
				}
			}
			c.Hangup()
		}
	}
	if n := l.ran.Load(); n != 0 {
		t.Errorf("%d ran", n)
	}
}
