package forebaytest

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/forebay"
)

func TestLifetime(t *testing.T) {
	for _, s := range []struct {
		name string
		open Opener
	}{
		{"Gate.Wrap", openWrap},
		{"Gate.HandlerFunc with rules", openRuled},
		{"Gate.Wrap of a proxy", openProxy},
		{"Chain.Wrap twins", openTwins},
	} {
		t.Run(s.name, func(t *testing.T) { Lifetime(t, s.open) })
	}
}

// openRuled is observed, and watches every body and every answer.
func openRuled(t testing.TB, c forebay.Config, backend http.Handler) *System {
	c.Streams = forebay.Streams{UntilClosed: true, MaxLife: time.Hour}
	c.Upload = forebay.Upload{MinRate: 1, Grace: time.Hour}
	c.Observers = []forebay.Observer{&Recorder{}}
	g := newGate(t, c)
	return NewSystem(g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ forebay.Lease) { backend.ServeHTTP(w, r) }), g)
}

// leaks is a gate that does not get back the slot of the requests that end in one way.
func leaks(fault string) Opener {
	return func(t testing.TB, c forebay.Config, backend http.Handler) *System {
		g := newGate(t, c)
		var lost atomic.Int64
		lose := func() { lost.Add(1) }
		gated := g.HandlerFunc(func(w http.ResponseWriter, r *http.Request, l forebay.Lease) {
			seen := &seeing{ResponseWriter: w}
			if fault == "gives the slot of the departed away" {
				defer context.AfterFunc(r.Context(), l.Release)()
			}
			returned := false
			defer func() {
				switch {
				case fault == "an abort" && !returned,
					fault == "a caller that left" && r.Context().Err() != nil,
					fault == "an answer" && returned,
					fault == "an answer that failed" && seen.failed,
					fault == "a connection that was taken over" && seen.hijacked:
					lose()
				}
			}()
			backend.ServeHTTP(seen, r)
			returned = true
		})
		s := NewSystem(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if fault == "sees nobody leave" {
				r = r.WithContext(context.Background())
			}
			seen := &seeing{ResponseWriter: w}
			gated.ServeHTTP(seen, r)
			if fault == "a refusal" && seen.status == http.StatusServiceUnavailable {
				lose()
			}
		}), g)
		s.Stats = func() []forebay.Stats {
			st := g.Stats()
			st.InUse += int(lost.Load())
			return []forebay.Stats{st}
		}
		return s
	}
}

// seeing sees how an answer goes.
type seeing struct {
	http.ResponseWriter
	status           int
	failed, hijacked bool
}

func (w *seeing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *seeing) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *seeing) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.failed = w.failed || err != nil
	return n, err
}

// Hijack takes the connection over.
func (w *seeing) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// lost says for each ending which leak it has to find; those that are not named find that
// of an answer.
var lost = map[string]string{
	"SL-01 an abort before the answer":                                 "an abort",
	"SL-01 an abort in the middle":                                     "an abort",
	"SL-15 a panic":                                                    "an abort",
	"SL-13 the caller leaves while it runs":                            "a caller that left",
	"SL-13 the caller hangs up while it runs":                          "a caller that left",
	"the caller closes one half while it runs":                         "a caller that left",
	"SL-14 the caller leaves and the work goes on":                     "gives the slot of the departed away",
	"SL-02 the caller leaves in the middle of an answer":               "a caller that left",
	"SL-11 the caller reads nothing and leaves":                        "an answer that failed",
	"SL-11 the caller reads nothing and stays":                         "an answer that failed",
	"SL-14 streams that are opened and reset":                          "a caller that left",
	"a body that breaks off":                                           "a caller that left",
	"a body in pieces that breaks off":                                 "a caller that left",
	"RJ-02 a refusal while the body comes":                             "a refusal",
	"a drain while some wait":                                          "a refusal",
	"SL-13 the caller leaves in line":                                  "sees nobody leave",
	"SL-13 the caller leaves in line, body sent":                       "sees nobody leave",
	"SL-13 the caller leaves in line, half of the body sent":           "sees nobody leave",
	"SL-13 the caller leaves in line, nothing of the body sent":        "sees nobody leave",
	"SL-13 the caller leaves in line, body in pieces":                  "sees nobody leave",
	"SL-13 the caller leaves in line, with a large body":               "sees nobody leave",
	"SL-06 an event stream that its reader leaves":                     "a caller that left",
	"OP-01 a connection that was taken over, and the client hangs up":  "a connection that was taken over",
	"OP-01 a connection that was taken over, and the client resets it": "a connection that was taken over",
	"OP-01 a connection that was taken over, and the work closes it":   "a connection that was taken over",
	"a stop that waits for nobody":                                     "a caller that left",
	"OP-03 a stop while some wait":                                     "sees nobody leave",
}

// TestLifetimeFindsLeaks shows that each ending can fail.
func TestLifetimeFindsLeaks(t *testing.T) {
	before := mayWait
	mayWait = 100 * time.Millisecond // each finds out that something does not come
	t.Cleanup(func() { mayWait = before })
	for _, e := range endings() {
		fault := lost[e.name]
		if fault == "" {
			fault = "an answer"
		}
		t.Run(e.name, func(t *testing.T) {
			v := &verdict{TB: t}
			done := make(chan struct{})
			go func() { // a goroutine of its own, which Fatalf ends
				defer close(done)
				e.check(v, leaks(fault), e.versions[0])
			}()
			<-done
			if !v.Failed() {
				t.Errorf("the ending passes a gate that loses the slot of %s", fault)
			}
		})
	}
	for name := range lost {
		if !slices.ContainsFunc(endings(), func(e lifeEnding) bool { return e.name == name }) {
			t.Errorf("there is no ending %q", name)
		}
	}
}
