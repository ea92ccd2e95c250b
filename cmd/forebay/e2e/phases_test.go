//go:build unix

package e2e

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"example.com/forebay/forebaytest"
)

const phased = `
upstream: %s
drain_timeout: 10m
spool: {memory: 64MiB, per_answer: 64MiB}
gates:
  a: {max_in_flight: 1, max_wait: 1h, max_waiting: 9}
  body: {max_in_flight: 1, acquire: body}
  spooled: {max_in_flight: 1, hold: upstream_done}
  streams: {max_in_flight: 1}
routes:
  - {match: /, gate: a}
  - {match: /body/, gate: body}
  - {match: /spooled/, gate: spooled}
  - {match: /streams/, gate: streams}
`

// phase is where a request is when the program is told to end. begin brings it there, and
// returns what happens to it afterwards, which ends the request.
type phase struct {
	name  string
	begin func(s *siege) (end func())
}

// answered checks an answer, body and all.
func (s *siege) answered(c *forebaytest.Raw, method string, status int, body string) {
	s.Helper()
	if a := c.Answer(method); a.StatusCode != status || a.Err != nil || body != "" && a.Text != body {
		s.Errorf("answer %s, %d bytes, %v; want %d", a.Status, len(a.Text), a.Err, status)
	}
}

// reading sends a request with a small window for the answer, of which nothing is read.
func (s *siege) reading(path string) *forebaytest.Raw {
	s.Helper()
	c := s.dial()
	_ = c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10) // else the system takes in more and more
	c.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")
	return c
}

var phases = []phase{
	{"waiting in line", func(s *siege) func() {
		holder := s.call(1, "/hold")
		s.gateIs("a", 1, 0)
		c := s.sent("GET /x HTTP/1.1\nHost: h\n\n")
		s.gateIs("a", 1, 1)
		return func() {
			s.answered(c, "GET", 503, "") // while the one before it runs
			s.backend.free(s, 1)
			if got := holder.all(1); got[200] != 1 {
				s.Errorf("who ran: %v", got)
			}
		}
	}},
	{"waiting in line with half of a body", func(s *siege) func() {
		holder := s.call(1, "/hold")
		s.gateIs("a", 1, 0)
		c := s.sent("POST /x HTTP/1.1\nHost: h\nContent-Length: 9\n\nhalf")
		s.gateIs("a", 1, 1)
		return func() {
			s.answered(c, "POST", 503, "")
			s.backend.free(s, 1)
			holder.all(1)
		}
	}},
	{"its body is read, before its slot", func(s *siege) func() {
		c := s.sent("POST /body/read HTTP/1.1\nHost: h\nContent-Length: 9\n\nhalf")
		eventually(s, "half of it is here", func() bool { return s.metrics()["forebay_intake_bytes"] > 0 })
		return func() {
			c.Send(" and rest")
			s.answered(c, "POST", 503, "") // it comes to a gate that admits nobody
		}
	}},
	{"its body is read, in its slot", func(s *siege) func() {
		c := s.sent("POST /read HTTP/1.1\nHost: h\nContent-Length: 9\n\nhalf")
		eventually(s, "the upstream has it", func() bool { return s.backend.running.Load() == 1 })
		return func() {
			c.Send(" and r")
			c.Send("est")
			s.answered(c, "POST", 200, "fine\n")
		}
	}},
	{"the upstream is awaited", func(s *siege) func() {
		c := s.sent("GET /hold HTTP/1.1\nHost: h\n\n")
		eventually(s, "the upstream has it", func() bool { return s.backend.running.Load() == 1 })
		return func() {
			s.backend.free(s, 1)
			s.answered(c, "GET", 200, "")
		}
	}},
	{"its answer is sent", func(s *siege) func() {
		c := s.reading("/big")
		s.gateIs("a", 1, 0)
		return func() { s.answered(c, "GET", 200, string(big)) }
	}},
	{"its answer comes in pieces", func(s *siege) func() {
		c := s.sent("GET /stream HTTP/1.1\nHost: h\n\n")
		eventually(s, "the upstream has it", func() bool { return s.backend.running.Load() == 1 })
		return func() {
			s.backend.free(s, 1)
			s.answered(c, "GET", 200, "begun\n")
		}
	}},
	{"its spooled answer is read", func(s *siege) func() {
		c := s.reading("/spooled/big")
		eventually(s, "the upstream is done", func() bool {
			return s.backend.served.Load() == 1 && s.stats("spooled").InUse == 0
		})
		return func() { s.answered(c, "GET", 200, string(big)) }
	}},
	{"its tunnel is open", func(s *siege) func() {
		c := s.sent("GET /streams/tunnel HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: echo\n\n")
		if line := c.Line(); !strings.HasPrefix(line, "HTTP/1.1 101 ") {
			s.Fatalf("no switch: %s", line)
		}
		for c.Line() != "" {
		}
		return func() {
			for range 3 {
				c.Send("hello\n")
				if line := c.Line(); line != "hello" {
					s.Errorf("the tunnel says %q", line)
				}
			}
			c.Hangup()
		}
	}},
	{"its streams of HTTP/2 are open", func(s *siege) func() {
		f := s.dial().HTTP2()
		f.Open(1, true, "GET", "/hold")
		s.gateIs("a", 1, 0)
		f.Open(3, true, "GET", "/x")
		s.gateIs("a", 1, 1)
		return func() {
			status := map[uint32]int{}
			for ended := 0; ended < 2; {
				frame, ok := f.Next()
				if !ok {
					s.Fatalf("the connection ends before its streams: %v", status)
				}
				status[frame.Stream] += frame.Status
				if frame.Ends {
					ended++
				}
				if frame.Stream == 3 && frame.Ends { // refused while the other runs
					s.backend.free(s, 1)
				}
			}
			if status[1] != 200 || status[3] != 503 {
				s.Errorf("streams by status: %v", status)
			}
		}
	}},
	{"its connection is silent", func(s *siege) func() {
		c, idle := s.dial(), s.sent("GET /x HTTP/1.1\nHost: h\n\n")
		s.answered(idle, "GET", 200, "fine\n")
		return func() {
			for _, c := range []*forebaytest.Raw{c, idle} {
				if rest := c.Rest(); rest != "" {
					s.Errorf("it was told %q", rest)
				}
			}
		}
	}},
}

// TestSIGTERMInEveryPhase: wherever a request is when the program is told to end, its client
// gets a whole answer, the upstream's or a refusal, or keeps its tunnel until it closes it;
// then the program ends in good order. drain_timeout is so long that nothing else ends it.
func TestSIGTERMInEveryPhase(t *testing.T) {
	for _, ph := range phases {
		t.Run(ph.name, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			p := start(t, fmt.Sprintf(phased, b.URL))
			end := ph.begin(&siege{program: p, backend: b})
			p.signal(syscall.SIGTERM)
			p.logged("draining before exit")
			end()
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if text := p.stderr.String(); !strings.Contains(text, "drained; bye") || strings.Contains(text, `"level":"ERROR"`) {
				t.Error("the log tells of a worse end")
			}
			eventually(t, "the upstream is rid of it", func() bool { return b.running.Load() == 0 })
		})
	}
}

// TestSecondSIGTERM ends a program at once that waits for what runs.
func TestSecondSIGTERM(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(phased, b.URL))
	c := p.call(1, "/hold")
	p.gateIs("a", 1, 0)
	p.signal(syscall.SIGTERM)
	p.logged("draining before exit")
	eventually(t, "it ends by the next one", func() bool { // the first is given up a moment after it came
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if code := p.exit(); code != -1 {
		t.Errorf("exit code %d, want that of a signal", code)
	}
	c.all(1)
}
