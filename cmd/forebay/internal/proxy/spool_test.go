package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/forebay"
)

// large is more than the sockets between a client and the proxy take in by themselves.
const large = 16 << 20

// stuff returns bytes of which no two pieces are the same.
func stuff(n int) []byte {
	random := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(random)
	b := bytes.Repeat(random, n/len(random)+1)[:n]
	for i := 0; i+8 < n; i += 1 << 10 {
		binary.LittleEndian.PutUint64(b[i:], uint64(i))
	}
	return b
}

// spoolRig is a proxy with a spool behind a gate with one slot.
type spoolRig struct {
	*rig
	gate   *forebay.Gate
	spool  *Spool
	failed atomic.Int64
}

func newSpoolRig(t testing.TB, b *SpoolBounds, upstream string) *spoolRig {
	t.Helper()
	s := &spoolRig{gate: newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, Hold: forebay.HoldUpstreamDone})}
	s.spool = NewSpool(func(error) { s.failed.Add(1) })
	s.spool.Set(b)
	s.rig = inFront(t, upstream, func(c *Config) { c.Spool = s.spool }, func(h http.Handler) http.Handler {
		return s.gate.HandlerFunc(h.(*Handler).Serve)
	})
	t.Cleanup(func() { // before the proxy ends
		eventually(t, "nothing is held", func() bool {
			st := s.spool.Stats()
			return st.Memory.Held == 0 && st.Disk.Held == 0 && st.Answers == 0 && s.inUse() == 0
		})
		if st := s.gate.Stats(); st.StaleReleases > 0 || st.Granted != st.Released {
			t.Errorf("%+v", st)
		}
	})
	return s
}

func (s *spoolRig) inUse() int { return s.gate.Stats().InUse }

func (s *spoolRig) slotIs(inUse int) {
	s.Helper()
	eventually(s, fmt.Sprint(inUse, " slots are taken"), func() bool { return s.inUse() == inUse })
}

// slow is a client that has read the head of its answer, and nothing more yet.
type slow struct {
	*http.Response
	conn net.Conn
}

func (s *spoolRig) slow(method, path string) slow {
	s.Helper()
	c := s.dial()
	_ = c.(*net.TCPConn).SetReadBuffer(64 << 10) // else the system takes in more and more
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path)
	res, err := http.ReadResponse(bufio.NewReaderSize(c, 16), &http.Request{Method: method})
	if err != nil {
		s.Fatal(err)
	}
	return slow{res, c}
}

// wantBody reads the rest of an answer.
func wantBody(t testing.TB, body io.Reader, want []byte) {
	t.Helper()
	sum := sha256.New()
	n, err := io.Copy(sum, body)
	if ours := sha256.Sum256(want); err != nil || !bytes.Equal(sum.Sum(nil), ours[:]) {
		t.Errorf("%d bytes of %d came, and not the right ones, or %v", n, len(want), err)
	}
}

func onDisk(t testing.TB, disk int64) *SpoolBounds {
	return &SpoolBounds{Memory: 1 << 20, PerAnswer: 256 << 10, Directory: t.TempDir(), Disk: disk}
}

// TestSL11SlowReaderHoldsNoSlot: a large answer goes through memory and a file without a
// name, in order, while the slot serves others.
func TestSL11SlowReaderHoldsNoSlot(t *testing.T) {
	noLeaks(t)
	for _, declared := range []bool{true, false} {
		want := stuff(64 << 20)
		if !declared {
			want = want[:large]
		}
		url := backend(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/small" {
				_, _ = io.WriteString(w, "small")
				return
			}
			if declared {
				w.Header().Set("Content-Length", fmt.Sprint(len(want)))
			}
			_, _ = w.Write(want)
		})
		b := onDisk(t, int64(len(want)))
		s := newSpoolRig(t, b, url)
		c := s.slow("GET", "/")
		s.slotIs(0)
		if st := s.spool.Stats(); st.Disk.Held == 0 || st.Memory.Peak != b.PerAnswer || st.Answers != 1 || st.Kept != 0 {
			t.Errorf("%+v", st)
		}
		if files, err := os.ReadDir(b.Directory); err != nil || len(files) > 0 {
			t.Errorf("%v, %v", files, err)
		}
		if _, body := s.get("GET", "/small", nil); body != "small" {
			t.Errorf("beside it: %q", body)
		}
		wantBody(t, c.Body, want)
		if s.result(); s.result().Err != nil || s.failed.Load() > 0 {
			t.Error("it ended with an error")
		}
	}
}

// TestSL11NoRoomKeepsTheSlot: in memory and on disk. The reader makes room, and others do.
func TestSL11NoRoomKeepsTheSlot(t *testing.T) {
	noLeaks(t)
	want := stuff(large)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	for _, b := range []*SpoolBounds{{Memory: 1 << 20, PerAnswer: 256 << 10}, onDisk(t, 1<<20), {Memory: 64 << 10, PerAnswer: 1 << 20}, {PerAnswer: 1 << 20}} {
		s := newSpoolRig(t, b, url)
		c := s.slow("GET", "/")
		eventually(t, "the answer is found to have no room", func() bool { return s.spool.Stats().Kept == 1 })
		if s.inUse() != 1 {
			t.Errorf("%+v: no slot is taken", b)
		}
		wantBody(t, c.Body, want)
		s.slotIs(0)
		if st := s.spool.Stats(); st.Kept != 1 || st.Memory.Peak > b.Memory || st.Disk.Peak > b.Disk {
			t.Errorf("%+v: %+v", b, st)
		}
	}
}

// TestSL11RoomThatOthersMake: also without a word from its own reader.
func TestSL11RoomThatOthersMake(t *testing.T) {
	noLeaks(t)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, large)) })
	s := newSpoolRig(t, onDisk(t, large), url)
	first := s.slow("GET", "/")
	s.slotIs(0)
	second := s.slow("GET", "/")
	eventually(t, "the second has no room", func() bool { return s.spool.Stats().Kept == 1 })
	_ = first.conn.Close()
	s.slotIs(0)
	wantBody(t, second.Body, make([]byte, large))
}

// badFile takes in so much, and then nothing more.
type badFile struct {
	spoolFile
	room     int64
	unread   bool // it gives nothing back
	wasAsked atomic.Bool
}

func (f *badFile) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > f.room {
		n, _ := f.spoolFile.WriteAt(p[:max(0, f.room-at)], at)
		return n, errors.New("no space left on device")
	}
	return f.spoolFile.WriteAt(p, at)
}

func (f *badFile) ReadAt(p []byte, at int64) (int, error) {
	if f.wasAsked.Store(true); f.unread {
		return 0, errors.New("input/output error")
	}
	return f.spoolFile.ReadAt(p, at)
}

// TestSpoolDiskThatFails: the answer keeps its slot, and is whole.
func TestSpoolDiskThatFails(t *testing.T) {
	noLeaks(t)
	want := stuff(large)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	for name, create := range map[string]func(*SpoolBounds) (spoolFile, error){
		"full at once": func(*SpoolBounds) (spoolFile, error) { return nil, errors.New("no space left on device") },
		"full in between": func(b *SpoolBounds) (spoolFile, error) {
			f, err := b.file()
			return &badFile{spoolFile: f, room: 1<<20 + 7}, err
		},
	} {
		s := newSpoolRig(t, onDisk(t, large), url)
		s.spool.create = create
		c := s.slow("GET", "/")
		eventually(t, name+": the answer keeps its slot", func() bool { return s.spool.Stats().Kept == 1 })
		if st := s.spool.Stats(); st.Errors != 1 || s.failed.Load() != 1 || s.inUse() != 1 {
			t.Errorf("%s: %+v, told %d times, %d slots", name, st, s.failed.Load(), s.inUse())
		}
		wantBody(t, c.Body, want)
		s.slotIs(0)
	}
}

// TestSpoolDiskThatForgets: what cannot be read back cuts the answer off.
func TestSpoolDiskThatForgets(t *testing.T) {
	noLeaks(t)
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, large)) })
	s := newSpoolRig(t, onDisk(t, large), url)
	s.spool.create = func(b *SpoolBounds) (spoolFile, error) {
		f, err := b.file()
		return &badFile{spoolFile: f, room: large, unread: true}, err
	}
	c := s.slow("GET", "/")
	s.slotIs(0)
	if n, err := io.Copy(io.Discard, c.Body); err == nil {
		t.Errorf("an answer of %d bytes looks whole", n)
	}
	if r := s.result(); r.Err == nil || !strings.Contains(r.Err.Error(), "input/output error") || r.Status != 200 || s.spool.Stats().Errors != 1 {
		t.Errorf("%+v", r)
	}
}

// TestSpoolEndsASilentUpstream: whoever hands the answer on gives it up by himself, while the
// client stays and the upstream is silent in the middle of it.
func TestSpoolEndsASilentUpstream(t *testing.T) {
	noLeaks(t)
	var running atomic.Int64
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		_, _ = w.Write(make([]byte, 2*large))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s := newSpoolRig(t, &SpoolBounds{Memory: large, PerAnswer: large, Directory: t.TempDir(), Disk: 2 * large}, url)
	s.spool.create = func(b *SpoolBounds) (spoolFile, error) {
		f, err := b.file()
		return &badFile{spoolFile: f, room: 2 * large, unread: true}, err
	}
	c := s.slow("GET", "/")
	var held, same int64 // too early here, it shows less and is no less right
	eventually(t, "all has come that comes", func() bool {
		st := s.spool.Stats()
		if same++; st.Disk.Held == 0 || st.Disk.Held != held {
			held, same = st.Disk.Held, 0
		}
		return same == 20
	})
	if _, err := io.Copy(io.Discard, c.Body); err == nil {
		t.Error("an answer that goes on looks whole")
	}
	eventually(t, "the upstream is rid of it", func() bool { return running.Load() == 0 })
	s.slotIs(0)
}

// TestSpoolIsNoDelay: a reader that keeps up gets each piece before the next is written.
func TestSpoolIsNoDelay(t *testing.T) {
	noLeaks(t)
	next := make(chan struct{})
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 50 {
			fmt.Fprintf(w, "%d\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
	})
	s := newSpoolRig(t, onDisk(t, 1<<20), url)
	for _, tr := range []*http.Transport{{DialContext: guarded}, h2c()} {
		defer tr.CloseIdleConnections()
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr, nil)
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		for i := range 50 {
			if line, err := lines.ReadString('\n'); line != fmt.Sprint(i, "\n") || err != nil {
				t.Fatalf("%q, %v", line, err)
			}
			if s.inUse() != 1 {
				t.Error("the slot is free while the upstream answers")
			}
			next <- struct{}{}
		}
		wantBody(t, lines, nil)
		_ = res.Body.Close()
		s.slotIs(0)
	}
	if st := s.spool.Stats(); st.Kept != 0 || st.Memory.Peak > 2*bufferSize || st.Disk.Peak > 0 {
		t.Errorf("%+v", st)
	}
}

// TestSpoolReaderLeaves: at every moment. The upstream is told, and everything comes back.
func TestSpoolReaderLeaves(t *testing.T) {
	noLeaks(t)
	var running atomic.Int64
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Add(-1)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
			if r.URL.Path == "/stalls" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		}
	})
	for _, path := range []string{"/stalls", "/", "/"} {
		for _, b := range []*SpoolBounds{{Memory: 1 << 20, PerAnswer: 256 << 10}, onDisk(t, 1<<20)} {
			s := newSpoolRig(t, b, url)
			c := s.slow("GET", path)
			if path == "/" {
				eventually(t, "there is no room", func() bool { return s.spool.Stats().Kept == 1 })
			}
			_ = c.conn.Close()
			s.slotIs(0)
			eventually(t, "the upstream is rid of it", func() bool { return running.Load() == 0 })
			if r := s.result(); r.Status != statusLeft {
				t.Errorf("%s: %+v", path, r)
			}
		}
	}
}

// TestSpoolUpstreamBreaksOff: the slot is free at once, and the client sees what came, and
// that it is not all.
func TestSpoolUpstreamBreaksOff(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		u.head(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
		_, _ = c.Write(make([]byte, large))
	})
	s := newSpoolRig(t, onDisk(t, 200<<20), u.url)
	c := s.slow("GET", "/")
	s.slotIs(0)
	if n, err := io.Copy(io.Discard, c.Body); n > large || n < large-bufferSize || err != io.ErrUnexpectedEOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	if r := s.result(); r.Err == nil || r.Status != 200 || r.Outcome != forebay.OutcomeIgnored {
		t.Errorf("%+v", r)
	}
}

// TestSpoolOfAnyAnswer: those without a body, with trailers, of a single piece, over both
// versions.
func TestSpoolOfAnyAnswer(t *testing.T) {
	noLeaks(t)
	body := stuff(300_000)
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		case "/hints":
			w.Header().Set("Link", "</x>")
			w.WriteHeader(103)
			_, _ = w.Write(body)
		case "/trailers":
			w.Header().Set("Trailer", "Sum")
			_, _ = w.Write(body)
			w.Header().Set("Sum", "7")
			w.Header().Set(http.TrailerPrefix+"Late", "8")
		default:
			_, _ = w.Write(body[:len(r.URL.Path)])
		}
	})
	s := newSpoolRig(t, onDisk(t, 1<<20), url)
	for _, tr := range []*http.Transport{{DialContext: guarded}, h2c()} {
		defer tr.CloseIdleConnections()
		for _, c := range []struct {
			method, path string
			status       int
			body         []byte
			sum, late    string
		}{
			{"GET", "/204", 204, nil, "", ""}, {"GET", "/304", 304, nil, "", ""}, {"HEAD", "/any", 200, nil, "", ""}, {"GET", "/any", 200, body[:4], "", ""},
			{"GET", "/hints", 200, body, "", ""}, {"GET", "/trailers", 200, body, "7", "8"},
		} {
			r, _ := http.NewRequestWithContext(t.Context(), c.method, "http://"+s.addr+c.path, nil)
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			wantBody(t, res.Body, c.body)
			_ = res.Body.Close()
			if res.StatusCode != c.status || res.Trailer.Get("Sum") != c.sum || res.Trailer.Get("Late") != c.late {
				t.Errorf("%s %s: %d, trailers %v", c.method, c.path, res.StatusCode, res.Trailer)
			}
			if r := s.result(); r.Err != nil {
				t.Error(r.Err)
			}
			s.slotIs(0)
		}
	}
}

// TestSL11StreamOfHTTP2ThatIsNotRead: nor does one whose connection lives on.
func TestSL11StreamOfHTTP2ThatIsNotRead(t *testing.T) {
	noLeaks(t)
	want := stuff(8 << 20) // the window of one stream is 4 MiB
	url := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(want) })
	s := newSpoolRig(t, onDisk(t, 8<<20), url)
	tr := h2c()
	defer tr.CloseIdleConnections()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.addr, nil)
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	s.slotIs(0)
	if s.spool.Stats().Answers != 1 {
		t.Error("the answer has been handed on")
	}
	wantBody(t, res.Body, want)
	_ = res.Body.Close()
}

// TestSpoolLeavesStreamsAlone: event streams and upgrades keep their slots by their own
// rules; so does everything where the gate or the configuration asks for nothing.
func TestSpoolLeavesStreamsAlone(t *testing.T) {
	noLeaks(t)
	over := make(chan struct{})
	url := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		}
		_, _ = io.WriteString(w, strings.Repeat("data: x\n\n", 100_000))
		_ = http.NewResponseController(w).Flush()
		<-over
	})
	s := newSpoolRig(t, onDisk(t, 1<<20), url)
	for _, path := range []string{"/events", "/"} {
		c := s.slow("GET", path)
		_, _ = io.CopyN(io.Discard, c.Body, 100_000)
		if st := s.spool.Stats(); s.inUse() != 1 || st.Memory.Peak > 0 || st.Answers > 0 {
			t.Errorf("%s: %+v", path, st)
		}
		over <- struct{}{}
		_, _ = io.Copy(io.Discard, c.Body)
		s.slotIs(0)
		s.spool.Set(nil)
	}
}

// TestSpoolAnswerLargerThanEverything: takes no disk from others, and none by its word alone.
func TestSpoolAnswerLargerThanEverything(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		u.head(r)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n")
		_, _ = c.Write(make([]byte, large))
	})
	s := newSpoolRig(t, onDisk(t, large), u.url)
	c := s.slow("GET", "/")
	eventually(t, "it keeps its slot", func() bool { return s.spool.Stats().Kept == 1 })
	if st := s.spool.Stats(); st.Disk.Peak > 0 || st.Memory.Peak > 256<<10 || s.inUse() != 1 {
		t.Errorf("%+v", st)
	}
	_ = c.conn.Close()
	s.slotIs(0)
}

// pieces gives a body in pieces of all sizes, and ends as it is told.
type pieces struct {
	rest   []byte
	random *rand.Rand
	err    error
	ctx    context.Context
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, p.ctx.Err()
	}
	n := copy(b[:min(len(b), 1+p.random.IntN(1<<p.random.IntN(17)))], p.rest)
	if p.rest = p.rest[n:]; len(p.rest) == 0 && (n == 0 || p.random.IntN(2) == 0) {
		return n, p.err
	}
	return n, nil
}

func (p *pieces) Close() error { return nil }

// TestSpoolHistories: many answers at once share too little room, are read at all paces
// and to some point, and each comes as it went in.
func TestSpoolHistories(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	s.create = func(b *SpoolBounds) (spoolFile, error) {
		f, err := b.file()
		return &badFile{spoolFile: f, room: 512 << 10}, err
	}
	all := stuff(2 << 20)
	b := onDisk(t, 1<<20)
	s.Set(b)
	gate := newGate(t, forebay.Config{Name: "g", MaxInFlight: 1000, Hold: forebay.HoldUpstreamDone})
	var answers sync.WaitGroup
	for seed := range uint64(120) {
		answers.Go(func() {
			random := rand.New(rand.NewPCG(1, seed))
			lease, _ := gate.TryAcquire(forebay.Call{})
			ctx, cancel := context.WithCancel(t.Context())
			want, end := all[:random.IntN(1<<random.IntN(22))], io.EOF
			if random.IntN(4) == 0 {
				end = io.ErrUnexpectedEOF
			}
			a := s.newSpooled(b, &pieces{want, random, end, ctx}, -1, slot{lease, justEnded}, cancel)
			random = rand.New(rand.NewPCG(2, seed)) // the pump has the other one
			upTo := len(want) + 1
			if random.IntN(4) == 0 {
				upTo = random.IntN(upTo)
			}
			got, err := []byte{}, error(nil)
			for err == nil && len(got) < upTo {
				n := 0
				buf := make([]byte, 1+random.IntN(1<<random.IntN(17)))
				n, err = a.Read(buf)
				got = append(got, buf[:n]...)
			}
			isWhole := len(got) == len(want) && err == end
			if !bytes.HasPrefix(want, got) || upTo > len(want) && !isWhole {
				t.Errorf("seed %d: %d bytes of %d, %v; want %v", seed, len(got), len(want), err, end)
			}
			_ = a.Close()
			_ = a.Close()
			if lease.Live() { // the upstream had not ended
				lease.Release()
			}
		})
	}
	answers.Wait()
	if st := s.Stats(); st.Memory.Held != 0 || st.Disk.Held != 0 || st.Answers != 0 || gate.Stats().InUse != 0 || gate.Stats().StaleReleases > 0 || len(s.waiting) > 0 ||
		st.Memory.Peak > b.Memory || st.Disk.Peak > b.Disk {
		t.Errorf("%+v", st)
	}
	t.Logf("%+v", s.Stats())
}

// piped is an answer without a proxy around it, and the upstream that writes it. A write
// returns when all of it was read.
type piped struct {
	*spooled
	upstream *io.PipeWriter
	gate     *forebay.Gate
}

func newPiped(t *testing.T, s *Spool, b *SpoolBounds) piped {
	p := piped{gate: newGate(t, forebay.Config{Name: "g", MaxInFlight: 1, Hold: forebay.HoldUpstreamDone})}
	lease, _ := p.gate.TryAcquire(forebay.Call{})
	from, upstream := io.Pipe()
	p.upstream = upstream
	p.spooled = s.newSpooled(b, from, -1, slot{lease, justEnded}, func() { _ = from.Close() })
	t.Cleanup(func() {
		_ = p.Close()
		if lease.Live() {
			lease.Release()
		}
		if st := p.gate.Stats(); st.InUse > 0 || st.StaleReleases > 0 || p.memory.Size()+p.disk.Size() > 0 {
			t.Errorf("%+v", st)
		}
	})
	return p
}

// begin has the pump begin.
func (p piped) begin(t *testing.T) {
	t.Helper()
	go func() { _, _ = p.upstream.Write([]byte("x")) }()
	wantBody(t, io.LimitReader(p, 1), []byte("x"))
}

// TestSpoolFileIsUsedAgain: once all of it was read, so that the reader of an endless answer
// who falls behind now and then keeps no slot for it.
func TestSpoolFileIsUsedAgain(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{Memory: 1 << 20, PerAnswer: 64 << 10, Directory: t.TempDir(), Disk: 512 << 10}
	s.Set(b)
	p := newPiped(t, s, b)
	p.begin(t)
	want := stuff(512 << 10)
	for range 4 {
		_, _ = p.upstream.Write(want)
		wantBody(t, io.LimitReader(p, int64(len(want))), want)
	}
	if st := s.Stats(); st.Kept > 0 || st.Disk.Peak == 0 {
		t.Errorf("%+v", st)
	}
	_ = p.upstream.Close()
	wantBody(t, p, nil)
	if p.gate.Stats().InUse > 0 {
		t.Error("the slot is still taken")
	}
}

// TestSL11SlotIsFreeBeforeTheLastPiece: of an answer in one piece too, which is not handed
// on before that.
func TestSL11SlotIsFreeBeforeTheLastPiece(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{Memory: 1 << 20, PerAnswer: 1 << 20}
	s.Set(b)
	p := newPiped(t, s, b)
	p.from = io.NopCloser(&pieces{[]byte("all"), rand.New(rand.NewPCG(1, 1)), io.EOF, t.Context()})
	for err := error(nil); err == nil; {
		_, err = p.Read(make([]byte, 100))
	}
	if p.gate.Stats().InUse > 0 || s.Stats().Memory.Peak > 0 {
		t.Errorf("%+v, %+v", p.gate.Stats(), s.Stats())
	}
}

// TestSpoolRoomThatOthersMake: by reading on and by leaving. Whoever waits for it goes on
// though its own reader stands still.
func TestSpoolRoomThatOthersMake(t *testing.T) {
	noLeaks(t)
	for _, leaves := range []bool{false, true} {
		s := NewSpool(nil)
		b := &SpoolBounds{Memory: 64 << 10, PerAnswer: 64 << 10}
		s.Set(b)
		first, second := newPiped(t, s, b), newPiped(t, s, b)
		first.begin(t)
		second.begin(t)
		_, _ = first.upstream.Write(make([]byte, 64<<10))
		eventually(t, "the first has all that there is", func() bool { return s.Stats().Memory.Held == 64<<10 })
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = second.upstream.Write(make([]byte, 40<<10))
			_ = second.upstream.Close()
		}()
		eventually(t, "the second has no room", func() bool { return s.Stats().Kept == 1 })
		if leaves {
			_ = first.Close()
		} else {
			wantBody(t, io.LimitReader(first, 64<<10), make([]byte, 64<<10))
		}
		eventually(t, "the slot of the second is free", func() bool { return second.gate.Stats().InUse == 0 })
		<-written
		wantBody(t, second, make([]byte, 40<<10))
	}
}

// TestSpoolMoreRoomByReload: whoever waits has it at once.
func TestSpoolMoreRoomByReload(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{PerAnswer: 1 << 20}
	s.Set(b)
	p := newPiped(t, s, b)
	p.begin(t)
	go func() {
		_, _ = p.upstream.Write(make([]byte, 40<<10))
		_ = p.upstream.Close()
	}()
	eventually(t, "there is no room", func() bool { return s.Stats().Kept == 1 })
	more := *b
	more.Memory = 1 << 20
	s.Set(&more)
	eventually(t, "the slot is free", func() bool { return p.gate.Stats().InUse == 0 })
	wantBody(t, p, make([]byte, 40<<10))
}

// TestSpoolEndsTheUpstream: that has nothing more to say when its reader leaves.
func TestSpoolEndsTheUpstream(t *testing.T) {
	noLeaks(t)
	s := NewSpool(nil)
	b := &SpoolBounds{Memory: 1 << 20, PerAnswer: 1 << 20}
	s.Set(b)
	p := newPiped(t, s, b)
	p.begin(t)
	_, _ = p.upstream.Write([]byte("and nothing more"))
	_ = p.Close()
	if _, err := p.upstream.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("%v", err)
	}
}

// TestSpoolDirectoryThatIsNot: is found before an answer needs it.
func TestSpoolDirectoryThatIsNot(t *testing.T) {
	b := SpoolBounds{Directory: t.TempDir() + "/none"}
	if err := b.Try(); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	b.Directory = t.TempDir()
	if err := b.Try(); err != nil {
		t.Errorf("%v", err)
	}
	if files, _ := os.ReadDir(b.Directory); len(files) > 0 {
		t.Errorf("%v", files)
	}
}

// justEnded is what is learnt of an answer in a test of the spool alone.
func justEnded(error) forebay.Outcome { return forebay.OutcomeDone }
