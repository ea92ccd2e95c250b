package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// get1 is a raw request with some headers.
func get1(headers ...string) string {
	return "GET /x HTTP/1.1\r\nHost: shop.example:8443\r\nConnection: close\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

func TestHeadersOfAStrangerAreReplaced(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	head := send(g, u, get1(
		"X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 7.7.7.7", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "Forwarded: for=6.6.6.6",
		"X-Real-IP: 6.6.6.6", "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /evil", "X-Forwarded-Server: e", "X-Forwarded: 1", "X-Forwarded-User: root",
		"True-Client-IP: 6.6.6.6", "CF-Connecting-IP: 6.6.6.6", "X-Client-IP: 6.6.6.6", "X-Original-URL: /admin", "X-Rewrite-URL: /admin",
		"X_Forwarded_For: 6.6.6.6", "X_Real-IP: 6.6.6.6", "X.Forwarded.For: 6.6.6.6", "X-Forwarded_Host: evil", "X~Real~IP: 6.6.6.6", "X.Request-Id: mine", "x_request_id: mine", "X-Request-Id: mine", "Proxy: http://evil", "HTTP2-Settings: AAAA",
		"Accept: */*", "X-Company: acme", "X_Custom: kept", "Accept: text/html", "Cookie: a=b"))
	id := field(head, "X-Request-Id")
	want := "GET /x HTTP/1.1\r\nHost: shop.example:8443\r\nAccept: */*\r\nAccept: text/html\r\nCookie: a=b\r\n" +
		"Forwarded: for=127.0.0.1;host=\"shop.example:8443\";proto=http\r\nX-Company: acme\r\n" +
		"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: shop.example:8443\r\nX-Forwarded-Proto: http\r\n" +
		"X-Request-Id: " + id + "\r\nX_custom: kept\r\n\r\n"
	if head != want {
		t.Errorf("reached the upstream:\n%s\nwant:\n%s", head, want)
	}
	if id == "mine" || len(id) != 16 {
		t.Errorf("X-Request-Id %q, want a new one", id)
	}
}

func TestHeadersOfATrustedProxyAreExtended(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, trust("127.0.0.0/8", "10.0.0.0/8"))
	head := send(g, u, get1(
		"X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https",
		`Forwarded: for=203.0.113.7;proto=https`, `Forwarded: for=10.0.0.1;by=x`,
		"X-Real-IP: 203.0.113.7", "X-Forwarded-Port: 443", "X_Real_IP: 6.6.6.6", "X-Request-Id: from-the-front"))
	for name, want := range map[string]string{
		"X-Forwarded-For":   "203.0.113.7, 10.0.0.1, 127.0.0.1",
		"X-Forwarded-Host":  "shop.example",
		"X-Forwarded-Proto": "https",
		"Forwarded":         `for=203.0.113.7;proto=https, for=10.0.0.1;by=x, for=127.0.0.1;host="shop.example:8443";proto=http`,
		"X-Real-Ip":         "203.0.113.7",
		"X-Forwarded-Port":  "443",
		"X_real_ip":         "",
		"X-Request-Id":      "from-the-front",
	} {
		if got := field(head, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r := g.result().Request; r.RemoteAddr != "203.0.113.7:0" {
		t.Errorf("behind Identify the request comes from %q, want the client", r.RemoteAddr)
	}
}

// TestForwardedAgreesWithTheChain: a front that sets X-Forwarded-For may let the
// client's Forwarded through.
func TestForwardedAgreesWithTheChain(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, trust("127.0.0.1/32"))
	own := `for=127.0.0.1;host="shop.example:8443";proto=http`
	for _, c := range []struct{ xff, forwarded, want string }{
		{"203.0.113.7", "for=6.6.6.6;host=evil", "for=203.0.113.7, " + own},
		{"203.0.113.7, [2001:db8::1]:80, unknown", "", `for=203.0.113.7, for="[2001:db8::1]", for=unknown, ` + own},
		{"203.0.113.7,, 2001:db8::1", `for="[2001:DB8::1]:4711";proto=https`, `for="[2001:DB8::1]:4711";proto=https, ` + own},
		{"", "For=203.0.113.7", "For=203.0.113.7, " + own},
		{"203.0.113.7", `for="6.6.6.6, for=203.0.113.7`, "for=203.0.113.7, " + own},
		{"203.0.113.7", "proto=https", "for=203.0.113.7, " + own},
		{"", "", own},
	} {
		var headers []string
		if c.xff != "" {
			headers = append(headers, "X-Forwarded-For: "+c.xff)
		}
		if c.forwarded != "" {
			headers = append(headers, "Forwarded: "+c.forwarded)
		}
		if got := field(send(g, u, get1(headers...)), "Forwarded"); got != c.want {
			t.Errorf("%+v: Forwarded %q", c, got)
		}
	}
}

// TestConnectionCannotRemoveOurHeaders: they are set after what Connection names
// is removed, and other hop-by-hop headers do not pass.
func TestConnectionCannotRemoveOurHeaders(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	g := inFront(t, u.url, nil)
	head := send(g, u, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, X-Forwarded-For, X-Request-Id, Forwarded, X-Secret, Authorization\r\n"+
		"X-Secret: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authorization: b\r\nTE: gzip, trailers\r\n\r\n")
	id := field(head, "X-Request-Id")
	want := "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=127.0.0.1;host=h;proto=http\r\nTe: trailers\r\n" +
		"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: h\r\nX-Forwarded-Proto: http\r\nX-Request-Id: " + id + "\r\n\r\n"
	if head != want || id == "" {
		t.Errorf("reached the upstream:\n%s\nwant:\n%s", head, want)
	}
}

func TestRequestIDs(t *testing.T) {
	noLeaks(t)
	u := newRaw(t, ok)
	byTrust := map[string]*rig{
		"stranger": inFront(t, u.url, nil),
		"trusted":  inFront(t, u.url, trust("127.0.0.1/32")),
		"anybody":  inFront(t, u.url, func(c *Config) { c.TrustRequestID = true }),
		"other":    inFront(t, u.url, func(c *Config) { c.TrustRequestID = true; c.RequestIDHeader = "x-correlation-id" }),
	}
	for _, c := range []struct {
		from, header, id string
		kept             bool
	}{
		{"stranger", "X-Request-Id", "abc", false},
		{"trusted", "X-Request-Id", "abc", true},
		{"anybody", "X-Request-Id", "abc", true},
		{"anybody", "X-Request-Id", `a"b`, false},
		{"anybody", "X-Request-Id", "a b", false},
		{"anybody", "X-Request-Id", strings.Repeat("a", 129), false},
		{"other", "X-Correlation-Id", "abc", true},
		{"other", "X-Request-Id", "abc", false},
	} {
		g := byTrust[c.from]
		head := send(g, u, get1(c.header+": "+c.id))
		got := field(head, g.proxy.config.RequestIDHeader)
		if (got == c.id) != c.kept || got == "" {
			t.Errorf("%+v: id %q", c, got)
		}
		r := g.result()
		if seen := r.Request.Header.Get("X-Request-Id"); seen != got {
			t.Errorf("%+v: gates read %q, the upstream %q", c, seen, got)
		}
	}
}

func TestForwardedSyntax(t *testing.T) {
	for host, want := range map[string]string{
		"shop.example":      "shop.example",
		"shop.example:80":   `"shop.example:80"`,
		"[2001:db8::1]:443": `"[2001:db8::1]:443"`,
		`a"b\c`:             `"a\"b\\c"`,
	} {
		if got := tokenOrQuoted(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
	hop, _ := parseHop("[2001:db8::1]:443")
	if got := fmt.Sprint(node(hop)); got != `"[2001:db8::1]"` {
		t.Errorf("IPv6: %s", got)
	}
}

// TestTrailersNameNobody: an upstream that takes trailers for headers is not told there
// who calls, by a trusted proxy neither; the others arrive.
func TestTrailersNameNobody(t *testing.T) {
	noLeaks(t)
	got := make(chan http.Header, 1)
	up := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	})
	for name, g := range map[string]*rig{"stranger": inFront(t, up, nil), "trusted": inFront(t, up, trust("127.0.0.1/32"))} {
		answer := g.raw("POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n" +
			"Trailer: X-Sum, X-Forwarded-For, Forwarded, X-Real-IP, X_Real_IP, X-Request-Id, Authorization, Cookie\r\n\r\n1\r\nx\r\n0\r\n" +
			"X-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\n" +
			"X-Request-Id: mine\r\nAuthorization: Basic eA==\r\nCookie: a=b\r\nX-Unannounced: 1\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Fatalf("%s: %q", name, answer)
		}
		if trailer := <-got; len(trailer) != 1 || trailer.Get("X-Sum") != "1" {
			t.Errorf("%s: the trailers %v reached the upstream, want X-Sum alone", name, trailer)
		}
	}
}
