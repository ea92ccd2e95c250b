//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"example.com/forebay/forebaytest"
)

const spooling = `
upstream: %s
spool: {memory: 1MiB, per_answer: 64KiB, directory: %s, disk: 1GiB}
gates: {a: {max_in_flight: 30, max_wait: 1h, max_waiting: 100, hold: upstream_done}}
routes: [{match: /, gate: a}]
`

// spool is what /stats says of it.
func (p *program) spool() (held, answers int) {
	p.Helper()
	m := p.metrics()
	return int(m["forebay_spool_bytes"] + m["forebay_spool_disk_bytes"]), int(m["forebay_spool_answers"])
}

// TestSpoolWithoutDescriptors: slow readers of large answers, each with a connection here, one
// to the upstream and a file, and too few descriptors for all of them. Whoever is answered
// gets the whole answer, with its slot if there is no file for it; whoever is not is told so;
// and then everything is as before.
func TestSpoolWithoutDescriptors(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	b := newBackend(t)
	p := prepare(t, fmt.Sprintf(spooling, b.URL, t.TempDir()))
	p.cmd = exec.Command(shell, "-c", `ulimit -n 44; exec "$0" serve -c "$1"`, binary, p.config)
	p.cmd.Stderr = &p.stderr
	p.run()
	p.serving()
	before := p.idleUsage()
	s := &siege{program: p, backend: b}
	for range 2 {
		var readers []*forebaytest.Raw
		for range 14 {
			readers = append(readers, s.reading("/big"))
		}
		eventually(t, "it has taken in what it can", func() bool {
			text := p.stderr.String()
			return strings.Contains(text, "too many open files")
		})
		served, refused := 0, 0
		for _, c := range readers {
			switch a := c.Answer("GET"); {
			case a.StatusCode == http.StatusOK && a.Text == string(big) && a.Err == nil:
				served++
			case a.StatusCode == http.StatusOK:
				t.Errorf("an answer of %d bytes of %d, %v", len(a.Text), len(big), a.Err)
			case a.StatusCode == http.StatusBadGateway, a.StatusCode == http.StatusServiceUnavailable:
				refused++
			default:
				t.Errorf("answer %s", a.Status)
			}
			c.Hangup()
		}
		if t.Logf("%d were served, %d refused", served, refused); served == 0 {
			t.Error("nobody was served")
		}
		p.gateIs("a", 0, 0)
		eventually(t, "nothing is held", func() bool { held, answers := p.spool(); return held == 0 && answers == 0 })
	}
	t.Logf("%v files were missed", p.metrics()["forebay_spool_errors_total"])
	if st := p.stats("a"); st.Granted != st.Released || st.StaleReleases != 0 {
		t.Errorf("granted %d, released %d, stale %d", st.Granted, st.Released, st.StaleReleases)
	}
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// narrow has streams of HTTP/2 begin with a window in which nothing fits.
func narrow(f *forebaytest.Frames) {
	f.Send("\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x00") // SETTINGS_INITIAL_WINDOW_SIZE 0
}

// widen lets n more bytes of a stream come.
func widen(f *forebaytest.Frames, stream, n uint32) {
	number := func(n uint32) string { return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) }
	f.Send("\x00\x00\x04\x08\x00" + number(stream) + number(n))
}

// TestSpoolOverHTTP2: clients that take in nothing of their streams, or a little at a time, or
// give them up at any point, hold no slot once the upstream is done, and no room in the spool
// once they are gone.
func TestSpoolOverHTTP2(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(spooling, b.URL, t.TempDir()))
	before := p.idleUsage()
	s := &siege{program: p, backend: b}
	spooled := func(answers int) {
		t.Helper()
		p.gateIs("a", 0, 0)
		eventually(t, fmt.Sprintf("%d answers are in the spool", answers), func() bool { _, n := p.spool(); return n == answers })
	}
	// headers reads those of so many answers; nothing else can come.
	headers := func(f *forebaytest.Frames, n int) {
		t.Helper()
		for range n {
			if frame, ok := f.Next(); !ok || frame.Type != forebaytest.HeadersFrame || frame.Status != http.StatusOK || frame.Ends {
				t.Fatalf("%+v, %v; want the headers of an answer alone", frame, ok)
			}
		}
	}
	// body reads the rest of a stream, of which it lets step bytes come at a time.
	body := func(f *forebaytest.Frames, stream, step uint32) (text strings.Builder) {
		t.Helper()
		for left, ends := uint32(0), false; !ends; {
			if left == 0 {
				left = step
				widen(f, stream, step)
			}
			frame, ok := f.Next()
			if !ok || frame.Type != forebaytest.DataFrame || frame.Stream != stream {
				t.Fatalf("%+v, %v; want data", frame, ok)
			}
			text.Write(frame.Payload)
			left -= uint32(len(frame.Payload))
			ends = frame.Ends
		}
		return text
	}
	for _, c := range []struct {
		name string
		do   func(f *forebaytest.Frames)
	}{
		{"reads all of it late", func(f *forebaytest.Frames) {
			if text := body(f, 1, 1<<30); text.String() != string(big) {
				t.Errorf("%d bytes of %d", text.Len(), len(big))
			}
			f.ResetStream(3, 8)
		}},
		{"reads a little at a time", func(f *forebaytest.Frames) {
			if text := body(f, 3, 100_001); text.String() != string(big) {
				t.Errorf("%d bytes of %d", text.Len(), len(big))
			}
			f.ResetStream(1, 8)
		}},
		{"gives up before it reads", func(f *forebaytest.Frames) {
			f.ResetStream(1, 8)
			f.ResetStream(3, 8)
		}},
		{"gives up half way", func(f *forebaytest.Frames) {
			widen(f, 1, 200_000)
			for read := 0; read < 200_000; {
				frame, ok := f.Next()
				if !ok {
					t.Fatal("the connection ends")
				}
				read += len(frame.Payload)
			}
			f.ResetStream(1, 8)
			f.ResetStream(3, 8)
		}},
		{"hangs up", func(f *forebaytest.Frames) { f.Hangup() }},
		{"breaks off", func(f *forebaytest.Frames) { f.Reset() }},
	} {
		f := s.dial().HTTP2()
		narrow(f)
		f.Open(1, true, "GET", "/big")
		f.Open(3, true, "GET", "/big")
		headers(f, 2)
		spooled(2)
		c.do(f)
		spooled(0)
		if held, _ := p.spool(); held != 0 {
			t.Errorf("%s: %d bytes are held", c.name, held)
		}
		f.Hangup()
	}
	if st := p.stats("a"); st.Granted != st.Released || st.StaleReleases != 0 {
		t.Errorf("granted %d, released %d, stale %d", st.Granted, st.Released, st.StaleReleases)
	}
	p.backTo(before, "a", nil)
}
