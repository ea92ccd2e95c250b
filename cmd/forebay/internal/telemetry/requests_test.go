package telemetry

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// series returns the histograms of requests by "METHOD STATUS ROUTE".
func series(t *testing.T, m *Metrics) map[string]*dto.Histogram {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.Histogram{}
	for _, f := range families {
		if f.GetName() != "http_server_request_duration_seconds" {
			continue
		}
		for _, s := range f.Metric {
			var values []string
			for _, l := range s.Label { // in the order of names: method, status, route
				values = append(values, l.GetValue())
			}
			all[strings.Join(values, " ")] = s.Histogram
		}
	}
	return all
}

func reports(*http.Request) string { return "GET /reports/" }

func TestRequestsCountWhatWasAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		method  string
		handler http.HandlerFunc
		want    string
	}{
		"nothing written": {"GET", func(http.ResponseWriter, *http.Request) {}, "GET 200 GET /reports/"},
		"written only":    {"POST", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }, "POST 200 GET /reports/"},
		"refused":         {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "GET 503 GET /reports/"},
		"early hints": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(404)
		}, "GET 404 GET /reports/"},
		"twice": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(201)
			w.WriteHeader(500)
		}, "GET 201 GET /reports/"},
		"flushed":        {"GET", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }, "GET 200 GET /reports/"},
		"made-up method": {"FOO1", func(http.ResponseWriter, *http.Request) {}, "_OTHER 200 GET /reports/"},
		"lower case":     {"get", func(http.ResponseWriter, *http.Request) {}, "_OTHER 200 GET /reports/"},
		"odd status":     {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(777) }, "GET _OTHER GET /reports/"},
		"panic":          {"GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GET 500 GET /reports/"},
		"panic in the body": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			panic(http.ErrAbortHandler)
		}, "GET 200 GET /reports/"},
		"caller left": {"GET", func(_ http.ResponseWriter, r *http.Request) {
			r.Context().Value(leave{}).(context.CancelFunc)()
			panic(http.ErrAbortHandler)
		}, "GET 499 GET /reports/"},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := open(t, Options{})
			m := NewMetrics(l)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := httptest.NewRequest(c.method, "/reports/7", nil).WithContext(context.WithValue(ctx, leave{}, cancel))
			func() {
				defer func() { _ = recover() }()
				m.Requests.Wrap(c.handler, reports).ServeHTTP(httptest.NewRecorder(), r)
			}()
			got := series(t, m)
			if len(got) != 1 || got[c.want].GetSampleCount() != 1 {
				t.Errorf("counted %v, want %s", got, c.want)
			}
		})
	}
}

type leave struct{}

func TestRequestsMeasureWaitingAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t, Options{})
		m := NewMetrics(l)
		slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(300 * time.Millisecond) })
		m.Requests.Wrap(slow, reports).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/reports/7", nil))
		if got := series(t, m)["GET 200 GET /reports/"].GetSampleSum(); got != 0.3 {
			t.Errorf("took %v s, want 0.3", got)
		}
		mustClose(t, l)
	})
}

// The writer stays what the server's is: flushing, taking over the connection and
// deadlines work behind the recorder, over real connections.
func TestRecorderHidesNothingOfTheWriter(t *testing.T) {
	l, _ := open(t, Options{})
	m := NewMetrics(l)
	s := httptest.NewServer(m.Requests.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Errorf("EnableFullDuplex: %v", err)
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		word, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(word)
		_ = rw.Flush()
	}), reports))
	defer s.Close()
	req, _ := http.NewRequest("GET", s.URL, nil)
	req.Header.Set("Connection", "upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("answer %v, %v", resp, err)
	}
	tunnel := resp.Body.(io.ReadWriteCloser)
	_, _ = io.WriteString(tunnel, "hello\n")
	if word, err := bufio.NewReader(tunnel).ReadString('\n'); word != "hello\n" {
		t.Errorf("tunnel says %q, %v", word, err)
	}
	_ = tunnel.Close()
	waitFor(t, func() bool { return series(t, m)["GET 101 GET /reports/"].GetSampleCount() == 1 })
}

// takeover is a writer whose connection can be taken over.
type takeover struct{ *httptest.ResponseRecorder }

func (takeover) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

// A tunnel that is open for a day is no request that took a day.
func TestUpgradeCountsUntilTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(t, Options{})
		m := NewMetrics(l)
		tunnel := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(200 * time.Millisecond)
			_, _, _ = w.(http.Hijacker).Hijack()
			time.Sleep(24 * time.Hour)
		})
		m.Requests.Wrap(tunnel, reports).ServeHTTP(takeover{httptest.NewRecorder()}, httptest.NewRequest("GET", "/reports/7", nil))
		if got := series(t, m)["GET 101 GET /reports/"].GetSampleSum(); got != 0.2 {
			t.Errorf("took %v s, want 0.2", got)
		}
		mustClose(t, l)
	})
}

// TestTM01: what clients can make up makes no series.
func TestTM01_MadeUpRequestsMakeNoSeries(t *testing.T) {
	l, _ := open(t, Options{})
	m := NewMetrics(l)
	h := m.Requests.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }), func(*http.Request) string { return "" })
	random := rand.New(rand.NewPCG(1, 2))
	w := httptest.NewRecorder()
	for range 100_000 {
		r := httptest.NewRequest(fmt.Sprintf("FOO%d", random.Uint32()), fmt.Sprintf("/x/%d?y=%d", random.Uint64(), random.Uint64()), nil)
		r.Host = fmt.Sprintf("h%d.example", random.Uint32())
		h.ServeHTTP(w, r)
	}
	if got := series(t, m); len(got) != 1 || got["_OTHER 404 "].GetSampleCount() != 100_000 {
		t.Errorf("%d series", len(got))
	}
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 || answer.Body.Len() > 64<<10 {
		t.Errorf("a scrape has %d bytes, status %d", answer.Body.Len(), answer.Code)
	}
}
