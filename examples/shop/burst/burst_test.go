package burst

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func get(path string) func(*rand.Rand) Request {
	return func(*rand.Rand) Request { return Request{Path: path} }
}

// backend answers by path, and tells what it was asked.
func backend(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex // guards paths
	var paths []string
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/stuck", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(paths)
	}
}

func TestRunCountsEveryEnd(t *testing.T) {
	url, _ := backend(t)
	var told []Progress
	r, err := Run(t.Context(), Plan{
		URL: url, Duration: 600 * time.Millisecond, Deadline: 300 * time.Millisecond,
		Progress: func(p Progress) { told = append(told, p) },
		Classes: []Class{
			{Name: "fine", Rate: 100, Next: get("/x"), Deadline: time.Minute},
			{Name: "busy", Rate: 100, Next: get("/busy"), Deadline: time.Minute},
			{Name: "stuck", Rate: 50, Next: get("/stuck")},
			{Name: "broken", Rate: 50, Next: get("/broken"), Deadline: time.Minute},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{
		"fine": r.Class("fine").InTime, "busy": r.Class("busy").Refused,
		"stuck": r.Class("stuck").Late, "broken": r.Class("broken").Failed,
	} {
		if o := r.Class(name); n == 0 || n != o.Sent || o.Unsent != 0 {
			t.Errorf("%s: %d of %+v", name, n, o)
		}
	}
	if got := r.Class("stuck").Answers.P50; got != 300*time.Millisecond {
		t.Errorf("the median of calls that all gave up = %v, want the deadline", got)
	}
	if got := r.Class("broken").Failure; !strings.Contains(got, "503") {
		t.Errorf("Failure = %q, want one that names the status", got)
	}
	if r.Class("busy").Refusals.P50 == 0 || r.Class("fine").Answers.P99 < r.Class("fine").Answers.P50 {
		t.Errorf("quantiles: %+v", r)
	}
	last := told[len(told)-1]
	if len(told) < 3 || last.InFlight != 0 || last.Classes[0].InTime != r.Classes[0].InTime {
		t.Errorf("%d words of progress, the last %+v", len(told), last)
	}
}

func TestRefusedCallersComeBack(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 5 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	p := Plan{URL: server.URL, Duration: 500 * time.Millisecond, Deadline: time.Minute,
		Classes: []Class{{Name: "c", Rate: 60, Next: get("/")}}, HonourRetryAfter: true}
	begin := time.Now()
	r, err := Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	o := r.Class("c")
	if o.Refused != 5 || o.CameBack != 5 || o.CameBackInTime != 5 || o.InTime != o.Sent-5 {
		t.Errorf("%+v; want 5 refused that came back and were answered", o)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("they came back after %v; they were told a second", took)
	}
	calls.Store(0)
	p.HonourRetryAfter = false
	if r, err = Run(t.Context(), p); err != nil || r.Class("c").CameBack != 0 || r.Class("c").Refused != 5 {
		t.Errorf("%+v, %v; want nobody back", r, err)
	}
}

func TestNoMoreThanMaxOpen(t *testing.T) {
	url, _ := backend(t)
	r, err := Run(t.Context(), Plan{URL: url, Duration: 300 * time.Millisecond, Deadline: time.Second, MaxOpen: 3,
		Classes: []Class{{Name: "stuck", Rate: 100, Next: get("/stuck")}}})
	if o := r.Class("stuck"); err != nil || o.Sent != 3 || o.Late != 3 || o.Unsent == 0 {
		t.Errorf("%+v, %v; want 3 sent", o, err)
	}
}

func TestStoppedRun(t *testing.T) {
	url, _ := backend(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := Run(ctx, Plan{URL: url, Duration: time.Hour, Deadline: time.Hour,
		Classes:  []Class{{Name: "stuck", Rate: 100, Next: get("/stuck")}},
		Progress: func(Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || r.Class("stuck").Sent != 0 {
		t.Errorf("%+v, %v; want no call and the error of the context", r, err)
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	r, err := Run(t.Context(), Plan{URL: server.URL, Duration: 200 * time.Millisecond, Deadline: time.Minute,
		Classes: []Class{{Name: "c", Rate: 50, Next: get("/")}}})
	if o := r.Class("c"); err != nil || o.Failed == 0 || o.Failed != o.Sent || o.Failure == "" {
		t.Errorf("%+v, %v; want all failed", o, err)
	}
}

func TestPlanMistakesComeTogether(t *testing.T) {
	_, err := Run(t.Context(), Plan{URL: "localhost:80", Deadline: -1, MaxOpen: -1, Classes: []Class{{Name: "c", Deadline: -1}}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"URL", "rate", "Next", "Duration is", "Deadline is", "MaxOpen", "the deadline of"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want a word on %s", err, want)
		}
	}
}

func TestCapacity(t *testing.T) {
	url, asked := backend(t)
	n, err := Capacity(t.Context(), url, []Class{{Rate: 3, Next: get("/a")}, {Rate: 1, Next: get("/b")}}, 2, 200*time.Millisecond)
	paths := asked()
	if err != nil || n <= 0 || !slices.Contains(paths, "/a") || !slices.Contains(paths, "/b") {
		t.Errorf("%v a second, %v", n, err)
	}
	if _, err = Capacity(t.Context(), url, []Class{{Rate: 1, Next: get("/broken")}}, 2, time.Minute); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("err = %v; a backend that fails has no capacity", err)
	}
}
