//go:build unix

package clients

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The pages say what they saw in the body of a request to /report of their own origin.
//
//go:embed testdata/*.html
var pages embed.FS

// site serves one page, in which API stands for another origin, and hands on what the page
// reports. That origin is a string, known when somebody opens the page.
func site(t *testing.T, page string, api *atomic.Value) (origin string, reports <-chan map[string]any) {
	text, err := pages.ReadFile("testdata/" + page)
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan map[string]any, 10)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report" {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, strings.ReplaceAll(string(text), "API", api.Load().(string)))
			return
		}
		var seen map[string]any
		if err := json.NewDecoder(r.Body).Decode(&seen); err != nil {
			t.Errorf("a report: %v", err)
		}
		all <- seen
	}))
	return s.URL, all
}

// browse opens a page in a headless browser, which ends with the test, and returns what it
// reports.
func browse(t *testing.T, url string, reports <-chan map[string]any) map[string]any {
	t.Helper()
	path := tool(t, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--no-proxy-server", "--no-first-run",
		"--remote-debugging-port=0", // or it would end when the page is loaded
		"--user-data-dir="+t.TempDir(), url)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helpers end with it
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second // for helpers that hold its output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	select {
	case seen := <-reports:
		return seen
	case <-ended:
		t.Fatalf("the browser ended: %s", said.String())
	case <-within(t).Done():
		t.Fatalf("the page says nothing; the browser says %s", said.String())
	}
	return nil
}

// wantReport compares what a page saw.
func wantReport(t *testing.T, seen, want map[string]any) {
	t.Helper()
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("the page saw %v, want %v", seen, want)
	}
}

// TestRJ07BrowserReadsRefusals is RJ-07 and RJ-08 in a browser: a page of another origin asks
// for something that needs a preflight, which passes the full gate, and reads the refusal
// with its Retry-After. Of a gate that names no origins it sees that something failed.
func TestRJ07BrowserReadsRefusals(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions {
			t.Errorf("%s %s got through", r.Method, r.URL)
		}
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Allow-Headers", "content-type, x-shop")
		w.Header().Set("Access-Control-Allow-Methods", "PUT")
	}))
	var api atomic.Value
	origin, reports := site(t, "cors.html", &api)
	p := start(t, fmt.Sprintf(`
upstream: %s
gates:
  full: {max_in_flight: closed, refuse: {retry_after: 7s, cors: {origins: ["%s"]}}}
  mute: {max_in_flight: closed}
routes:
  - {match: /, gate: full}
  - {match: /mute/, gate: mute}
`, upstream.URL, origin))
	api.Store("http://" + p.data)
	wantReport(t, browse(t, origin, reports), map[string]any{
		"refused": map[string]any{"status": 503., "retryAfter": "7", "reason": "rejected_busy", "gate": "full"},
		"mute":    map[string]any{"error": "TypeError"},
	})
	if st := p.stats("full"); st.RejectedBusy != 1 {
		t.Errorf("%d refusals, want 1: the preflight is none", st.RejectedBusy)
	}
}

// TestBrowserReadsEvents: each event reaches the page before the next is made, and the stream
// holds a slot until the page closes it; a second one is refused, and the page can tell.
func TestBrowserReadsEvents(t *testing.T) {
	const events = 5
	seen := make(chan struct{}, events)
	var streams atomic.Int64
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.URL.Path == "/seen" {
			seen <- struct{}{}
			return
		}
		streams.Add(1)
		defer streams.Add(-1)
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", i, i)
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
		<-r.Context().Done()
	}))
	p := start(t, fmt.Sprintf(`
upstream: %s
gates:
  pages: {max_in_flight: 4, streams: events}
  events: {max_in_flight: 1, refuse: {cors: {origins: ['*']}}}
routes:
  - {match: /, gate: pages}
`, upstream.URL))
	var api atomic.Value
	api.Store("http://" + p.data)
	origin, reports := site(t, "events.html", &api)
	wantReport(t, browse(t, origin, reports), map[string]any{
		"events": []any{"event 0", "event 1", "event 2", "event 3", "event 4"}, "second": "closed",
	})
	p.inUse("events", 0)
	eventually(t, "the upstream is rid of it", func() bool { return streams.Load() == 0 })
	if st := p.stats("events"); st.Accepted != 1 || st.RejectedBusy != 1 {
		t.Errorf("%+v", st)
	}
}
