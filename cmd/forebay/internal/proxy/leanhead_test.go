package proxy

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// simpleHeads are requests that the lean server answers itself.
var simpleHeads = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD /a/b.c~d-e_f HTTP/1.1\r\nHost: a.example:80\r\nConnection: close\r\n\r\n",
	"GET //a/../b/./$&+,:=@ HTTP/1.1\r\nHost: [::1]:80\r\nConnection: Keep-Alive\r\n\r\n",
	"GET /a?b=%2F%zz&c[]=\"{}|<>^`\\?? HTTP/1.1\r\nhost:a\r\nX-Empty:\r\nx_under: b \t\r\n\r\n",
	"GET /a HTTP/1.1\r\nAccept: text/html, */*;q=0.8\r\nCookie: a=b; c=\"d\"\r\nACCEPT-LANGUAGE: de\r\nHost: a\r\nX: :\t:\r\n\r\n",
	"GET /many HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X-", 9) + "A: 1\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\nI: 8\r\nJ: 9\r\nK: 10\r\nL: 11\r\nM: 12\r\nN: 13\r\nO: 14\r\nP: 15\r\nQ: 16\r\nR: 17\r\n\r\n",
}

// otherHeads are those that are left to net/http, whatever it makes of them.
var otherHeads = []string{
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
	"get / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GETS / HTTP/1.1\r\nHost: a\r\n\r\n",
	"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%41 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a;b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a? HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 5\r\n\r\nhello",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Request-Id\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTe: trailers\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nA: 2\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: \x00\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: b\x7f\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: \xff\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n",
	"GET / HTTP/1.1\r\nHost: a\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
	"GET \r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

// checkSimple checks that net/http reads a simple request in the same way, and that no
// part of one is taken for anything but a part.
func checkSimple(t *testing.T, text string) (what verdict) {
	t.Helper()
	in := newIncoming(context.Background())
	length, what := readSimple([]byte(text), in)
	if what != isSimple {
		return what
	}
	from := bufio.NewReaderSize(strings.NewReader(text), len(text)+1)
	want, err := http.ReadRequest(from)
	if err != nil {
		t.Fatalf("%q: net/http says %v", text, err)
	}
	rest, _ := io.ReadAll(from)
	if want.Body != http.NoBody || len(rest) != len(text)-length {
		t.Errorf("%q: net/http has %d bytes left, want %d", text, len(rest), len(text)-length)
	}
	got, want := in.WithContext(context.Background()), want.WithContext(context.Background())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q:\n%+v, net/http has\n%+v", text, got, want)
	}
	for i := range length {
		if n, what := readSimple([]byte(text[:i]), newIncoming(context.Background())); what != isPartial || n != 0 {
			t.Errorf("%q cut off at %d: %d bytes, verdict %d", text, i, n, what)
		}
	}
	return what
}

func TestSimpleRequests(t *testing.T) {
	for _, head := range simpleHeads {
		if what := checkSimple(t, head+"GET"); what != isSimple {
			t.Errorf("%q: verdict %d, want simple", head, what)
		}
	}
	for _, head := range otherHeads {
		if what := checkSimple(t, head); what != isOther {
			t.Errorf("%q: verdict %d, want other", head, what)
		}
	}
}

func FuzzSimple(f *testing.F) {
	for _, heads := range [][]string{simpleHeads, otherHeads} {
		for _, head := range heads {
			f.Add(head)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { checkSimple(t, text) })
}

// TestIncomingIsAsNew: of a request nothing is left in the next one.
func TestIncomingIsAsNew(t *testing.T) {
	in := newIncoming(context.Background())
	for i, head := range append(simpleHeads, simpleHeads...) {
		if _, what := readSimple([]byte(head), in); what != isSimple {
			t.Fatalf("%q: verdict %d", head, what)
		}
		want := newIncoming(context.Background())
		_, _ = readSimple([]byte(head), want)
		if got := in.WithContext(context.Background()); !reflect.DeepEqual(got, want.WithContext(context.Background())) {
			t.Errorf("%d: %+v, want %+v", i, got, want.Request)
		}
		in.Form, in.Pattern, in.RemoteAddr = map[string][]string{"a": nil}, "/", "somebody"
		in.Header["Added"] = []string{"by a handler"}
		in.SetPathValue("a", "b")
		in.again()
		if in.PathValue("a") != "" || in.Context() != &in.context {
			t.Errorf("%d: something is left", i)
		}
	}
}
