package proxy

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
)

// TestEventsComeOneByOne: each event is there before the next is made.
func TestEventsComeOneByOne(t *testing.T) {
	noLeaks(t)
	next := make(chan bool)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		c := http.NewResponseController(w)
		_ = c.Flush() // the headers come before the first event
		for <-next {
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = c.Flush()
		}
	})
	g := inFront(t, up, nil)
	for _, kind := range []string{"text/event-stream", "application/x-ndjson"} {
		r, _ := http.NewRequest("GET", "http://"+g.addr, nil)
		r.Header.Set("Accept", kind)
		tr := &http.Transport{DialContext: guarded}
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		for range 3 {
			next <- true
			if line, err := lines.ReadString('\n'); line != "data: 1\n" || err != nil {
				t.Errorf("%s: %q, %v", kind, line, err)
			}
			_, _ = lines.ReadString('\n')
		}
		next <- false
		if _, err := io.ReadAll(lines); err != nil {
			t.Errorf("%s: end: %v", kind, err)
		}
		tr.CloseIdleConnections()
	}
}

func TestInterimAnswersAndTrailers(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(103)
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Announced")
		fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-Sum"))
		w.Header().Set("X-Announced", "a")
		w.Header().Set(http.TrailerPrefix+"X-Surprise", "s")
	})
	g := inFront(t, up, nil)
	for name, tr := range map[string]*http.Transport{"h1": {DialContext: guarded}, "h2": h2c()} {
		hints := ""
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints += fmt.Sprint(code, h.Get("Link"))
			return nil
		}}
		r, _ := http.NewRequest("POST", "http://"+g.addr, struct{ io.Reader }{strings.NewReader("body")})
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
		r.Trailer = http.Header{"X-Sum": {"42"}}
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if string(body) != "body 42" || err != nil {
			t.Errorf("%s: %q, %v: the request's trailer belongs into it", name, body, err)
		}
		if hints != "103</a.css>; rel=preload" {
			t.Errorf("%s: interim answers %q", name, hints)
		}
		if res.Trailer.Get("X-Announced") != "a" || res.Trailer.Get("X-Surprise") != "s" {
			t.Errorf("%s: trailers %v", name, res.Trailer)
		}
		_ = res.Body.Close()
		tr.CloseIdleConnections()
		if r := g.result(); r.Status != 200 {
			t.Errorf("%s: result %+v", name, r)
		}
	}
}

// TestAnswersAreUnchanged: byte for byte but for what HTTP has a proxy change.
func TestAnswersAreUnchanged(t *testing.T) {
	noLeaks(t)
	for name, c := range map[string][3]string{
		"no type": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nDate: d\r\n\r\n<html>", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nDate: d\r\nConnection: close\r\n\r\n<html>"},
		"HEAD":    {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nDate: d\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nDate: d\r\nConnection: close\r\n\r\n"},
		"304":     {"GET", "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\nDate: d\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nDate: d\r\nEtag: \"a\"\r\nConnection: close\r\n\r\n"},
		"204":     {"DELETE", "HTTP/1.1 204 No Content\r\nDate: d\r\n\r\n", "HTTP/1.1 204 No Content\r\nDate: d\r\nConnection: close\r\n\r\n"},
		"packed":  {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\nDate: d\r\n\r\n\x1f\x8b", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\nDate: d\r\nConnection: close\r\n\r\n\x1f\x8b"},
		"cookies": {"GET", "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 0\r\nKeep-Alive: timeout=5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nDate: d\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: d\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: close\r\n\r\n"},
	} {
		u := newRaw(t, func(u *rawUpstream, conn net.Conn, r *bufio.Reader) {
			if u.head(r) != "" {
				_, _ = io.WriteString(conn, c[1])
			}
		})
		g := inFront(t, u.url, nil)
		if got := g.raw(c[0] + " / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); got != c[2] {
			t.Errorf("%s: %q, want %q", name, got, c[2])
		}
		if head := u.heads()[0]; field(head, "Accept-Encoding") != "" || field(head, "User-Agent") != "" {
			t.Errorf("%s: the upstream was asked for what the client did not: %q", name, head)
		}
	}
}

// TestBothWaysAtOnce: the upstream answers while the body still comes, and gets
// all of it.
func TestBothWaysAtOnce(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_ = c.Flush()
		_, _ = io.Copy(flushing{w, c}, r.Body)
	})
	g := inFront(t, up, nil)
	sent := make([]byte, 3<<20)
	_, _ = rand.Read(sent)
	for name, tr := range map[string]*http.Transport{"h1": {DialContext: guarded}, "h2": h2c()} {
		pr, pw := io.Pipe()
		r, _ := http.NewRequest("POST", "http://"+g.addr, pr)
		begun := make(chan struct{})
		go func() { // the first piece, and the rest once the answer has begun
			defer close(begun)
			_, _ = pw.Write(sent[:10])
		}()
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-begun // the answer may be faster
			_, _ = pw.Write(sent[10:])
			_ = pw.Close()
		}()
		if got, err := io.ReadAll(res.Body); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%s: %d bytes came back, %v; want %d", name, len(got), err, len(sent))
		}
		_ = res.Body.Close()
		tr.CloseIdleConnections()
	}
}

type flushing struct {
	io.Writer
	c *http.ResponseController
}

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	_ = f.c.Flush()
	return n, err
}

// TestExpectContinue: the client is told to go on when the upstream says so, once,
// however often that does, and not when it refuses.
func TestExpectContinue(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(417)
			return
		}
		if r.URL.Path == "/again" {
			w.WriteHeader(http.StatusContinue)
			w.WriteHeader(http.StatusContinue)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	g := inFront(t, up, nil)
	for path, want := range map[string]string{"/take": "HTTP/1.1 100 Continue", "/again": "HTTP/1.1 100 Continue", "/refuse": "HTTP/1.1 417 Expectation Failed"} {
		c := g.dial()
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		if strings.TrimSpace(line) != want || err != nil {
			t.Errorf("%s: %q, %v", path, line, err)
		}
		_, _ = io.WriteString(c, "body")
		rest, _ := io.ReadAll(r)
		if strings.Contains(string(rest), "100 Continue") {
			t.Errorf("%s: it is told again: %q", path, rest)
		}
		if path != "/refuse" && (!strings.Contains(string(rest), "HTTP/1.1 200 OK") || !strings.HasSuffix(string(rest), "body")) {
			t.Errorf("%s: %q", path, rest)
		}
	}
}

// TestGRPC: HTTP/2 without encryption on both sides, both ways at once, trailers.
func TestGRPC(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" {
			http.Error(w, r.Proto, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		c := http.NewResponseController(w)
		_ = c.Flush()
		_, _ = io.Copy(flushing{w, c}, r.Body)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	})
	g := inFront(t, up, nil)
	tr := h2c()
	defer tr.CloseIdleConnections()
	pr, pw := io.Pipe()
	r, _ := http.NewRequest("POST", "http://"+g.addr+"/pkg.Service/Method", pr)
	r.Header = http.Header{"Content-Type": {"application/grpc+proto"}, "Te": {"trailers"}}
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{"one", "two", "three"} {
		_, _ = io.WriteString(pw, message)
		got := make([]byte, len(message))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != message {
			t.Errorf("%q, %v; want %q", got, err, message)
		}
	}
	_ = pw.Close()
	if _, err := io.ReadAll(res.Body); err != nil || res.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("end: %v, trailers %v", err, res.Trailer)
	}
	_ = res.Body.Close()
	if r := g.result(); r.Status != 200 || r.Bytes != 11 {
		t.Errorf("result %+v", r)
	}
	for _, kind := range []string{"application/grpc-web", "application/json"} {
		res, body := g.get("POST", "/", strings.NewReader("x"), "Content-Type", kind)
		if res.StatusCode != 400 || body != "HTTP/1.1\n" {
			t.Errorf("%s went by %s", kind, body)
		}
	}
}

// TestUpstreamOfHTTP2Alone: requests of both protocols reach an upstream that speaks
// HTTP/2 without encryption and nothing else, with trailers both ways.
func TestUpstreamOfHTTP2Alone(t *testing.T) {
	noLeaks(t)
	s := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "X-Announced")
		fmt.Fprintf(w, "%d %s %s %s", r.ProtoMajor, r.RequestURI, body, r.Trailer.Get("X-Sum"))
		_ = http.NewResponseController(w).Flush() // or its length is known, and HTTP/1 has no place for trailers
		w.Header().Set("X-Announced", "a")
	}), Timeouts{})
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
	g := inFront(t, "h2c://"+serve(t, s), nil)
	for name, tr := range map[string]*http.Transport{"h1": {DialContext: guarded}, "h2": h2c()} {
		r, _ := http.NewRequest("POST", "http://"+g.addr+"/a%2Fb?x=1;y", struct{ io.Reader }{strings.NewReader("body")})
		r.Trailer = http.Header{"X-Sum": {"42"}}
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if string(body) != "2 /a%2Fb?x=1;y body 42" || err != nil || res.Trailer.Get("X-Announced") != "a" {
			t.Errorf("%s: %q, %v, trailer %v", name, body, err, res.Trailer)
		}
		_ = res.Body.Close()
		tr.CloseIdleConnections()
	}
}

// TestUpgradeOfHTTP2: an upstream of HTTP/2 is asked for upgrades in HTTP/1.1, at the same
// address. One that does not speak that is at fault, and nothing hangs.
func TestUpgradeOfHTTP2(t *testing.T) {
	noLeaks(t)
	for _, both := range []bool{true, false} {
		s := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 {
				_, _ = io.WriteString(w, "over HTTP/2")
				return
			}
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			line, _ := rw.ReadString('\n')
			_, _ = io.WriteString(conn, line)
		}), Timeouts{})
		if !both {
			s.Protocols = new(http.Protocols)
			s.Protocols.SetUnencryptedHTTP2(true)
		}
		g := inFront(t, "h2c://"+serve(t, s), nil)
		if _, body := g.get("GET", "/", nil); body != "over HTTP/2" {
			t.Errorf("without an upgrade: %q", body)
		}
		g.result()
		c := g.dial()
		_, _ = io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping\n")
		rd := bufio.NewReader(c)
		res, err := http.ReadResponse(rd, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{true: http.StatusSwitchingProtocols, false: http.StatusBadGateway}[both]; res.StatusCode != want {
			t.Errorf("an upgrade, of an upstream that speaks HTTP/1.1: %v: %s", both, res.Status)
		}
		if both {
			if line, err := rd.ReadString('\n'); line != "ping\n" {
				t.Errorf("%q, %v", line, err)
			}
		} else if res.Header.Get("Proxy-Status") == "" {
			t.Error("nobody is named who is at fault")
		}
		_ = c.Close()
		g.result()
		g.noMore()
	}
}
