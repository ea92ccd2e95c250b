package forebaytest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fetch returns the body of an answer.
func fetch(t *testing.T, client *http.Client, path string) string {
	t.Helper()
	resp, err := client.Get(URL + path)
	if err != nil {
		t.Errorf("GET %s: %v", path, err)
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("GET %s: reading the body: %v", path, err)
	}
	return string(body)
}

// protocol answers with what it sees of the connection.
var protocol = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.Proto+" from "+r.RemoteAddr)
})

// TestServer speaks both protocols, in a bubble and outside.
func TestServer(t *testing.T) {
	speak := func(t *testing.T) {
		s := NewServer(t, protocol)
		for want, client := range map[string]*http.Client{"HTTP/1.1": s.Client(), "HTTP/2.0": s.ClientHTTP2()} {
			for range 3 {
				if got := fetch(t, client, "/"); !strings.HasPrefix(got, want+" from 192.0.2.2:") {
					t.Errorf("the server sees %q, want %s from 192.0.2.2", got, want)
				}
			}
		}
	}
	t.Run("outside", speak)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, speak) })
}

// TestServerTime waits for an hour, which takes no time.
func TestServerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }))
		start := time.Now()
		fetch(t, client, "/")
		if took := time.Since(start); took != time.Hour {
			t.Errorf("it took %v, want 1h", took)
		}
	})
}

// TestServerDial speaks on the wire.
func TestServerDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := NewServer(t, protocol).Dial()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: gate.test\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if line != "HTTP/1.1 200 OK\r\n" || err != nil {
			t.Errorf("the first line is %q (%v)", line, err)
		}
		if conn.LocalAddr().String() != "192.0.2.2:1024" || conn.RemoteAddr().String() != "192.0.2.1:80" {
			t.Errorf("the connection is from %v to %v", conn.LocalAddr(), conn.RemoteAddr())
		}
	})
}

// TestServerClose ends a server while requests of both protocols run, one
// connection is idle and one belongs to its handler.
func TestServerClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Backend{}
		s := NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/mine" {
				b.ServeHTTP(w, r)
				return
			}
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("Hijack: %v", err)
				return
			}
			_, _ = conn.Read(make([]byte, 1)) // until the server cuts it
		}))
		ended := make(chan error, 3)
		s.Dial()
		go get(s.Client(), "/mine", ended)
		go get(s.Client(), "/a", ended)
		go get(s.ClientHTTP2(), "/b", ended)
		synctest.Wait()
		if b.InFlight() != 2 {
			t.Errorf("%d run, want 2", b.InFlight())
		}
		s.Close()
		s.Close()
		for range 3 {
			if err := <-ended; err == nil {
				t.Errorf("a request ended well though its server ended first")
			}
		}
		if b.InFlight() != 0 {
			t.Errorf("%d handlers run after Close, want 0", b.InFlight())
		}
		if _, err := s.Client().Get(URL); err == nil {
			t.Errorf("a server that has ended answers")
		}
	})
}

func get(client *http.Client, path string, ended chan<- error) {
	resp, err := client.Get(URL + path)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	ended <- err
}

// TestServerErrorLog reads what net/http says of a panic.
func TestServerErrorLog(t *testing.T) {
	s := NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("at the disco") }))
	if _, err := s.Client().Get(URL); err == nil {
		t.Errorf("a handler that panics answers")
	}
	s.Close()
	if log := s.ErrorLog(); !strings.Contains(log, "at the disco") {
		t.Errorf("ErrorLog = %q, want the panic", log)
	}
}

// TestDialEnds gives up on a server that never accepts.
func TestDialEnds(t *testing.T) {
	p := newPipes()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := p.dial(ctx); err != context.Canceled {
		t.Errorf("dial with a context that has ended: %v, want %v", err, context.Canceled)
	}
	_, _ = p.Close(), p.Close()
	if _, err := p.dial(t.Context()); err == nil {
		t.Errorf("dial after Close succeeded")
	}
}
