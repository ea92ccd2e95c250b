package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/forebay"
)

// closedPort is an address where nobody listens.
func closedPort(t testing.TB) string {
	l := listen(t)
	_ = l.Close()
	return "http://" + l.Addr().String()
}

func TestUpstreamThatGivesNoAnswer(t *testing.T) {
	noLeaks(t)
	cut := func(answer string) func(*rawUpstream, net.Conn, *bufio.Reader) {
		return func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			u.head(r)
			_, _ = io.WriteString(c, answer)
		}
	}
	reset := func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		u.head(r)
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	plain := func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
		_, _ = io.ReadFull(r, make([]byte, 5))
		_, _ = io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n")
	}
	silent := func(u *rawUpstream, c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) }
	for _, c := range []struct {
		name, upstream string
		status         int
		code, because  string
		outcome        forebay.Outcome
	}{
		{"refused", closedPort(t), 502, "bad_gateway", "connection_refused", forebay.OutcomeIgnored},
		{"no such host", "http://no-such-host.invalid", 502, "bad_gateway", "dns_error", forebay.OutcomeIgnored},
		{"no such socket", "unix:" + filepath.Join(t.TempDir(), "none"), 502, "bad_gateway", "destination_unavailable", forebay.OutcomeIgnored},
		{"ends before the headers", newRaw(t, cut("")).url, 502, "bad_gateway", "connection_terminated", forebay.OutcomeIgnored},
		{"ends in the headers", newRaw(t, cut("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n")).url, 502, "bad_gateway", "connection_terminated", forebay.OutcomeIgnored},
		{"reset before the headers", newRaw(t, reset).url, 502, "bad_gateway", "connection_terminated", forebay.OutcomeIgnored},
		{"no HTTP", newRaw(t, cut("220 mail ESMTP\r\n\r\n")).url, 502, "bad_gateway", "http_protocol_error", forebay.OutcomeIgnored},
		{"a status that is none", newRaw(t, cut("HTTP/1.1 000 X\r\nContent-Length: 0\r\n\r\n")).url, 502, "bad_gateway", "http_protocol_error", forebay.OutcomeIgnored},
		{"headers without end", newRaw(t, cut("HTTP/1.1 200 OK\r\nA: "+strings.Repeat("a", 2<<20))).url, 502, "bad_gateway", "http_protocol_error", forebay.OutcomeIgnored},
		{"switches unasked", newRaw(t, cut("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")).url, 502, "bad_gateway", "http_upgrade_failed", forebay.OutcomeIgnored},
		{"plain, and TLS was wanted", strings.Replace(newRaw(t, plain).url, "http:", "https:", 1), 502, "bad_gateway", "tls_protocol_error", forebay.OutcomeIgnored},
		{"silent, and TLS was wanted", strings.Replace(newRaw(t, silent).url, "http:", "https:", 1), 504, "gateway_timeout", "connection_timeout", forebay.OutcomeOverloaded},
		{"silent", newRaw(t, silent).url, 504, "gateway_timeout", "http_response_timeout", forebay.OutcomeOverloaded},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := inFront(t, c.upstream, func(conf *Config) { conf.ResponseTimeout = 300 * time.Millisecond; conf.TrustRequestID = true })
			res, body := g.get("GET", "/x", nil, "X-Request-Id", "id-7")
			if want := fmt.Sprintf(`{"error":"%s","requestId":"id-7"}`, c.code); res.StatusCode != c.status || body != want {
				t.Errorf("answer %d %s, want %d %s", res.StatusCode, body, c.status, want)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/json", "Cache-Control": "no-store", "X-Request-Id": "id-7",
				"Proxy-Status": "forebay; error=" + c.because,
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if res.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			r := g.result()
			if r.Status != c.status || r.Outcome != c.outcome || r.Err == nil || r.Upstream <= 0 || r.Bytes != int64(len(body)) {
				t.Errorf("result %+v", r)
			}
			if strings.Contains(body, "127.0.0.1") {
				t.Error("the client is told where the upstream is")
			}
			g.noMore()
		})
	}
}

func TestOwnAnswerToHead(t *testing.T) {
	noLeaks(t)
	g := inFront(t, closedPort(t), nil)
	if got := g.raw("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502 ") || !strings.HasSuffix(got, "\r\n\r\n") {
		t.Errorf("answer %q", got)
	}
}

// TestUntrustedCertificate: https upstreams are verified, and reached by HTTP/1.1.
func TestUntrustedCertificate(t *testing.T) {
	noLeaks(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.Config.ErrorLog = Server(nil, Timeouts{}).ErrorLog
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	g := inFront(t, s.URL, nil)
	if res, _ := g.get("GET", "/", nil); res.StatusCode != 502 || res.Header.Get("Proxy-Status") != "forebay; error=tls_certificate_error" {
		t.Errorf("answer %d %s", res.StatusCode, res.Header)
	}
	known := inFront(t, s.URL, nil)
	known.proxy.transports.http.TLSClientConfig = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if res, body := known.get("GET", "/", nil); res.StatusCode != 200 || body != "HTTP/1.1" {
		t.Errorf("answer %d %s", res.StatusCode, body)
	}
}

func TestBlame(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	for because, err := range map[string]error{
		"connection_refused":        dial(syscall.ECONNREFUSED),
		"destination_ip_unroutable": dial(syscall.EHOSTUNREACH),
		"connection_timeout":        dial(syscall.ETIMEDOUT),
		"connection_limit_reached":  dial(syscall.EAGAIN),
		"connection_terminated":     dial(syscall.EIO),
		"connection_write_timeout":  fmt.Errorf("wrapped: %w", &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}),
		"http_response_timeout":     context.DeadlineExceeded,
		"http_protocol_error":       errors.New("malformed"),
		"tls_alert_received":        &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")},
	} {
		if got := blameUpstream(err).because; got != because {
			t.Errorf("%v: %s, want %s", err, got, because)
		}
	}
	if f := blameUpstream(dial(syscall.EAGAIN)); f.outcome != forebay.OutcomeOverloaded {
		t.Errorf("a full backlog ends as %v", f.outcome)
	}
}

// TestOutcomes: what a limiter learns of answers that came.
func TestOutcomes(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
		if status != 304 && status != 204 {
			_, _ = io.WriteString(w, "four")
		}
	})
	g := inFront(t, up, nil)
	for status, want := range map[int]forebay.Outcome{
		200: forebay.OutcomeDone, 204: forebay.OutcomeDone, 304: forebay.OutcomeDone, 404: forebay.OutcomeDone, 500: forebay.OutcomeIgnored,
		502: forebay.OutcomeIgnored, 429: forebay.OutcomeOverloaded, 503: forebay.OutcomeOverloaded, 504: forebay.OutcomeOverloaded,
	} {
		res, body := g.get("GET", fmt.Sprintf("/%d", status), nil)
		r := g.result()
		if res.StatusCode != status || r.Status != status || r.Outcome != want || r.Err != nil || r.Bytes != int64(len(body)) || r.Upstream <= 0 {
			t.Errorf("%d: answer %d, result %+v, want outcome %v", status, res.StatusCode, r, want)
		}
	}
	g.noMore()
}

func TestRJ05RetryAfterOfTheUpstreamPasses(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT")
		if r.URL.Path == "/seconds" {
			w.Header().Set("Retry-After", "120")
		}
		w.WriteHeader(503)
	})
	g := inFront(t, up, nil)
	for path, want := range map[string]string{"/seconds": "120", "/date": "Fri, 31 Dec 1999 23:59:59 GMT"} {
		if res, _ := g.get("GET", path, nil); len(res.Header["Retry-After"]) != 1 || res.Header.Get("Retry-After") != want {
			t.Errorf("%s: Retry-After %q", path, res.Header["Retry-After"])
		}
	}
}

// TestUpstreamDiesInTheBody: half an answer must not look like a whole one.
func TestUpstreamDiesInTheBody(t *testing.T) {
	noLeaks(t)
	half := func(head string) *rawUpstream {
		return newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) {
			u.head(r)
			_, _ = io.WriteString(c, head)
		})
	}
	for name, u := range map[string]*rawUpstream{
		"of a length": half("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx"),
		"in chunks":   half("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"),
	} {
		g := inFront(t, u.url, nil)
		answer := g.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n") // the connection ends by itself
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
		if err != nil {
			if answer != "" {
				t.Errorf("%s: %q: %v", name, answer, err)
			}
		} else if body, err := io.ReadAll(res.Body); err == nil {
			t.Errorf("%s: %q looks whole", name, body)
		}
		r := g.result()
		if r.Status != 200 || r.Err == nil || r.Outcome != forebay.OutcomeIgnored || r.Bytes != 1 {
			t.Errorf("%s: result %+v", name, r)
		}
		g.noMore()

		tr := h2c()
		if res, err := tr.RoundTrip(httptest.NewRequest("GET", "http://"+g.addr+"/", nil)); err == nil {
			if body, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%s over HTTP/2: %q looks whole", name, body)
			}
			_ = res.Body.Close()
		}
		tr.CloseIdleConnections()
		g.result()
	}
}

func TestBodyTooLargeOrBroken(t *testing.T) {
	noLeaks(t)
	up := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	limited := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 1000)
			next.ServeHTTP(w, r)
		})
	}
	g := inFront(t, up, nil, limited)
	res, body := g.get("POST", "/", bytes.NewReader(make([]byte, 5000)))
	if res.StatusCode != 413 || !strings.Contains(body, `"too_large"`) || res.Header.Get("Retry-After") != "" {
		t.Errorf("too large: %d %s %v", res.StatusCode, body, res.Header)
	}
	if r := g.result(); r.Status != 413 || r.Outcome != forebay.OutcomeIgnored {
		t.Errorf("too large: %+v", r)
	}
	answer := g.raw("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !strings.Contains(answer, `"bad_request"`) || !strings.Contains(answer, "Connection: close") {
		t.Errorf("broken chunk: %q", answer)
	}
	if r := g.result(); r.Status != 400 || r.Outcome != forebay.OutcomeIgnored || r.Err == nil {
		t.Errorf("broken chunk: %+v", r)
	}
	g.noMore()
}

// TestUpstreamTakesInNothing: the answer is timed from the end of the request on,
// which does not come when the upstream hangs with a full socket.
func TestUpstreamTakesInNothing(t *testing.T) {
	noLeaks(t)
	over := make(chan struct{})
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) { <-over })
	t.Cleanup(func() { close(over) })
	g := inFront(t, u.url, func(c *Config) { c.ResponseTimeout = 300 * time.Millisecond })
	c := g.dial()
	go func() {
		_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 67108864\r\n\r\n")
		_, _ = c.Write(make([]byte, 64<<20)) // until the answer ends it
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 504 || res.Header.Get("Proxy-Status") != "forebay; error=connection_write_timeout" {
		t.Errorf("answer %v, %v", res, err)
	}
	_ = c.Close()
	if r := g.result(); r.Outcome != forebay.OutcomeOverloaded {
		t.Errorf("result %+v", r)
	}
}

// TestEarlyAnswer: an upstream may answer before it has read the body. The answer
// does not wait for the rest, and the connection serves nothing else.
func TestEarlyAnswer(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, func(u *rawUpstream, c net.Conn, r *bufio.Reader) { // net/http's would wait for 1000 bytes
		u.head(r)
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		_, _ = io.Copy(io.Discard, r)
	})
	g := inFront(t, u.url, nil)
	for _, length := range []int{1000, 1000000} {
		c := g.dial()
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\nbegin", length)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || res.StatusCode != 413 || !res.Close {
			t.Errorf("%d: %v, %v: want 413 and the end although the body is not there", length, res, err)
		}
		if r := g.result(); r.Status != 413 || r.Err != nil || r.Outcome != forebay.OutcomeDone {
			t.Errorf("%d: result %+v", length, r)
		}
		_ = c.Close()
	}
}

func TestNewPanicsWithoutAnUpstream(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "proxy: ") {
			t.Errorf("panic %q", got)
		}
	}()
	New(Config{})
}
