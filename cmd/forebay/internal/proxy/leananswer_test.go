package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// kindsOfAnswer are handlers that do what a handler can do to an answer.
func kindsOfAnswer(t *testing.T) map[string]http.HandlerFunc {
	long := strings.Repeat("0123456789", 1000)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	flush := func(w http.ResponseWriter) {
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	}
	write := func(w http.ResponseWriter, text string, want error) {
		if n, err := io.WriteString(w, text); !errors.Is(err, want) || err == nil && n != len(text) {
			t.Errorf("%d bytes written, %v; want %v", n, err, want)
		}
	}
	return map[string]http.HandlerFunc{
		"nothing":  func(http.ResponseWriter, *http.Request) {},
		"empty":    func(w http.ResponseWriter, _ *http.Request) { write(w, "", nil) },
		"short":    func(w http.ResponseWriter, _ *http.Request) { write(w, "<p>short", nil) },
		"2048":     func(w http.ResponseWriter, _ *http.Request) { write(w, long[:2048], nil) },
		"2049":     func(w http.ResponseWriter, _ *http.Request) { write(w, long[:2049], nil) },
		"long":     func(w http.ResponseWriter, _ *http.Request) { write(w, long, nil) },
		"statuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(500) },
		"unknown":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) },
		"pieces": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 300 {
				write(w, strings.Repeat("x", i), nil)
			}
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			flush(w)
			write(w, "a", nil)
			flush(w)
			write(w, "b", nil)
		},
		"flushed late": func(w http.ResponseWriter, _ *http.Request) { write(w, "a", nil); flush(w) },
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			write(w, "four", nil)
		},
		"length, long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(long)))
			write(w, long[:5000], nil)
			write(w, long[5000:], nil)
		},
		"length, too little": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			write(w, "four", nil)
		},
		"length, too much": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			write(w, "four", nil)
			write(w, "five", http.ErrContentLength)
		},
		"no content": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			write(w, "a", http.ErrBodyNotAllowed)
		},
		"not modified": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(304)
		},
		"no content, with a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4")
			w.WriteHeader(204)
		},
		"hints": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</a>")
			w.Header().Set("Content-Length", "1")
			w.WriteHeader(103)
			w.Header().Set("Link", "</b>")
			w.WriteHeader(102)
			write(w, "x", nil)
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h["B"] = []string{"2", " 3 \t", "a\r\nInjected: b", "", "\n"}
			h["a"] = []string{"1"}
			h["Not a name"], h["Null"], h["Date"], h["Content-Type"] = []string{"x"}, nil, []string{"today"}, nil
			h["Content-Encoding"] = []string{"br"}
			write(w, "x", nil)
			h.Set("Late", "x")
		},
		"coded, no type": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			write(w, "x", nil)
		},
		"coded, but empty": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "")
			write(w, "x", nil)
		},
		"late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("A", "1")
			w.WriteHeader(200)
			w.Header().Set("A", "2")
			w.Header().Set("B", "2")
			write(w, "x", nil)
		},
		"close": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			write(w, "x", nil)
		},
		"close and more": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close, x")
			write(w, "x", nil)
		},
		"connection": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "x"); write(w, "x", nil) },
		"trailers, announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "a, B")
			w.Header().Add("Trailer", "C,,")
			write(w, "x", nil)
			w.Header().Set("A", "1")
			w.Header().Add("C", "3")
			w.Header().Add("C", "4")
			w.Header().Add("D", "5")
		},
		"trailers, marked": func(w http.ResponseWriter, _ *http.Request) {
			write(w, "x", nil)
			flush(w)
			w.Header().Set(http.TrailerPrefix+"A", "1")
		},
		"trailers, marked early": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"A", "1")
			write(w, "x", nil)
		},
		"trailers, too late": func(w http.ResponseWriter, _ *http.Request) {
			write(w, "x", nil)
			w.Header().Set(http.TrailerPrefix+"A", "1")
		},
		"aborted early": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"aborted": func(w http.ResponseWriter, _ *http.Request) {
			write(w, long[:3000], nil)
			panic(http.ErrAbortHandler)
		},
		"copied": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader(long)) },
		"copied, short": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, struct{ io.Reader }{strings.NewReader("x")})
		},
		"file": func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) },
		"file, with a length": func(w http.ResponseWriter, _ *http.Request) {
			f, err := os.Open(file)
			if err != nil {
				panic(err)
			}
			defer f.Close()
			w.Header().Set("Content-Length", strconv.Itoa(len(long)+1))
			w.Header().Set("Content-Type", "text/plain")
			write(w, "x", nil)
			if n, err := w.(io.ReaderFrom).ReadFrom(f); n != int64(len(long)) || err != nil {
				t.Errorf("%d bytes read from a file, %v", n, err)
			}
		},
		"error": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"duplex": func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			err := errors.Join(c.EnableFullDuplex(), c.SetReadDeadline(longAgo), c.SetReadDeadline(farAway), c.SetWriteDeadline(farAway))
			_, addressed := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			if _, served := r.Context().Value(http.ServerContextKey).(*http.Server); err != nil || !addressed || !served {
				t.Errorf("%v; address %t, server %t", err, addressed, served)
			}
			write(w, r.RemoteAddr[:strings.LastIndexByte(r.RemoteAddr, ':')], nil)
		},
	}
}

var farAway = longAgo.AddDate(1000, 0, 0)

// TestSameAnswers: of the lean server a client gets what net/http would send, byte for
// byte, and the connection goes on or ends in the same way.
func TestSameAnswers(t *testing.T) {
	noLeaks(t)
	all := kindsOfAnswer(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all[strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/"), "_", " ")](w, r)
	})
	ours, theirs := serveLean(t, h), serveTheirs(t, h)
	for name := range all {
		path := strings.ReplaceAll(name, " ", "_")
		for _, requests := range []string{
			"GET /PATH HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"GET /PATH HTTP/1.1\r\nHost: a\r\n\r\nGET /PATH HTTP/1.1\r\nHost: a\r\n\r\nHEAD /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
			"HEAD /PATH HTTP/1.1\r\nHost: a\r\n\r\nGET /short HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		} {
			requests = strings.ReplaceAll(requests, "PATH", path)
			got, want := exchangeRaw(t, ours, requests, len(requests)), exchangeRaw(t, theirs, requests, len(requests))
			if got != want {
				t.Errorf("%q gets\n%.400q, from net/http\n%.400q", requests, got, want)
			}
		}
	}
}

// TestSameConnections: whatever comes after simple requests, in whatever pieces, net/http
// reads.
func TestSameConnections(t *testing.T) {
	noLeaks(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+string(body))
	})
	ours, theirs := serveLean(t, h), serveTheirs(t, h)
	const (
		simple = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
		upload = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
		last   = "GET /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	)
	cases := []string{
		last, simple + last, simple + upload + last, upload + simple + last, simple + simple + upload + simple + upload + last,
		simple + "GET /%41 HTTP/1.1\nHost: a\nConnection: close\n\n",
		"GET /a HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n" + last,
		simple + "GET /a HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 5000) + "\r\n\r\n" + last,
	}
	for _, head := range otherHeads {
		if !strings.HasPrefix(head, "PRI") && !strings.Contains(head, "Expect") {
			cases = append(cases, simple+head+last, head+simple+last)
		}
	}
	for _, stream := range cases {
		want := exchangeRaw(t, theirs, stream, len(stream))
		for _, piece := range []int{len(stream), 7, 1} {
			if piece < len(stream)/300 {
				continue
			}
			if got := exchangeRaw(t, ours, stream, piece); got != want {
				t.Errorf("%.300q in pieces of %d gets\n%q, from net/http\n%q", stream, piece, got, want)
			}
		}
	}
}

func serveLean(t *testing.T, h http.Handler) string {
	srv := Server(h, Timeouts{})
	return serveOn(t, srv, NewLeanServer(srv).Listener(listen(t)))
}

func serveTheirs(t *testing.T, h http.Handler) string {
	return serveOn(t, Server(h, Timeouts{}), listen(t))
}

var dateLine = regexp.MustCompile(`Date: [^\r]+ GMT`)

// exchangeRaw sends bytes, and returns what comes until the end. It reads beside, and
// closes its half when the requests are out, so that no answer is lost with a reset.
func exchangeRaw(t *testing.T, addr, requests string, piece int) string {
	t.Helper()
	c, err := guarded(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for rest := []byte(requests); len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if _, err := c.Write(rest[:min(piece, len(rest))]); err != nil {
				return // the server has ended it
			}
		}
	}()
	got, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
	<-sent
	return string(bytes.TrimSpace(dateLine.ReplaceAll(got, []byte("Date: d"))))
}
