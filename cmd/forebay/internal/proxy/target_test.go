package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// requestLines go to the upstream as they are.
var requestLines = []string{
	"/",
	"/reports/7",
	"//",
	"//a",
	"//a//b?x=//",
	"///a",
	"//reports/x", "/reports//x", "/./reports/x",
	"/a/../b", "/..", "/../../etc/passwd", "/a/./b/.",
	"/x/%2F/y", "/x/%2f/y", "/%2e%2e/%2E/x",
	"//x/%2F/y%20z",
	"/x/https%3A%2F%2Fh%2F", "/x/a%20b", "/x/%E2%82%AC", "/x/%e2%82%ac",
	"/x/\xe2\x82\xac", "/x/\xff\xfe", `/a|b"c<d>e^f` + "`{g}", `/a\b\..\c`,
	"/x;v=1/y;w", "/a:b@c!$&'()*+,;=~-._",
	"/x?", "/x??", "/x?a=1;b=2", "/x?x=100%&y=1", "/x?%", "/x?%zz", "/x?a=b#c", "/x?a|b=\xe2\x82\xac", "/x?a=1&&b=2&", "/x?q=a+b%20c",
	"/x?" + strings.Repeat("a=1&", 3000),
}

func TestRequestLineByteForByte(t *testing.T) {
	noLeaks(t)
	for _, base := range []string{"", "/", "/base", "/base/", "/b%2Fc/"} {
		u := newRaw(t, ok)
		g := inFront(t, u.url+base, nil)
		for _, line := range requestLines {
			head := send(g, u, "GET "+line+" HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
			want := "GET " + strings.TrimSuffix(base, "/") + line + " HTTP/1.1"
			if got, _, _ := strings.Cut(head, "\r\n"); got != want {
				t.Errorf("base %q: %q reached the upstream as %q", base, line, got)
			}
		}
	}
}

// send sends one raw request and returns the head that reached the upstream.
func send(g *rig, u *rawUpstream, request string) string {
	g.Helper()
	before := len(u.heads())
	answer := g.raw(request)
	heads := u.heads()
	if len(heads) != before+1 {
		g.Errorf("%q: %d requests reached the upstream, want 1; answer %q", request[:min(60, len(request))], len(heads)-before, answer)
		return ""
	}
	return heads[before]
}

func TestKR07SlashesAreForwardedAsTheyAre(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	for _, path := range []string{"//reports/x", "/reports//x", "/./reports/x"} {
		head := send(g, u, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(head, "GET "+path+" HTTP/1.1\r\n") {
			t.Errorf("%s reached the upstream as %q", path, head)
		}
	}
}

func TestKR08LegalPathsSurvive(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	for _, path := range []string{"/x/%2F/y", "/x/https%3A%2F%2Fh%2F", "/x/a%20b", "/x/%E2%82%AC", "/x?a=1;b=2"} {
		head := send(g, u, "GET "+path+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(head, "GET "+path+" HTTP/1.1\r\n") {
			t.Errorf("%s reached the upstream as %q", path, head)
		}
	}
}

// TestRequestLineExceptions: what goes on in another form, or not at all.
func TestRequestLineExceptions(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	for sent, want := range map[string]string{
		"/reports#x":                 "/reports%23x", // an upstream that cuts there would serve what no gate saw
		"/a#/../b":                   "/a%23/../b",
		"//a|b":                      "//a%7Cb",
		"http://h/a/../b?c;d":        "/a/../b?c;d",
		"http://h":                   "/",
		"http://h?a=1":               "/?a=1",
		"HTTPS://user@h:80//x/%2F?a": "//x/%2F?a",
	} {
		head := send(g, u, "GET "+sent+" HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n")
		if got, _, _ := strings.Cut(head, "\r\n"); got != "GET "+want+" HTTP/1.1" {
			t.Errorf("%q reached the upstream as %q, want %q", sent, got, want)
		}
		g.result()
	}
	for sent, want := range map[string]string{
		"GET *":               "400 Bad Request",
		"CONNECT h:443":       "501 Not Implemented",
		"CONNECT /x":          "501 Not Implemented",
		"GET mailto:a@b":      "400 Bad Request",
		"GET /%zz":            "400 Bad Request",
		"GET /a HTTP/1.1 b":   "400 Bad Request",
		"OPTIONS *":           "200 OK", // net/http's own answer
		"GET /a\x01":          "400 Bad Request",
		"GET /x?a=\tb":        "400 Bad Request",
		"G@T /x":              "400 Bad Request",
		"GET relative/../../": "400 Bad Request",
	} {
		before := len(u.heads())
		answer := g.raw(sent + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 "+want) || len(u.heads()) != before {
			t.Errorf("%q: %q, and %d requests upstream; want %s and none", sent, answer, len(u.heads())-before, want)
		}
	}
}

// TestBlanksFromHTTP2: HTTP/2 can carry a target that would end the request line
// early.
func TestBlanksFromHTTP2(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	tr := h2c()
	defer tr.CloseIdleConnections()
	for _, opaque := range []string{"/a HTTP/1.1", "/a?b HTTP/1.1"} {
		r := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: g.addr, Opaque: opaque}, Header: http.Header{}}
		res, err := tr.RoundTrip(r)
		if err != nil {
			continue // net/http's own client or server refused
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 400 {
			t.Errorf("%q: status %d, want 400", opaque, res.StatusCode)
		}
	}
	for _, head := range u.heads() {
		t.Errorf("reached the upstream: %q", head)
	}
}

// TestHostIsTheClients: the upstream sees what the client asked for.
func TestHostIsTheClients(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: shop.example:8443\r\nConnection: close\r\n\r\n":     "shop.example:8443",
		"GET http://named.example/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n": "named.example",
		"GET / HTTP/1.0\r\n\r\n": strings.TrimPrefix(u.url, "http://"),
	} {
		if got := field(send(g, u, request), "Host"); got != want {
			t.Errorf("%q: Host %q, want %q", request, got, want)
		}
	}
}

func TestUnixUpstream(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	u := &rawUpstream{}
	u.accept(t, l, ok)
	g := inFront(t, "unix:"+path, nil)
	head := send(g, u, "GET //a?b;c HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(head, "GET //a?b;c HTTP/1.1\r\nHost: shop.example\r\n") {
		t.Errorf("reached the socket as %q", head)
	}
	if head := send(g, u, "GET / HTTP/1.0\r\n\r\n"); field(head, "Host") != "localhost" {
		t.Errorf("without a Host: %q", head)
	}
}

// TestListeningOnAUnixSocket: the peer has no address.
func TestListeningOnAUnixSocket(t *testing.T) {
	noLeaks(t)
	for _, c := range []struct {
		trusted             []string
		wantFor, wantClient string
	}{
		{nil, "", ""},
		{[]string{"10.0.0.0/8"}, "203.0.113.7, 10.0.0.1", "203.0.113.7:0"},
	} {
		u := newRaw(t, ok)
		g := inFront(t, u.url, trust(c.trusted...))
		path := filepath.Join(t.TempDir(), "front")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s := Server(g.proxy.Identify(g.proxy), Timeouts{})
		go s.Serve(l)
		t.Cleanup(func() { _ = s.Close() })
		tr := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}
		r, _ := http.NewRequest("GET", "http://h/", nil)
		r.Header.Set("X-Forwarded-For", "203.0.113.7, 10.0.0.1")
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if got := field(u.heads()[0], "X-Forwarded-For"); got != c.wantFor {
			t.Errorf("trusting %v: X-Forwarded-For %q, want %q", c.trusted, got, c.wantFor)
		}
		if got := g.result().Request.RemoteAddr; c.wantClient != "" && got != c.wantClient {
			t.Errorf("trusting %v: RemoteAddr %q, want %q", c.trusted, got, c.wantClient)
		}
	}
}
