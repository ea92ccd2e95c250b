package forebay_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// trickle sends a request in memory and then so many bytes at each beat, until the
// connection ends. It runs in a bubble.
func trickle(s *forebaytest.Server, request string, each int, beat time.Duration) {
	c := s.Dial()
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, _ = io.WriteString(c, request)
	for {
		time.Sleep(beat)
		if _, err := io.WriteString(c, strings.Repeat("x", each)); err != nil {
			return
		}
	}
}

// SL-18: four clients announce a megabyte and send a byte a second. With a pace their
// slots come back; and with the body before the slot they never had one.
func TestSL18TrickledBodiesDoNotKeepTheirSlots(t *testing.T) {
	for name, c := range map[string]struct {
		rules     forebay.Upload
		slotsFor  time.Duration // how long the slots are gone
		withSlots bool
	}{
		"pace":       {forebay.Upload{MinRate: 1000, Grace: 2 * time.Second}, 2 * time.Second, true},
		"time":       {forebay.Upload{MaxTime: 10 * time.Second}, 10 * time.Second, true},
		"body first": {forebay.Upload{BodyFirst: 1 << 20, MinRate: 1000}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newIntake(t, forebay.IntakeConfig{})
				g := newGate(t, forebay.Config{MaxInFlight: 4, Upload: c.rules, Intake: in})
				s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						_, again := r.Body.Read(make([]byte, 1))
						if !errors.Is(err, os.ErrDeadlineExceeded) || again != err {
							t.Errorf("reading: %v, and again: %v", err, again)
						}
						w.WriteHeader(http.StatusRequestTimeout)
					}
				})))
				for range 4 {
					go trickle(s, sized(1<<20), 1, time.Second)
				}
				start := time.Now()
				synctest.Wait()
				if held := g.Stats().InUse == 4; held != c.withSlots {
					t.Errorf("%d in use", g.Stats().InUse)
				}
				for g.Stats().InUse > 0 {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(start); took < c.slotsFor || took > c.slotsFor+10*time.Millisecond {
					t.Errorf("the slots are back after %v, want %v", took, c.slotsFor)
				}
				res, err := s.Client().Post(forebaytest.URL, "", strings.NewReader("a normal one"))
				if err != nil || res.StatusCode != 200 {
					t.Errorf("%v, %v", res, err)
				}
				time.Sleep(time.Minute)
				if st := in.Stats(); st.Slow != 4 || st.Bytes.Held != 0 {
					t.Errorf("%+v", st)
				}
				if st := g.Stats(); st.Granted != st.Released || st.Waiting > 0 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// The pace is that of the client: one that keeps it may take all day, and a handler that
// pauses is not its fault.
func TestSL18PaceIsTheClients(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{MinRate: 100, Grace: 1500 * time.Millisecond, MaxTime: time.Hour}})
			s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p := make([]byte, 100)
				for i := range 5 {
					if n, err := io.ReadFull(r.Body, p); err != nil {
						t.Errorf("piece %d: %d, %v", i, n, err)
					}
					time.Sleep(24 * time.Hour) // the client has sent long since, and waits
				}
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})))
			client, start := s.Client(), time.Now()
			if http2 {
				client = s.ClientHTTP2()
			}
			body := &beating{pieces: 600, each: 100, beat: time.Second} // just the pace
			res, err := client.Post(forebaytest.URL, "", body)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			if want := fmt.Sprint(600*100-500, error(nil)); string(text) != want {
				t.Errorf("%q after %v, want %q", text, time.Since(start), want)
			}
		})
	}
}

// A body that has come ends nobody's time: its request may wait and run for as long as it
// likes, whatever was left of the body's.
func TestTimeOfABodyEndsWithIt(t *testing.T) {
	for _, rules := range []forebay.Upload{{MinRate: 1000}, {MaxTime: time.Second, BodyFirst: 100}, {MaxTime: time.Second}} {
		for _, http2 := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(t, forebay.Config{MaxInFlight: 1, MaxWait: 3 * time.Hour, Upload: rules})
				s := forebaytest.NewServer(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					text, err := io.ReadAll(r.Body)
					time.Sleep(time.Hour)
					if _, more := r.Body.Read(make([]byte, 1)); err != nil || more != io.EOF || r.Context().Err() != nil {
						t.Errorf("%q, %v, then %v; the context: %v", text, err, more, r.Context().Err())
					}
					time.Sleep(time.Hour)
					fmt.Fprint(w, string(text), r.Context().Err())
				})))
				client := s.Client()
				if http2 {
					client = s.ClientHTTP2()
				}
				var both sync.WaitGroup
				for range 2 { // one of them waits
					both.Go(func() {
						res, err := client.Post(forebaytest.URL, "", strings.NewReader("body"))
						if err != nil {
							t.Errorf("%v", err)
							return
						}
						defer res.Body.Close()
						if text, err := io.ReadAll(res.Body); string(text) != "body<nil>" || err != nil {
							t.Errorf("%q, %v", text, err)
						}
					})
				}
				both.Wait()
			})
		}
	}
}

// Rules do not take the server's own time-out away.
func TestRulesKeepTheServersReadTimeout(t *testing.T) {
	g := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{MinRate: 1, Grace: time.Hour}})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); errors.Is(err, os.ErrDeadlineExceeded) {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})), func(s *http.Server) { s.ReadTimeout = 100 * time.Millisecond })
	c := s.Dial()
	c.Send(sized(100) + "half")
	if a := c.Answer("POST"); a.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%d", a.StatusCode)
	}
}

// beating is a body of which a piece comes at each beat.
type beating struct {
	pieces, each int
	beat         time.Duration
}

// Read runs in a bubble.
func (b *beating) Read(p []byte) (int, error) {
	if b.pieces == 0 {
		return 0, io.EOF
	}
	b.pieces--
	time.Sleep(b.beat)
	return copy(p, strings.Repeat("x", b.each)), nil
}

// With the body first a request has no slot while it comes, and all of it when it runs.
func TestBodyFirst(t *testing.T) {
	overBoth(t, func(t *testing.T, client func(*forebaytest.Loopback) *http.Client) {
		forebaytest.CheckLeaks(t)
		in := newIntake(t, forebay.IntakeConfig{})
		g := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{BodyFirst: 10_000}, Intake: in})
		s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inUse(t, g, 1)
			_, _ = io.Copy(w, r.Body)
		})))
		for _, size := range []int{0, 1, 5000, 10_000} {
			for _, known := range []bool{true, false} {
				read, write := io.Pipe()
				body := io.Reader(read)
				r, err := http.NewRequest("POST", s.URL(), body)
				if err != nil {
					t.Fatal(err)
				}
				if known {
					r.ContentLength = int64(size)
				}
				if known && size == 0 {
					r.Body = http.NoBody
				}
				got := make(chan string)
				go func() {
					res, err := client(s).Do(r)
					if err != nil {
						t.Errorf("%d: %v", size, err)
						got <- ""
						return
					}
					defer res.Body.Close()
					text, _ := io.ReadAll(res.Body)
					got <- string(text)
				}()
				text := strings.Repeat("x", size)
				if size > 1 {
					_, _ = io.WriteString(write, text[:size/2])
					forebaytest.Eventually(t, "it is held as memory", func() bool { return in.Stats().Bytes.Held > 0 })
					inUse(t, g, 0)
					text = text[size/2:]
				}
				if r.Body != http.NoBody {
					_, _ = io.WriteString(write, text)
				}
				write.Close()
				if n := len(<-got); n != size {
					t.Errorf("%d bytes came back, want %d", n, size)
				}
				free(t, g)
				idle(t, in)
			}
		}
	})
}

// What is too large for that, or finds no memory, comes while the slot is held; so does
// what the client has to be told to send.
func TestBodyFirstHasItsBounds(t *testing.T) {
	for name, request := range map[string]string{
		"too large":           sized(2000) + strings.Repeat("x", 1500),
		"too large in chunks": chunked + "5dc\r\n" + strings.Repeat("x", 1500) + "\r\n",
		"no memory":           sized(900) + strings.Repeat("x", 500),
		"asks to go on":       sized(900, "Expect: 100-continue\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			forebaytest.CheckLeaks(t)
			room := int64(10_000)
			if name == "no memory" {
				room = 800
			}
			in := newIntake(t, forebay.IntakeConfig{Bytes: forebay.NewBytes(room)})
			g := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{BodyFirst: 1000}, Intake: in})
			s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, n, err)
			})))
			c := s.Dial()
			c.Send(request)
			forebaytest.Eventually(t, "it runs before its body has come", func() bool { return g.Stats().InUse == 1 })
			rest, want := strings.Repeat("x", 500), "2000 <nil>"
			switch name {
			case "too large in chunks":
				rest = "1f4\r\n" + rest + "\r\n0\r\n\r\n"
			case "no memory":
				rest, want = rest[:400], "900 <nil>"
			case "asks to go on":
				rest, want = rest+rest[:400], "900 <nil>"
				if line := c.Line() + c.Line(); line != "HTTP/1.1 100 Continue" {
					t.Errorf("%q", line)
				}
			}
			c.Send(rest)
			if a := c.Answer("POST"); a.Text != want {
				t.Errorf("%q, want %q", a.Text, want)
			}
			free(t, g)
			idle(t, in)
		})
	}
}

// Who is too slow before it has a slot is told 408, and is none of the gate's requests;
// who leaves is told nothing.
func TestBodyThatDoesNotCome(t *testing.T) {
	forebaytest.CheckLeaks(t)
	in := newIntake(t, forebay.IntakeConfig{DiscardTime: 10 * time.Millisecond})
	g := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{BodyFirst: 1000, MaxTime: 20 * time.Millisecond}, Intake: in})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") })))
	for _, request := range []string{sized(100) + "half", chunked + "4\r\nbo", chunked} {
		c := s.Dial()
		c.Send(request)
		if a := c.Answer("POST"); a.StatusCode != 408 || !a.Close || !strings.Contains(a.Text, `{"error":"request_timeout","requestId":"`) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d, close %v, %q", a.StatusCode, a.Close, a.Text)
		}
		if rest := c.Rest(); rest != "" {
			t.Errorf("then came %q", rest)
		}
	}
	idle(t, in)
	if st := in.Stats(); st.Slow != 3 {
		t.Errorf("%+v", st)
	}
	patient := newGate(t, forebay.Config{MaxInFlight: 1, Upload: forebay.Upload{BodyFirst: 1000}, Intake: in})
	p := forebaytest.NewLoopback(t, patient.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") })))
	for _, leave := range endings {
		c := p.Dial()
		c.Send(sized(100) + "half")
		forebaytest.Eventually(t, "it is being read", func() bool { return in.Stats().Bytes.Held == 100 })
		leave(c)
		idle(t, in)
		if rest, _ := bufio.NewReader(c).ReadString('\n'); rest != "" {
			t.Errorf("got %q", rest)
		}
		c.Hangup()
	}
	for _, gate := range []*forebay.Gate{g, patient} {
		if st := gate.Stats(); st.Decisions() != 0 {
			t.Errorf("%+v", st)
		}
	}
}

// A refusal of a gate with rules arrives as any other, and the connection goes on.
func TestRefusalOfABodyWithRules(t *testing.T) {
	g := closedGate(t, forebay.Config{Upload: forebay.Upload{MinRate: 1}})
	s := forebaytest.NewLoopback(t, g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") })))
	c := s.Dial()
	for range 3 {
		c.Send(chunked + "4\r\nbody\r\n0\r\n\r\n")
		if a := c.Answer("POST"); a.StatusCode != 503 || a.Close {
			t.Fatalf("%d, close %v", a.StatusCode, a.Close)
		}
	}
}

func TestUploadMistakes(t *testing.T) {
	for _, c := range []struct {
		rules forebay.Upload
		want  string
	}{
		{forebay.Upload{BodyFirst: -1}, "BodyFirst is -1"},
		{forebay.Upload{MinRate: -1}, "MinRate is -1"},
		{forebay.Upload{MinRate: 1, Grace: -1}, "Grace is -1ns"},
		{forebay.Upload{Grace: 1}, "without a MinRate"},
		{forebay.Upload{MaxTime: -1}, "MaxTime is -1ns"},
		{forebay.Upload{BodyFirst: 1, MinRate: 1, Grace: 1, MaxTime: 1}, ""},
	} {
		_, err := forebay.New(forebay.Config{MaxInFlight: 1, Upload: c.rules})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.rules, err)
		}
	}
}
