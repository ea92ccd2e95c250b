package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest"
)

// learnRig is a proxy behind a gate whose releases are written down.
type learnRig struct {
	*rig
	gate *forebay.Gate
	seen *forebaytest.Recorder
	had  int
}

func newLearnRig(t testing.TB, upstream string, c forebay.Config, change func(*Config)) *learnRig {
	t.Helper()
	l := &learnRig{seen: &forebaytest.Recorder{}}
	c.Name, c.MaxInFlight, c.Observers = "g", 1, []forebay.Observer{l.seen}
	l.gate = newGate(t, c)
	l.rig = inFront(t, upstream, change, func(h http.Handler) http.Handler { return l.gate.HandlerFunc(h.(*Handler).Serve) })
	t.Cleanup(func() {
		eventually(t, "nothing is in flight", func() bool { return l.gate.Stats().InUse == 0 })
		if st := l.gate.Stats(); st.StaleReleases > 0 || st.Granted != st.Released {
			t.Errorf("%+v", st)
		}
	})
	return l
}

// learnt waits for the next release and returns what a limiter has learnt of it.
func (l *learnRig) learnt() forebay.Outcome {
	l.Helper()
	var outcomes []forebay.Outcome
	eventually(l, "a lease is given back", func() bool {
		outcomes = nil
		for _, e := range l.seen.Events() {
			if e.Kind == forebay.EventReleased {
				outcomes = append(outcomes, e.Outcome)
			}
		}
		return len(outcomes) > l.had
	})
	l.had++
	return outcomes[l.had-1]
}

// answers is an upstream that does what the path says: /503 answers that, /503/retry with
// a Retry-After, /grpc/8 with that grpc-status behind the answer and /grpc/8/alone with
// nothing else, /short breaks off, /events is a stream.
func answers(w http.ResponseWriter, r *http.Request) {
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var status int
	switch n, _ := fmt.Sscanf(part[0], "%d", &status); {
	case n == 1:
		if len(part) > 1 {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader(status)
	case part[0] == "grpc":
		w.Header().Set("Content-Type", "application/grpc")
		if len(part) > 2 {
			w.Header().Set("Grpc-Status", part[1])
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = io.WriteString(w, "message")
		w.Header().Set("Grpc-Status", part[1])
	case part[0] == "short":
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "five.")
	case part[0] == "events":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\n\n")
	case part[0] == "panic":
		panic(http.ErrAbortHandler)
	}
}

// learnTable is what limiters learn from, as docs/operations.md says it.
var learnTable = map[string]forebay.Outcome{
	"/200": forebay.OutcomeDone, "/204": forebay.OutcomeDone, "/302": forebay.OutcomeDone, "/304": forebay.OutcomeDone,
	"/400": forebay.OutcomeDone, "/404": forebay.OutcomeDone, "/409/retry": forebay.OutcomeDone, "/408": forebay.OutcomeIgnored,
	"/429": forebay.OutcomeOverloaded, "/429/retry": forebay.OutcomeOverloaded,
	"/503": forebay.OutcomeOverloaded, "/503/retry": forebay.OutcomeOverloaded, "/504": forebay.OutcomeOverloaded,
	"/500": forebay.OutcomeIgnored, "/502": forebay.OutcomeIgnored, "/500/retry": forebay.OutcomeOverloaded,
	"/events": forebay.OutcomeIgnored,
	"/grpc/0": forebay.OutcomeDone, "/grpc/5": forebay.OutcomeDone, "/grpc/13": forebay.OutcomeIgnored,
	"/grpc/8": forebay.OutcomeOverloaded, "/grpc/14": forebay.OutcomeOverloaded, "/grpc/4": forebay.OutcomeOverloaded,
	"/grpc/14/alone": forebay.OutcomeOverloaded,
}

// TestAD11WhatAnAnswerTeaches: and each gives its slot back, once (SL-15), whatever the
// gate says about when.
func TestAD11WhatAnAnswerTeaches(t *testing.T) {
	noLeaks(t)
	up := backend(t, answers)
	spool := NewSpool(func(error) {})
	spool.Set(&SpoolBounds{Memory: 1 << 20, PerAnswer: 1 << 20})
	for _, hold := range []forebay.Hold{forebay.HoldHandler, forebay.HoldFirstByte, forebay.HoldUpstreamDone} {
		l := newLearnRig(t, up, forebay.Config{Hold: hold}, func(c *Config) { c.Spool = spool })
		for path, want := range learnTable {
			if hold == forebay.HoldFirstByte && strings.HasPrefix(path, "/grpc/") && !strings.HasSuffix(path, "/alone") {
				want = forebay.OutcomeDone // the slot is gone before its trailers come
			}
			l.get("GET", path, nil)
			if got := l.learnt(); got != want {
				t.Errorf("hold %v, %s: %v, want %v", hold, path, got, want)
			}
			r := l.result()
			if r.Outcome != learnTable[path] {
				t.Errorf("hold %v, %s: the result says %v", hold, path, r.Outcome)
			}
		}
	}
}

// TestSL15EveryEndingGivesBack: endings that are no answer, each with what it teaches.
func TestSL15EveryEndingGivesBack(t *testing.T) {
	noLeaks(t)
	up := backend(t, answers)
	late := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
	for name, c := range map[string]struct {
		upstream string
		request  string
		want     forebay.Outcome
	}{
		"breaks off in the answer": {up, "GET /short HTTP/1.1\r\nHost: h\r\n\r\n", forebay.OutcomeIgnored},
		"breaks off before it":     {up, "GET /panic HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", forebay.OutcomeIgnored},
		"is not there":             {closedPort(t), "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", forebay.OutcomeIgnored},
		"is silent":                {late.url, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", forebay.OutcomeOverloaded},
		"is never asked":           {up, "CONNECT h:1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", forebay.OutcomeIgnored},
		"gets half a request":      {late.url, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nfive.", forebay.OutcomeAborted},
	} {
		l := newLearnRig(t, c.upstream, forebay.Config{}, func(p *Config) {
			if name == "is silent" {
				p.ResponseTimeout = 50 * time.Millisecond
			}
		})
		conn := l.dial()
		_, _ = io.WriteString(conn, c.request)
		if c.want == forebay.OutcomeAborted {
			eventually(t, "it has come", func() bool { return len(late.heads()) == 0 && l.gate.Stats().InUse == 1 })
			_ = conn.Close()
		}
		_, _ = io.ReadAll(conn)
		if got := l.learnt(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if st := l.gate.Stats(); st.InUse != 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestAD13StreamsTeachNothing: neither one that was upgraded, nor one that moves to another
// gate: there it lasts, and here it was as long as its answer took to begin.
func TestAD13StreamsTeachNothing(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, switched("websocket", echo))
	var moved forebaytest.Recorder
	sockets := newGate(t, forebay.Config{Name: "sockets", MaxInFlight: 1, Observers: []forebay.Observer{&moved}})
	for name, c := range map[string]struct {
		streams forebay.Streams
		here    forebay.Outcome
	}{
		"stays":    {forebay.Streams{}, forebay.OutcomeIgnored},
		"released": {forebay.Streams{Release: true}, forebay.OutcomeDone},
		"moves":    {forebay.Streams{Gate: sockets}, forebay.OutcomeDone},
	} {
		l := newLearnRig(t, u.url, forebay.Config{Streams: c.streams}, nil)
		conn, _, _ := upgraded(l.rig, wantUpgrade, "")
		_ = conn.Close()
		if got := l.learnt(); got != c.here {
			t.Errorf("%s: %v, want %v", name, got, c.here)
		}
		l.result()
	}
	eventually(t, "the stream has ended", func() bool { return moved.CountKind(forebay.EventReleased) == 1 })
	for _, e := range moved.Events() {
		if e.Kind == forebay.EventReleased && e.Outcome != forebay.OutcomeIgnored {
			t.Errorf("where it moved to: %v", e.Outcome)
		}
	}
}
