package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// follower reads events.
type follower struct {
	*http.Response
	lines *bufio.Scanner
}

// follow asks for events; the test ends it.
func follow(t *testing.T, s *httptest.Server, query string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	f := &follower{res, bufio.NewScanner(res.Body)}
	f.lines.Buffer(nil, 1<<20)
	return f
}

// next returns the next event; none: the stream has ended.
func (f *follower) next() (name, data string) {
	for f.lines.Scan() {
		switch line := f.lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimPrefix(line, "data: ")
		case line == "":
			return name, data
		}
	}
	return "", ""
}

// streaming is an admin port whose events come fast.
func streaming(t *testing.T, each, life time.Duration) (*admin, *httptest.Server) {
	t.Helper()
	a := Handler(program(t, "reports"), metricsHandler(), local).(*admin)
	a.feed.each, a.feed.life = each, life
	s := httptest.NewServer(a)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return a, s
}

func TestEvents(t *testing.T) {
	a, s := streaming(t, time.Millisecond, time.Hour)
	f := follow(t, s, "")
	if f.StatusCode != 200 || f.Header.Get("Content-Type") != "text/event-stream" || f.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", f.StatusCode, f.Header)
	}
	for seen := 0; seen < 3; {
		name, data := f.next()
		var stats programStats
		if err := json.Unmarshal([]byte(data), &stats); err != nil || name != "stats" || len(stats.Gates) != 1 || stats.Gates[0].Name != "reports" {
			t.Fatalf("event %q: %v %s", name, err, data)
		}
		if seen == 0 {
			_ = a.program.SetOverride("reports", 1, 0, Reason{})
			seen++
		} else if len(stats.Overrides) == 1 { // what has changed comes by itself
			seen++
		}
	}
	page := follow(t, s, "?as=page")
	name, data := page.next()
	var main string
	if err := json.Unmarshal([]byte(data), &main); err != nil || name != "page" || !strings.Contains(main, `<a href="/stats/reports">reports</a>`) || strings.Contains(main, "<script") {
		t.Errorf("event %q: %v %s", name, err, data)
	}
	if bad := follow(t, s, "?as=all"); bad.StatusCode != 400 {
		t.Errorf("as=all: %d", bad.StatusCode)
	}
	if w := ask(a, "HEAD /events", ""); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

// TestEventsAreBounded: so many follow and no more, and room comes back.
func TestEventsAreBounded(t *testing.T) {
	a, s := streaming(t, time.Millisecond, time.Hour)
	var last *follower
	for range maxStreams {
		last = follow(t, s, "")
		if last.StatusCode != 200 {
			t.Fatalf("%d", last.StatusCode)
		}
	}
	if more := follow(t, s, ""); more.StatusCode != 503 || more.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %v", more.StatusCode, more.Header)
	}
	last.Body.Close()
	for len(a.feed.room) == maxStreams { // the server notices when it writes
		time.Sleep(time.Millisecond)
	}
	if again := follow(t, s, ""); again.StatusCode != 200 {
		t.Errorf("after one has left: %d", again.StatusCode)
	}
}

// TestEventsEnd when the stream is old: the client comes again, with the token of the day.
func TestEventsEnd(t *testing.T) {
	a, s := streaming(t, time.Hour, time.Millisecond)
	f := follow(t, s, "")
	if name, _ := f.next(); name != "stats" {
		t.Errorf("the first event is %q", name)
	}
	if name, data := f.next(); name != "" {
		t.Errorf("after its life: %q %s", name, data)
	}
	if n := len(a.feed.room); n != 0 {
		t.Errorf("%d still have room", n)
	}
}

// TestEventsAreShared: what is sent is made once for all who follow.
func TestEventsAreShared(t *testing.T) {
	f := newFeed()
	made := 0
	makeOne := func() []byte { made++; return nil }
	now := time.Unix(1000, 0)
	for i := range 4 {
		f.at(now.Add(time.Duration(i)*time.Millisecond), "stats", makeOne)
	}
	if made != 1 {
		t.Errorf("made %d times for four who follow", made)
	}
	f.at(now.Add(f.each), "stats", makeOne)
	f.at(now.Add(f.each), "page", makeOne)
	if made != 3 {
		t.Errorf("made %d times, want once more a second, and for each kind", made)
	}
}
