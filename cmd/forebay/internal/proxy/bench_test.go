package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// canned is a transport without a network: what is measured is ours.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"0"}}, Body: http.NoBody,
	}, nil
}

type nowhere struct{ h http.Header }

func (n nowhere) Header() http.Header       { return n.h }
func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) WriteHeader(int)             {}

func benchmark(b *testing.B, h http.Handler) {
	r := httptest.NewRequest("GET", "/reports/7?a=1", nil)
	r.RemoteAddr = "203.0.113.9:5000"
	r.Header = http.Header{"Accept": {"*/*"}, "User-Agent": {"bench"}, "Cookie": {"a=b"}}
	w := nowhere{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}

func BenchmarkHandler(b *testing.B) {
	u, _ := url.Parse("http://127.0.0.1:8000")
	ours := New(Config{Upstream: u, Transport: TransportStandard})
	ours.reverse.Transport = canned{}
	plain := &httputil.ReverseProxy{
		Transport: canned{}, BufferPool: buffers{},
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u); r.SetXForwarded(); r.Out.Host = r.In.Host },
	}
	b.Run("ReverseProxy", func(b *testing.B) { benchmark(b, plain) })
	b.Run("proxy", func(b *testing.B) { benchmark(b, ours) })
	b.Run("Identify+proxy", func(b *testing.B) { benchmark(b, ours.Identify(ours)) })
	b.Run("Identify", func(b *testing.B) {
		benchmark(b, ours.Identify(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	})
}

// BenchmarkWire is the same over loopback sockets.
func BenchmarkWire(b *testing.B) {
	up := backend(b, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })
	u, _ := url.Parse(up)
	ours := New(Config{Upstream: u})
	b.Cleanup(ours.Close)
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(tr.CloseIdleConnections)
	plain := &httputil.ReverseProxy{
		Transport: tr, BufferPool: buffers{},
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u); r.SetXForwarded(); r.Out.Host = r.In.Host },
	}
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{"ReverseProxy", plain}, {"Identify+proxy", ours.Identify(ours)}} {
		b.Run(c.name, func(b *testing.B) {
			addr := serve(b, Server(c.h, Timeouts{}))
			client := &http.Transport{}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			for b.Loop() {
				r, _ := http.NewRequest("GET", "http://"+addr+"/x?a=1", nil)
				res, err := client.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		})
	}
}
