package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"example.com/forebay"
)

// noise is a body in which nothing can be lost, doubled or moved unseen.
func noise(size int) []byte {
	b := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b)
	return b
}

// noPipes has the pipes closed that the kernel moved answers through: they are kept for
// the next one until they are collected.
func noPipes(t testing.TB) {
	t.Cleanup(func() {
		for range 3 {
			runtime.GC()
		}
	})
}

// TestLargeAnswersAreWhole whether the kernel moves them or not, and leave a connection
// that can be used again.
func TestLargeAnswersAreWhole(t *testing.T) {
	noLeaks(t)
	noPipes(t)
	for _, size := range []int{spliceFrom - 1, spliceFrom, spliceFrom + 4096, 3<<20 + 1} {
		body := noise(size)
		u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			for u.head(r) != "" {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, body)
			}
		})
		dials := make(chan bool, 10)
		g := inFront(t, u.url, func(c *Config) { c.IdleTimeout = time.Hour })
		g.countDials(dials)
		// It stays: one that leaves with its last byte may do so before the end is noticed here.
		client := &http.Client{Transport: &http.Transport{DialContext: guarded}}
		defer client.CloseIdleConnections()
		for range 3 {
			res, err := client.Get("http://" + g.addr + "/")
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%d bytes: another body came, of %d, %v", size, len(got), err)
			}
			if r := g.result(); r.Bytes != int64(size) || r.Err != nil {
				t.Errorf("%d bytes: result %+v", size, r)
			}
		}
		if !isKept(len(dials)) {
			t.Errorf("%d bytes: %d connections, want 1", size, len(dials))
		}
	}
}

// TestLargeAnswerBreaksOff: half an answer does not look like a whole one, and is blamed on
// who broke it off.
func TestLargeAnswerBreaksOff(t *testing.T) {
	noLeaks(t)
	noPipes(t)
	const size, sent = 1 << 20, 200 << 10
	for _, reset := range []bool{false, true} {
		u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			if u.head(r) != "" {
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, noise(sent))
				if reset {
					_ = c.(*net.TCPConn).SetLinger(0)
				}
			}
		})
		g := inFront(t, u.url, nil)
		c := g.dial()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err == nil {
			t.Error("half an answer looks whole")
		}
		if r := g.result(); r.Err == nil || r.Outcome != forebay.OutcomeIgnored || r.Bytes > sent {
			t.Errorf("reset %v: result %+v", reset, r)
		}
	}
}
