package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAnswersThatNobodyAskedFor: what lies on a connection behind an answer is not taken
// for the answer of the next request, whether it comes with the first or after it.
func TestAnswersThatNobodyAskedFor(t *testing.T) {
	const extra = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for _, together := range []bool{true, false} {
		noLeaks(t)
		more := make(chan bool)
		u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			for first := true; u.head(r) != ""; first = false {
				answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
				if together && first {
					answer += extra
				}
				_, _ = io.WriteString(c, answer)
				if !together && first && <-more {
					_, _ = io.WriteString(c, extra)
				}
			}
		})
		g := inFront(t, u.url, nil)
		if _, got := g.get("GET", "/1", nil); got != "ok" {
			t.Fatalf("the first answer is %q", got)
		}
		if !together {
			more <- true
			settle(g)
			close(more)
		}
		if _, got := g.get("GET", "/2", nil); got != "ok" {
			t.Errorf("together %v: the second answer is %q", together, got)
		}
	}
}

// TestAmbiguousAnswers: an answer whose length can be read in two ways, or whose headers
// have no end, is none.
func TestAmbiguousAnswers(t *testing.T) {
	noLeaks(t)
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nok",
		"HTTP/1.1 200 OK\r\n Content-Length: 2\r\n\r\nok",
		"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok",
		"ICY 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
		strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("x", 4<<10)+"\r\n\r\n", 10),
	} {
		u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			if u.head(r) != "" {
				_, _ = io.WriteString(c, head)
			}
		})
		res, body := inFront(t, u.url, nil).get("GET", "/", nil)
		if res.StatusCode != 502 || !strings.Contains(body, "bad_gateway") {
			t.Errorf("%.60q was handed on as %d %q", head, res.StatusCode, body)
		}
	}
}

// TestBothLengths: of an answer that is chunked and has a length, the length is dropped.
func TestBothLengths(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		for u.head(r) != "" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
		}
	})
	g := inFront(t, u.url, nil)
	for range 3 {
		res, body := g.get("GET", "/", nil)
		if res.StatusCode != 200 || body != "hello" || res.ContentLength != -1 {
			t.Fatalf("answer %d %q of length %d", res.StatusCode, body, res.ContentLength)
		}
	}
}

// TestConnectionsThatAreNotKept: a connection is used again only if both sides are done
// with it.
func TestConnectionsThatAreNotKept(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		name, answer string
		kept         bool
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		{"nothing", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true},
		{"hints first", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		{"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
		{"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
	} {
		u := newRaw(t, func(u *rawUpstream, conn net.Conn, r *bufio.Reader) {
			for u.head(r) != "" {
				_, _ = io.WriteString(conn, c.answer)
			}
		})
		dials := make(chan bool, 10)
		g := inFront(t, u.url, func(c *Config) { c.IdleTimeout = time.Hour })
		g.countDials(dials)
		for range 3 {
			g.get("GET", "/", nil)
			g.result()
		}
		if n := len(dials); !c.kept && n != 3 || c.kept && !isKept(n) {
			t.Errorf("%s: %d connections", c.name, n)
		}
	}
}

// isKept reports whether n connections for requests one after the other are one that is
// kept: net/http's own goroutine may give it back a moment after the answer's end.
func isKept(n int) bool { return n == 1 || transport == TransportStandard }

// TestUploadsKeepTheirConnection: a request with a body gives its connection back as well.
func TestUploadsKeepTheirConnection(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	})
	dials := make(chan bool, 100)
	g := inFront(t, up, nil)
	g.countDials(dials)
	for range 20 {
		g.get("POST", "/", strings.NewReader("body"))
		g.get("POST", "/", io.MultiReader(strings.NewReader("of no known length")))
	}
	if n := len(dials); n > 20 { // some come back a moment too late
		t.Errorf("%d connections for 40 uploads, one after the other", n)
	}
}

// answering is a connection of the lean transport to an upstream that gives one answer once
// it has read the head of a request.
func answering(t *testing.T, answer string) (*leanConn, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	go func() { // ends with the pipe
		r := bufio.NewReader(far)
		for {
			if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
				break
			}
		}
		_, _ = io.WriteString(far, answer)
		_, _ = io.Copy(io.Discard, r)
	}()
	return newLeanConn(&lean{patience: time.Hour, idle: idlePool{most: 1, patience: time.Hour}}, near), near
}

// TestUnfinishedUploadKeepsItsConnection: to an upstream that answers before it has got
// the whole body nothing else is sent behind what is still coming.
func TestUnfinishedUploadKeepsItsConnection(t *testing.T) {
	for _, finished := range []bool{true, false} {
		c, _ := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		body, rest := io.Pipe()
		r, _ := http.NewRequest("POST", "http://upstream/", body)
		res, err := c.roundTrip(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if finished {
			_ = rest.Close()
			<-c.upload.done
		}
		_, _ = io.ReadAll(res.Body)
		if kept := c.lean.idle.get() != nil; kept != finished {
			t.Errorf("finished %v: kept %v", finished, kept)
		}
		_ = rest.Close()
		_ = c.Close()
		<-c.upload.done
	}
}

// TestEndOfTheContextEndsTheAttempt while the upstream is silent.
func TestEndOfTheContextEndsTheAttempt(t *testing.T) {
	c, _ := answering(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://upstream/", nil)
	ended := make(chan error)
	go func() {
		_, err := c.roundTrip(r, nil)
		ended <- err
	}()
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("there is an answer")
		}
	case <-time.After(patience):
		t.Error("it goes on")
		_ = c.Close()
		<-ended
	}
}

// noted is a connection that notes its deadlines for reading.
type noted struct {
	net.Conn
	until []time.Time
}

func (n *noted) SetReadDeadline(t time.Time) error {
	n.until = append(n.until, t)
	return nil
}

func (n *noted) SetDeadline(t time.Time) error { return n.SetReadDeadline(t) }

// TestHeadersHaveTheirTimeAndBodiesAsLongAsTheyLike in the lean transport; of the standard
// one net/http sees to it.
func TestHeadersHaveTheirTimeAndBodiesAsLongAsTheyLike(t *testing.T) {
	_, near := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
	n := &noted{Conn: near}
	r, _ := http.NewRequest("GET", "http://upstream/", nil)
	if _, err := newLeanConn(&lean{patience: time.Hour}, n).roundTrip(r, nil); err != nil {
		t.Fatal(err)
	}
	if len(n.until) != 2 || time.Until(n.until[0]) < time.Minute || !n.until[1].IsZero() {
		t.Errorf("deadlines %v; want one in an hour, and then none", n.until)
	}
}

// countDials puts something on the channel for each connection to the upstream.
func (g *rig) countDials(dials chan bool) {
	dial := g.proxy.transports.dialing()
	before := *dial
	*dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials <- true
		return before(ctx, network, addr)
	}
}

// TestGivenUpAttemptReadsNothing: an attempt that was given up does not take what the next
// one has to send.
func TestGivenUpAttemptReadsNothing(t *testing.T) {
	body := io.NopCloser(strings.NewReader("body"))
	r, _ := http.NewRequest("POST", "http://upstream/", body)
	first := newSending(&leanConn{}, r)
	if first.giveUp() {
		t.Fatal("it has begun")
	}
	if _, err := first.Read(make([]byte, 9)); !errors.Is(err, errGivenUp) {
		t.Errorf("it reads, with the error %v", err)
	}
	second := newSending(&leanConn{}, r)
	if n, _ := second.Read(make([]byte, 9)); n != 4 {
		t.Errorf("the next one reads %d bytes, want 4", n)
	}
	if !second.giveUp() {
		t.Error("what was read would be missing in a third")
	}
}

// TestIdleConnectionsExpireInTurn: each when its own time has come, and none before.
func TestIdleConnectionsExpireInTurn(t *testing.T) {
	p := idlePool{most: 2, patience: time.Hour}
	var conns [3]*leanConn
	var ends [3]net.Conn
	for i := range conns {
		var near net.Conn
		near, ends[i] = net.Pipe()
		conns[i] = newLeanConn(&lean{}, near)
		p.put(conns[i])
	}
	closed := func(i int) bool {
		_ = ends[i].SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := ends[i].Read(make([]byte, 1))
		return err == io.EOF
	}
	if !closed(2) || closed(0) || closed(1) {
		t.Error("of three connections the one that came last is to go")
	}
	conns[0].since = conns[0].since.Add(-2 * time.Hour)
	p.expire()
	if !closed(0) || closed(1) {
		t.Error("the one that has lain idle for too long is to go, and no other")
	}
	p.close()
	if !closed(1) || p.get() != nil || p.alarm != nil {
		t.Error("something is kept")
	}
}
