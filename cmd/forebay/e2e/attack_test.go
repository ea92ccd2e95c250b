//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay/forebaytest"
)

const attacked = `
upstream: %s
timeouts: {read_header: 1s}
intake: {discard_time: 1m}
gates:
  a: {max_in_flight: 2, max_wait: 1h, max_waiting: 2000}
  full: {max_in_flight: closed, refuse: {retry_after: 3s}}
  body: {max_in_flight: 2, acquire: body, upload: {max_time: 1s}}
  paced: {max_in_flight: 2, upload: {min_rate: 1KiB, grace: 300ms}}
  mine: {max_in_flight: 4, per_caller: {max_in_flight: 1}}
routes:
  - {match: /, gate: a}
  - {match: /full/, gate: full}
  - {match: /body/, gate: body}
  - {match: /paced/, gate: paced}
  - {match: /mine/, gate: mine}
`

// siege is the program under attack, with the backend behind it.
type siege struct {
	*program
	backend *backend
	conns   []*forebaytest.Raw // that it was attacked by
}

// dial connects to the data port.
func (s *siege) dial() *forebaytest.Raw {
	s.Helper()
	c := forebaytest.Dial(s, strings.TrimPrefix(s.data, "http://"))
	s.conns = append(s.conns, c)
	return c
}

// sent connects and sends a request, or the beginning of one.
func (s *siege) sent(text string) *forebaytest.Raw {
	s.Helper()
	c := s.dial()
	c.Send(strings.ReplaceAll(text, "\n", "\r\n"))
	return c
}

// wants checks an answer: its status, and whether it ends the connection.
func (s *siege) wants(c *forebaytest.Raw, method string, status int, closes bool) forebaytest.Answer {
	s.Helper()
	a := c.Answer(method)
	if a.StatusCode != status || a.Close != closes || a.Err != nil {
		s.Errorf("answer %s, closes %v, %v; want %d, %v", a.Status, a.Close, a.Err, status, closes)
	}
	return a
}

// silent checks that nothing has come yet.
func (s *siege) silent(c *forebaytest.Raw) {
	s.Helper()
	_ = c.SetReadDeadline(time.Now())
	if n, err := c.Conn.Read(make([]byte, 1)); n > 0 || err == nil {
		s.Errorf("something has come, %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
}

// filled takes all slots of gate a, and returns what gives them back.
func (s *siege) filled() (free func()) {
	s.Helper()
	c := s.call(2, "/hold")
	s.gateIs("a", 2, 0)
	return func() {
		s.Helper()
		s.backend.free(s, 2)
		if got := c.all(2); got[http.StatusOK] != 2 {
			s.Errorf("those who held the slots: %v", got)
		}
	}
}

// attacks are what hostile and broken clients do. After each nobody is in flight or in line,
// a full set is admitted, and goroutines and descriptors are as many as before.
var attacks = []struct {
	name string
	do   func(s *siege)
}{
	// When a slot is taken.
	{"leaves in line without a body, with half of one, by a reset", func(s *siege) {
		free, before := s.filled(), s.stats("a").Canceled
		for i, request := range []string{
			"GET /x HTTP/1.1\nHost: h\n\n",
			"POST /x HTTP/1.1\nHost: h\nContent-Length: 10\n\nhalf",
			"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n4\nhalf\n",
		} {
			for _, leave := range []func(*forebaytest.Raw){(*forebaytest.Raw).Hangup, (*forebaytest.Raw).Reset} {
				c := s.sent(request)
				s.gateIs("a", 2, 1)
				leave(c)
				s.gateIs("a", 2, 0)
			}
			if n := s.stats("a").Canceled - before; n != uint64(2*i+2) {
				s.Errorf("%d left, want %d", n, 2*i+2)
			}
		}
		free()
	}},
	{"closes its half in line", func(s *siege) {
		free := s.filled()
		c := s.sent("GET /x HTTP/1.1\nHost: h\n\n")
		s.gateIs("a", 2, 1)
		c.CloseWrite()
		s.gateIs("a", 2, 0)
		if rest := c.Rest(); rest != "" {
			s.Errorf("who had gone was told %q", rest)
		}
		free()
	}},
	{"sends bodies that never end, before their slot", func(s *siege) {
		var slow []*forebaytest.Raw
		for range 20 {
			slow = append(slow, s.sent("POST /body/x HTTP/1.1\nHost: h\nContent-Length: 1000\n\nhalf"))
		}
		if got := s.get("/body/x"); got.status != http.StatusOK {
			s.Errorf("beside them: %+v", got)
		}
		for _, c := range slow {
			s.wants(c, "POST", http.StatusRequestTimeout, true)
		}
	}},
	{"sends bodies too slowly, in their slot", func(s *siege) {
		slow := []*forebaytest.Raw{s.sent("POST /paced/x HTTP/1.1\nHost: h\nContent-Length: 9000\n\nhalf"), s.sent("POST /paced/x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n4\nhalf\n")}
		for _, c := range slow {
			s.wants(c, "POST", http.StatusRequestTimeout, true)
		}
	}},
	// Refusals that arrive.
	{"is refused with small bodies, one after the other", func(s *siege) {
		c := s.dial()
		for range 5 {
			c.Send("POST /full/x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
			a := c.Answer("POST")
			if a.StatusCode != 503 || a.Header.Get("Retry-After") != "3" || a.Header.Get("Cache-Control") != "no-store" || !strings.Contains(a.Text, `"reason":"rejected_busy"`) {
				s.Errorf("%s %v %s", a.Status, a.Header, a.Text)
			}
		}
	}},
	{"is refused with bodies that never end", func(s *siege) {
		for _, request := range []string{
			"POST /full/x HTTP/1.1\nHost: h\nContent-Length: 10\n\nhalf",
			"POST /full/x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n4\nhalf\n",
		} {
			c := s.sent(request)
			s.wants(c, "POST", 503, true)
		}
	}},
	{"asks first whether to send its body", func(s *siege) {
		const ask = "POST %s HTTP/1.1\nHost: h\nContent-Length: 4\nExpect: 100-continue\n\n"
		s.wants(s.sent(fmt.Sprintf(ask, "/full/x")), "POST", 503, true)
		free := s.filled()
		c := s.sent(fmt.Sprintf(ask, "/read"))
		s.gateIs("a", 2, 1)
		s.silent(c)
		free()
		if line := c.Line(); line != "HTTP/1.1 100 Continue" {
			s.Errorf("admitted, it is told %q", line)
		}
		c.Line()
		c.Send("body")
		s.wants(c, "POST", 200, false)
	}},
	{"is refused twice in a row, HEAD", func(s *siege) {
		c := s.sent("HEAD /full/x HTTP/1.1\nHost: h\n\nHEAD /full/x HTTP/1.1\nHost: h\nConnection: close\n\n")
		for _, closes := range []bool{false, true} {
			if a := s.wants(c, "HEAD", 503, closes); a.Text != "" {
				s.Errorf("the body is %q", a.Text)
			}
		}
		if rest := c.Rest(); rest != "" {
			s.Errorf("then came %q", rest)
		}
	}},
	{"asks for permission of other origins", func(s *siege) {
		c := s.sent("OPTIONS /full/x HTTP/1.1\nHost: h\nOrigin: https://shop.example\nAccess-Control-Request-Method: PUT\n\n")
		s.wants(c, "OPTIONS", 200, false)
	}},
	{"opens a thousand streams on one connection", func(s *siege) {
		f := s.dial().HTTP2()
		for stream := uint32(1); stream < 2001; stream += 2 {
			f.Open(stream, true, "GET", "/full/x")
			status := 0
			for frame, ok := f.Next(); ; frame, ok = f.Next() {
				if !ok || frame.Stream != stream {
					s.Fatalf("stream %d: %+v", stream, frame)
				}
				status += frame.Status
				if frame.Ends {
					break
				}
			}
			if status != 503 {
				s.Fatalf("stream %d: %d", stream, status)
			}
		}
		f.Open(2001, true, "GET", "/x")
		if frame, _ := f.Next(); frame.Stream != 2001 || frame.Status != 200 {
			s.Errorf("the connection does not go on: %+v", frame)
		}
	}},
	{"calls by gRPC", func(s *siege) {
		f := s.dial().HTTP2()
		f.Open(1, false, "POST", "/full/pkg.Service/Call", "content-type", "application/grpc", "te", "trailers")
		frame, _ := f.Next()
		if frame.Type != forebaytest.HeadersFrame || !frame.Ends || frame.Status != 200 {
			s.Errorf("its refusal is %+v, want trailers alone", frame)
		}
	}},
	// Who is calling.
	{"says that it is somebody else", func(s *siege) {
		holder := s.call(1, "/mine/hold")
		s.gateIs("mine", 1, 0)
		for _, forged := range []string{"X-Forwarded-For: 203.0.113.%d", "Forwarded: for=203.0.113.%d", "X-Real-IP: 203.0.113.%d", "X_Forwarded_For: 203.0.113.%d"} {
			c := s.sent("GET /mine/x HTTP/1.1\nHost: h\n" + fmt.Sprintf(forged, 7) + "\n\n")
			s.wants(c, "GET", http.StatusTooManyRequests, false)
		}
		s.backend.free(s, 1)
		holder.all(1)
	}},
	// Connections.
	{"sends its headers slowly, or garbage", func(s *siege) {
		var all []*forebaytest.Raw
		for range 20 {
			all = append(all, s.sent("GET /x HTTP/1.1\nHost: "), s.sent("PRI * HTTP/2.0\n\nSM"), s.sent("\x16\x03\x01"))
		}
		for _, c := range all {
			if rest := c.Rest(); rest != "" && !strings.HasPrefix(rest, "HTTP/1.1 4") {
				s.Errorf("it was told %q", rest)
			}
		}
	}},
	{"sends requests that others read in another way", func(s *siege) {
		served := s.backend.served.Load()
		for _, request := range []string{
			"POST /x HTTP/1.1\nHost: h\nContent-Length: 4\nContent-Length: 5\n\nbody!",
			"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: xchunked\n\n0\n\n",
			"POST /x HTTP/1.1\nHost: h\nTransfer-Encoding: chunked, identity\n\n0\n\n",
			"GET /x HTTP/1.1\nHost: h\nHost: i\n\n",
			"GET /x HTTP/1.1\n\n",
			"GET /x HTTP/1.1\nHost: h\nX: y\nA header: z\n\n",
			"GET /x HTTP/9.9\nHost: h\n\n",
			"GET /a b HTTP/1.1\nHost: h\n\n",
			"GET /x HTTP/1.1\nHost: h\nX: " + strings.Repeat("x", 200<<10) + "\n\n",
		} {
			c := s.dial()
			_, _ = c.Conn.Write([]byte(strings.ReplaceAll(request, "\n", "\r\n"))) // the end of a large one may not be taken
			if rest := c.Rest(); !strings.HasPrefix(rest, "HTTP/1.1 4") && !strings.HasPrefix(rest, "HTTP/1.1 505 ") && !strings.HasPrefix(rest, "HTTP/1.1 501 ") {
				s.Errorf("%.80q is answered %.200q", request, rest)
			}
		}
		if n := s.backend.served.Load() - served; n != 0 {
			s.Errorf("%d of them reached the backend", n)
		}
	}},
	{"opens streams and resets them, by the thousand", func(s *siege) {
		f := s.dial().HTTP2()
		for stream := uint32(1); stream < 2001; stream += 2 {
			f.Open(stream, true, "GET", "/hold")
			f.ResetStream(stream, 8)
		}
		f.Hangup()
		s.gateIs("a", 0, 0)
		eventually(s, "the backend is rid of them", func() bool { return s.backend.running.Load() == 0 })
	}},
}

// TestAttacks: raw bytes and frames against the program as it is shipped.
func TestAttacks(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(attacked, b.URL))
	before := p.idleUsage()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			s := &siege{program: p, backend: b}
			was := p.TB
			p.TB = t
			defer func() { p.TB = was }()
			a.do(s)
			for _, c := range s.conns {
				c.Hangup()
			}
			for _, gate := range []string{"full", "body", "paced", "mine"} {
				s.gateIs(gate, 0, 0)
			}
			b.CloseClientConnections() // those that are kept would end by themselves, later
			s.backTo(before, "a", func() {
				s.fullSet(b, "a", 2)()
				b.CloseClientConnections()
			})
			for _, gate := range []string{"a", "body", "paced", "mine"} {
				if st := s.stats(gate); st.Granted != st.Released || st.StaleReleases != 0 {
					t.Errorf("%s: granted %d, released %d, stale %d", gate, st.Granted, st.Released, st.StaleReleases)
				}
			}
		})
	}
}
