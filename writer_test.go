package forebay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Parts of writers, as middleware has them.
type (
	writerAlone    struct{ http.ResponseWriter }
	writerFlushes  struct{ writerAlone }
	writerHijacks  struct{ writerAlone }
	writerBoth     struct{ writerFlushes }
	writerPushes   struct{ writerFlushes }
	writerReads    struct{ writerBoth }
	writerUnwraps  struct{ http.ResponseWriter }
	writerReadOnly struct{ writerAlone }
)

var errTakenOver = errors.New("taken over")

func (writerFlushes) Flush()                                       {}
func (writerHijacks) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errTakenOver }
func (writerBoth) Hijack() (net.Conn, *bufio.ReadWriter, error)    { return nil, nil, errTakenOver }
func (writerPushes) Push(string, *http.PushOptions) error          { return errTakenOver }
func (w writerReads) ReadFrom(r io.Reader) (int64, error)          { return io.Copy(w.ResponseWriter, r) }
func (w writerReadOnly) ReadFrom(r io.Reader) (int64, error)       { return io.Copy(w.ResponseWriter, r) }
func (w writerUnwraps) Unwrap() http.ResponseWriter                { return w.ResponseWriter }

// abilities says what a writer claims.
func abilities(w http.ResponseWriter) (s string) {
	if _, ok := w.(http.Flusher); ok {
		s += "flush "
	}
	if _, ok := w.(http.Hijacker); ok {
		s += "hijack "
	}
	if _, ok := w.(io.ReaderFrom); ok {
		s += "read-from "
	}
	if _, ok := w.(http.Pusher); ok {
		s += "push "
	}
	return strings.TrimSpace(s)
}

// SL-10: a watched writer can do what the one inside can, claims nothing that is absent,
// and still leads to what lies deeper.
func TestSL10WatchedWriterClaimsWhatIsThere(t *testing.T) {
	alone := writerAlone{httptest.NewRecorder()}
	flushes := writerFlushes{alone}
	both := writerBoth{flushes}
	for _, c := range []struct {
		inside http.ResponseWriter
		want   string
	}{
		{alone, ""},
		{flushes, "flush"},
		{writerHijacks{alone}, "hijack"},
		{both, "flush hijack"},
		{writerPushes{flushes}, "flush push"},
		{writerReads{both}, "flush hijack read-from"},
		{writerReadOnly{alone}, ""}, // nobody's writer; io.Copy needs it nowhere
		{writerUnwraps{both}, "hijack"},
		{writerUnwraps{writerUnwraps{alone}}, ""},
		{httptest.NewRecorder(), "flush"},
	} {
		w := watchedWriter(&stay{w: c.inside, r: httptest.NewRequest("GET", "/", nil)})
		if got := abilities(w); got != c.want {
			t.Errorf("%T: %q, want %q", c.inside, got, c.want)
		}
		control := http.NewResponseController(w)
		_, _, err := control.Hijack()
		if reaches := errors.Is(err, errTakenOver); reaches != strings.Contains(c.want, "hijack") {
			t.Errorf("%T: hijack: %v", c.inside, err)
		}
		if want := http.NewResponseController(c.inside).Flush(); (control.Flush() == nil) != (want == nil) {
			t.Errorf("%T: flush differs from %v", c.inside, want)
		}
		if p, ok := w.(http.Pusher); ok && p.Push("/", nil) != errTakenOver {
			t.Errorf("%T: push does not arrive", c.inside)
		}
	}
}

// A gate with rules hands on a writer that is the server's in all that it can do.
func TestSL10WatchedWriterKeepsItsAbilities(t *testing.T) {
	overBoth(t, func(t *testing.T, version int) {
		g := httpGate(t, Config{MaxInFlight: 1, Hold: HoldFirstByte, LeaseInContext: true})
		var given string
		h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := abilities(w); got != given || got == "" {
				t.Errorf("it can %q, want %q", got, given)
			}
			if _, ok := LeaseFrom(r.Context()); !ok {
				t.Error("no lease in the context")
			}
			c := http.NewResponseController(w)
			for what, err := range map[string]error{
				"SetReadDeadline": c.SetReadDeadline(longAgo.AddDate(100, 0, 0)), "SetWriteDeadline": c.SetWriteDeadline(longAgo.AddDate(100, 0, 0)),
				"EnableFullDuplex": c.EnableFullDuplex(),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			w.Header().Set("Trailer", "X-End")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusAccepted)
			w.Header().Set("X-End", "yes")
			_, _ = io.Copy(w, strings.NewReader("copied, "))
			_, _ = io.WriteString(w, "written")
		}))
		srv, complaints := listen(t, version, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			given = abilities(w)
			h.ServeHTTP(w, r)
		}))
		res := fetch(t, srv, newGet(t, srv.URL))
		if string(res.body) != "copied, written" || res.StatusCode != http.StatusAccepted || res.Trailer.Get("X-End") != "yes" {
			t.Errorf("%d %q %v", res.StatusCode, res.body, res.Trailer)
		}
		if text := complaints.String(); text != "" {
			t.Errorf("the server complains: %s", text)
		}
		wantConserved(t, g)
	})
}

// If the connection cannot be taken over after all, the slot that the stream was to have
// is free, and the request keeps its own.
func TestHijackThatFails(t *testing.T) {
	sockets := httpGate(t, Config{Name: "sockets", MaxInFlight: 1})
	g := httpGate(t, Config{MaxInFlight: 1, Streams: Streams{Gate: sockets, UntilClosed: true}})
	g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); err != errTakenOver {
			t.Errorf("%v", err)
		}
		if g.Stats().InUse != 1 || sockets.Stats().InUse != 0 {
			t.Errorf("%+v %+v", g.Stats(), sockets.Stats())
		}
		_, _ = io.WriteString(w, "no")
	})).ServeHTTP(writerHijacks{writerAlone{httptest.NewRecorder()}}, httptest.NewRequest("GET", "/", nil))
	wantConserved(t, g)
	wantConserved(t, sockets)
}

func TestLeaseKnowsItsRule(t *testing.T) {
	plain := httpGate(t, Config{Name: "plain", MaxInFlight: 1})
	spools := httpGate(t, Config{Name: "spools", MaxInFlight: 1, Hold: HoldUpstreamDone})
	chain, err := NewChain(plain, spools)
	must(err)
	l, err := chain.Acquire(t.Context(), Call{})
	if err != nil || l.Hold() != HoldUpstreamDone {
		t.Errorf("%v, %v", l.Hold(), err)
	}
	l.Release()
	streams := httpGate(t, Config{Name: "streams", MaxInFlight: 1, Streams: Streams{Release: true}})
	chain, err = NewChain(plain, streams, spools)
	must(err)
	if l, err = chain.Acquire(t.Context(), Call{}); err != nil || l.Hold() != HoldHandler {
		t.Errorf("%v, %v", l.Hold(), err)
	}
	l.Release()
	l, _ = plain.TryAcquire(Call{})
	if l.Hold() != HoldHandler || (Lease{}).Hold() != HoldHandler {
		t.Errorf("%v", l.Hold())
	}
	l.Release()
}

// A limit that comes to its end as the stream does may find it stopped.
func TestLimitsThatAreLate(t *testing.T) {
	l := newLimits(Streams{MaxLife: time.Hour}, func(error) { t.Error("the stream was cut") }, func() { t.Error("and more") })
	l.stop()
	l.began = l.began.Add(-2 * time.Hour)
	l.look()
}
