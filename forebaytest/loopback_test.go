package forebaytest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestLoopback speaks both protocols by clients, by bytes and by frames.
func TestLoopback(t *testing.T) {
	CheckLeaks(t)
	gone := make(chan struct{}, 1)
	s := NewLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/wait":
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
			panic(http.ErrAbortHandler)
		}
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, r.Proto)
	}))
	for want, client := range map[string]*http.Client{"HTTP/1.1": s.Client(), "HTTP/2.0": s.ClientHTTP2()} {
		res, err := client.Get(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != want {
			t.Errorf("%q, want %q", body, want)
		}
	}
	raw := s.Dial()
	raw.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nPOST /busy HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi")
	if a := raw.Answer("HEAD"); a.StatusCode != 200 || a.Text != "" || a.Err != nil {
		t.Errorf("HEAD: %+v", a)
	}
	if a := raw.Answer("POST"); a.StatusCode != 503 || a.Text != "hiHTTP/1.1" {
		t.Errorf("POST: %+v", a)
	}
	raw.Send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
	if line := raw.Line(); line != "HTTP/1.1 200 OK" {
		t.Errorf("%q", line)
	}
	raw.Reset()
	<-gone
	half := s.Dial()
	half.Send("GET / HTTP/1.0\r\n\r\n")
	half.CloseWrite()
	if rest := half.Rest(); half.Buffered() != 0 || !strings.HasPrefix(rest, "HTTP/1.0 200 OK\r\n") && rest != "" { // the half may count as gone
		t.Errorf("%q", rest)
	}
	frames(t, s)
	<-gone
	if text := s.ErrorLog(); text != "" {
		t.Errorf("the server complains: %s", text)
	}
}

func frames(t *testing.T, s *Loopback) {
	f := s.DialHTTP2()
	f.Open(1, false, "POST", "/busy", "x-long", strings.Repeat("x", 500))
	f.Data(1, true, "hi")
	status, body := 0, ""
	for frame, ok := f.Next(); ok; frame, ok = f.Next() {
		status = max(status, frame.Status)
		if frame.Type == DataFrame {
			body += string(frame.Payload)
		}
		if frame.Stream != 1 || frame.Type != DataFrame && frame.Type != HeadersFrame {
			t.Errorf("%+v", frame)
		}
		if frame.Ends {
			break
		}
	}
	if status != 503 || body != "hiHTTP/2.0" {
		t.Errorf("%d %q", status, body)
	}
	f.Open(3, true, "GET", "/wait")
	if frame, _ := f.Next(); frame.Status != 200 {
		t.Errorf("%+v", frame)
	}
	f.ResetStream(3, 8)
	f.Open(5, true, "GET", "/", "some", "x")
	f.Data(5, false, "") // after its end: an error
	for frame, ok := f.Next(); ok; frame, ok = f.Next() {
		if frame.Type == ResetFrame && frame.Stream == 5 && frame.Code == 0 {
			t.Errorf("%+v", frame)
		}
		if frame.Type == ResetFrame || frame.Type == GoAwayFrame {
			return
		}
	}
}
