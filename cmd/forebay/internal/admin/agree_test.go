package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/admin"
	"example.com/forebay/cmd/forebay/internal/proxy"
	"example.com/forebay/cmd/forebay/internal/story"
	"example.com/forebay/cmd/forebay/internal/telemetry"
	"example.com/forebay/cmd/forebay/internal/verdict"
	"example.com/forebay/internal/feed"
)

// bare is a program of one gate that nobody administers.
type bare struct {
	gate *forebay.Gate
	book *story.Book
}

func (b bare) Gates() []*forebay.Gate                                   { return []*forebay.Gate{b.gate} }
func (bare) Reload(context.Context) error                               { return nil }
func (bare) Drain()                                                     {}
func (bare) Resume()                                                    {}
func (bare) Draining() bool                                             { return false }
func (bare) Away(string) string                                         { return "" }
func (bare) Spool() proxy.SpoolStats                                    { return proxy.SpoolStats{} }
func (bare) Info() admin.Info                                           { return admin.Info{} }
func (bare) Intake() forebay.IntakeStats                                { return forebay.IntakeStats{} }
func (bare) SetOverride(string, int, time.Duration, admin.Reason) error { return nil }
func (bare) ClearOverride(string, admin.Reason) error                   { return nil }
func (bare) Seen() *verdict.Recorder                                    { return verdict.NewRecorder() }
func (bare) Overrides() []admin.Override                                { return nil }
func (b bare) Stories() *story.Book                                     { return b.book }
func (bare) Auto(*forebay.Gate) *admin.Auto                             { return nil }

// away is a cluster whose store is never there.
type away struct{ gate feed.Gate }

func (a *away) Attach(g feed.Gate) (feed.Supplier, error) { a.gate = g; return a, nil }
func (*away) Poke()                                       {}
func (*away) SetLimit(int, time.Duration)                 {}
func (*away) Configured(int)                              {}
func (*away) Stats() feed.Stats                           { return feed.Stats{} }

// TestTM04: every decision that exists is produced, and the log, the metrics and the
// admin port tell the same story with the same words.
func TestTM04_LogMetricAndAdminAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "forebay.log")
		log, err := telemetry.Open(telemetry.Options{To: file, Decisions: telemetry.DecisionsAll})
		if err != nil {
			t.Fatal(err)
		}
		metrics := telemetry.NewMetrics(log)
		book := story.NewBook()
		observers := []forebay.Observer{log.Observer(), metrics.Gates, book}
		var store away
		g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 2, MaxWait: 100 * time.Millisecond, MaxWaiting: 2, Track: true, Observers: observers, Cluster: &store,
			PerCaller: forebay.PerCaller{MaxInFlight: 1}, Lanes: []forebay.Lane{{Name: "top", Rank: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		store.gate.Alone(feed.Alone{Slots: 2})
		if err := metrics.Gates.Watch(g); err != nil {
			t.Fatal(err)
		}
		want := produceEveryDecision(t, g, &store, observers)
		h := admin.Handler(bare{g, book}, metrics.Handler(), admin.Options{Loopback: true})

		logged, leftOut := readLog(t, log, file)
		if leftOut > 0 || !maps.Equal(logged, want) {
			t.Errorf("log     %v and %d left out\nwant    %v", logged, leftOut, want)
		}
		if got := readMetric(get(t, h, "/metrics")); !maps.Equal(got, want) {
			t.Errorf("metrics %v\nwant    %v", got, want)
		}
		var stats map[string]any
		if err := json.Unmarshal([]byte(get(t, h, "/stats/reports")), &stats); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for d, n := range want {
			switch {
			case d == "exempt": // passes no gate
			case fmt.Sprint(stats[d]) != strconv.Itoa(n):
				t.Errorf("/stats/reports has %s %v, want %d", d, stats[d], n)
			case strings.HasPrefix(d, "rejected_"):
				sum += n
			}
		}
		explained := map[string]int{}
		for _, s := range append(book.Find("id"), book.Find("wrapped")...) {
			explained[s.Decision]++
			if s.Why == "" || s.Decision == "exempt" != (s.Gate == "") {
				t.Errorf("a story without a reason, or of another gate: %+v", s)
			}
		}
		if !maps.Equal(explained, want) {
			t.Errorf("stories %v\nwant    %v", explained, want)
		}
		if st := g.Stats(); int(st.Rejected()) != sum || st.Granted != st.Released {
			t.Errorf("refusals %d, sum of reasons %d; granted %d, released %d", st.Rejected(), sum, st.Granted, st.Released)
		}
	})
}

// produceEveryDecision runs in a bubble. It returns how often each was made.
func produceEveryDecision(t *testing.T, g *forebay.Gate, store *away, observers []forebay.Observer) map[string]int {
	t.Helper()
	want, callers := map[string]int{}, 0
	call := forebay.Call{Route: "GET /reports/", RequestID: "id", RemoteIP: "192.0.2.77"}
	acquire := func(ctx context.Context, call forebay.Call, d forebay.Decision) forebay.Lease {
		want[d.String()]++
		if callers++; d != forebay.RejectedCaller {
			call.Caller = fmt.Sprint(callers)
		}
		lease, err := g.Acquire(ctx, call)
		if (err == nil) != (d == forebay.Accepted) {
			t.Errorf("wanted %v, got %v", d, err)
		}
		return lease
	}
	ctx := context.Background()
	first := acquire(ctx, call, forebay.Accepted)
	twice := call
	twice.Caller = fmt.Sprint(callers)
	acquire(ctx, twice, forebay.RejectedCaller)
	first.Release()
	a, b := acquire(ctx, call, forebay.Accepted), acquire(ctx, call, forebay.Accepted)
	above, goAway := context.WithCancel(ctx)
	top := call
	top.Lane = "top"
	go acquire(above, top, forebay.Canceled)
	synctest.Wait()
	go acquire(ctx, call, forebay.RejectedShed)
	synctest.Wait()
	go acquire(above, top, forebay.Canceled)
	synctest.Wait()
	goAway()
	synctest.Wait()
	leaving, leave := context.WithCancel(ctx)
	hurried, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	go acquire(leaving, call, forebay.Canceled)
	synctest.Wait()
	go acquire(hurried, call, forebay.RejectedDeadline)
	synctest.Wait()
	for range 3 {
		acquire(ctx, call, forebay.RejectedBusy)
	}
	leave()
	time.Sleep(60 * time.Millisecond)
	acquire(ctx, call, forebay.RejectedTimeout)
	big := call
	big.Cost = 3
	acquire(ctx, big, forebay.RejectedTooLarge)
	a.Release()
	b.Release()
	if err := g.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	acquire(ctx, call, forebay.RejectedDraining)
	g.Resume()
	store.gate.Alone(feed.Alone{Refuse: true})
	acquire(ctx, call, forebay.RejectedStore)
	store.gate.Alone(feed.Alone{Slots: 2})

	groups, err := forebay.NewGroups(forebay.GroupsConfig{Observers: observers, Routes: []forebay.Route{
		{Match: "/health", Exempt: true}, {Match: "/", Gates: []*forebay.Gate{g}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	wrapped := groups.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for path, d := range map[string]forebay.Decision{"/health": forebay.Exempted, "/reports/7": forebay.Accepted} {
		want[d.String()]++
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("X-Request-Id", "wrapped")
		wrapped.ServeHTTP(httptest.NewRecorder(), r)
	}
	for d := forebay.Accepted; d <= forebay.Canceled; d++ {
		if want[d.String()] == 0 {
			t.Errorf("%v was not produced", d)
		}
	}
	return want
}

// readLog closes the log and counts the decisions in it.
func readLog(t *testing.T, log *telemetry.Log, file string) (decided map[string]int, leftOut int) {
	t.Helper()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decided = map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Decision string `json:"decision"`
			LeftOut  int    `json:"left_out"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		leftOut += line.LeftOut
		if line.Decision != "" {
			decided[line.Decision]++
		}
	}
	return decided, leftOut
}

// readMetric sums forebay_decisions_total by decision, without those that are 0.
func readMetric(scrape string) map[string]int {
	sums := map[string]int{}
	for line := range strings.Lines(scrape) {
		if !strings.HasPrefix(line, "forebay_decisions_total{") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), " ")
		_, rest, _ := strings.Cut(line, `decision="`)
		decision, _, _ := strings.Cut(rest, `"`)
		if n, _ := strconv.Atoi(fields[len(fields)-1]); n > 0 {
			sums[decision] += n
		}
	}
	return sums
}

func get(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// A flood of everything that the admin port serves leaves the gates as they are: the
// calls beside it all get through, and nothing of the flood is counted.
func TestFloodedAdminTouchesNoGate(t *testing.T) {
	log, err := telemetry.Open(telemetry.Options{To: filepath.Join(t.TempDir(), "forebay.log")})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	metrics := telemetry.NewMetrics(log)
	book := story.NewBook()
	g, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 2, Track: true, Observers: []forebay.Observer{log.Observer(), metrics.Gates, book}})
	if err != nil {
		t.Fatal(err)
	}
	if err := metrics.Gates.Watch(g); err != nil {
		t.Fatal(err)
	}
	h := admin.Handler(bare{g, book}, metrics.Handler(), admin.Options{Loopback: true})
	paths := []string{"/", "/health", "/ready", "/metrics", "/stats", "/stats/reports", "/holders", "/gates", "/rejections"}
	const flooders, each = 16, 100
	done := make(chan int, flooders)
	for range flooders {
		go func() {
			bad := 0
			for i := range each {
				r := httptest.NewRequest("GET", paths[i%len(paths)], nil)
				r.Host = "127.0.0.1:8081"
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 {
					bad++
				}
			}
			done <- bad
		}()
	}
	calls := 0
	for finished := 0; finished < flooders; {
		select {
		case bad := <-done:
			finished++
			if bad > 0 {
				t.Errorf("%d answers of the flood were no good", bad)
			}
		default:
			lease, err := g.Acquire(t.Context(), forebay.Call{Route: "GET /reports/"})
			if err != nil {
				t.Fatalf("call %d: %v", calls, err)
			}
			lease.Release()
			calls++
		}
	}
	if st := g.Stats(); int(st.Decisions()) != calls || st.Calls != 0 || st.Granted != st.Released {
		t.Errorf("%d calls, but the gate says %+v", calls, st)
	}
	if calls < 100 {
		t.Errorf("only %d calls got through beside the flood", calls)
	}
	t.Logf("%d calls beside %d admin requests", calls, flooders*each)
}
