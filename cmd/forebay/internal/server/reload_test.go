package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

const twoGates = `
gates:
  a: {max_in_flight: 5, max_wait: 60s, max_waiting: 10}
  b: {max_in_flight: %d}
routes:
  - {match: /, gate: a}
  - {match: /b/, gate: b}
`

// TestCF04ReloadKeepsUnchangedGates is CF-04: no reload gives anybody a fresh budget.
func TestCF04ReloadKeepsUnchangedGates(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	c := r.call(7, "/hold")
	g := r.gateIs("a", 5, 2)
	for range 10 {
		r.reload(fmt.Sprintf(twoGates, 1))
	}
	r.reload(fmt.Sprintf(twoGates, 2))
	if again, _ := r.gate("a"); again != g {
		t.Error("the gate is another one after a reload that does not touch it")
	}
	more := r.call(3, "/hold")
	r.gateIs("a", 5, 5)
	r.letGo(10)
	c.want(7, http.StatusOK)
	more.want(3, http.StatusOK)
	r.gateIs("a", 0, 0)
	if most := r.backend.most.Load(); most != 5 {
		t.Errorf("%d ran at once, want 5", most)
	}
	if st := g.Stats(); st.Accepted != 10 {
		t.Errorf("accepted = %d, want 10: counters go on", st.Accepted)
	}
	if got := r.scrape(`forebay_decisions_total{decision="accepted",gate="a",lane="",route="/"}`); got != "10" {
		t.Errorf("metric accepted = %q, want 10", got)
	}
	if b, _ := r.gate("b"); b.Stats().Capacity != 2 {
		t.Errorf("limit of b = %d, want 2", b.Stats().Capacity)
	}
}

const oneGate = `
gates:
  a: {max_in_flight: %d, max_wait: 60s, max_waiting: 20}
  rest: {max_in_flight: 100}
routes:
  - {match: /, gate: rest}
  - {match: /a/, gate: a}
`

const withoutA = `
gates:
  rest: {max_in_flight: 100}
routes:
  - {match: /, gate: rest}
`

// TestCF05ReloadLimits is CF-05: 1, 5, removed, 1, with holders and waiters all the way.
func TestCF05ReloadLimits(t *testing.T) {
	r := start(t, fmt.Sprintf(oneGate, 1))
	c := r.call(10, "/a/hold")
	g := r.gateIs("a", 1, 9)
	r.reload(fmt.Sprintf(oneGate, 5))
	r.gateIs("a", 5, 5)
	r.reload(withoutA)
	if _, err := r.gate("a"); err == nil {
		t.Fatal("the gate is still there")
	}
	if got := r.get("/a/x"); got.status != http.StatusOK {
		t.Errorf("without the gate: status %d, want 200", got.status)
	}
	r.letGo(3) // of the gate that is gone: its line moves on
	eventually(t, "three of the gate that is gone are served", func() bool { return len(c.replies) == 3 })
	if st := g.Stats(); st.Calls != 5 || st.Waiting != 2 {
		t.Errorf("the gate that is gone has %d in flight and %d in line, want 5 and 2", st.Calls, st.Waiting)
	}
	r.reload(fmt.Sprintf(oneGate, 1))
	r.gateIs("a", 5, 2) // still counted, so nobody is admitted past the new limit
	late := r.call(1, "/a/hold")
	r.gateIs("a", 5, 3)
	r.letGo(4)
	r.gateIs("a", 1, 3)
	r.letGo(4)
	c.want(10, http.StatusOK)
	late.want(1, http.StatusOK)
	if st := r.gateIs("a", 0, 0).Stats(); st.InUse != 0 || st.Available != 1 {
		t.Errorf("in use %d, available %d, want 0 and 1", st.InUse, st.Available)
	}
	if most := r.backend.most.Load(); most > 6 { // and the one request past no gate
		t.Errorf("%d ran at once, want at most 6", most)
	}
}

// TestCF05ReloadRenamesAGate: calls of the old name end there, the new one starts empty.
func TestCF05ReloadRenamesAGate(t *testing.T) {
	r := start(t, fmt.Sprintf(oneGate, 3))
	c := r.call(3, "/a/hold")
	old := r.gateIs("a", 3, 0)
	r.reload(strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf(oneGate, 3), "  a:", "  z:"), "gate: a}", "gate: z}"))
	r.gateIs("z", 0, 0)
	r.letGo(3)
	c.want(3, http.StatusOK)
	eventually(t, "the old gate is empty", func() bool { return old.Stats().Calls == 0 })
	if st := r.gateIs("z", 0, 0).Stats(); st.Released != 0 || st.StaleReleases != 0 {
		t.Errorf("the new gate has %d releases, %d stale; want none", st.Released, st.StaleReleases)
	}
}

// TestCF06ReloadKeepsStreams is CF-06: a stream on a route that stays is not cut, and
// stays counted.
func TestCF06ReloadKeepsStreams(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	tn := r.tunnel("/echo")
	r.gateIs("a", 1, 0)
	for i := range 5 {
		r.reload(fmt.Sprintf(twoGates, 2+i))
		if !tn.echoes() {
			t.Fatalf("the stream is cut by reload %d", i+1)
		}
	}
	r.gateIs("a", 1, 0)
	tn.Close()
	r.gateIs("a", 0, 0)
}

// TestCF07ThousandReloads is CF-07: old configurations do not live on, not even behind
// streams that began in them.
func TestCF07ThousandReloads(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	tn := r.tunnel("/echo")
	r.reload(fmt.Sprintf(twoGates, 2))
	runtime.GC()
	goroutines := runtime.NumGoroutine()
	var old []weak.Pointer[state]
	for i := range 1000 {
		old = append(old, weak.Make(r.state.Load()))
		r.reload(fmt.Sprintf(twoGates, 1+i%50))
		if i < 3 {
			if !r.tunnel("/echo").echoes() { // of this generation, and there to stay
				t.Fatal("no stream")
			}
		}
	}
	if !tn.echoes() {
		t.Error("the first stream is cut")
	}
	eventually(t, "the old configurations are gone", func() bool {
		runtime.GC()
		left := 0
		for _, p := range old {
			if p.Value() != nil {
				left++
			}
		}
		return left == 0
	})
	const perStream = 12 // of three streams: client's, server's and backend's side
	eventually(t, "no goroutine for each reload", func() bool { return runtime.NumGoroutine() <= goroutines+3*perStream })
}

// TestCF08ReloadIsAFreshStart is CF-08: what a reload puts in force is what a fresh start
// would, also for gates and routes that come new.
func TestCF08ReloadIsAFreshStart(t *testing.T) {
	texts := []string{
		fmt.Sprintf(twoGates, 1),
		fmt.Sprintf(oneGate, 1),
		withoutA,
		fmt.Sprintf(oneGate, 7),
		"gates: {a: {max_in_flight: closed}, b: {max_in_flight: 3, max_wait: 1s, refuse: {status: 429, retry_after: 10s}}}\nroutes: [{match: /, gate: b}, {match: /a/, gates: [b, a]}, {match: /free, exempt: true}]\n",
		"gates: {b: {max_in_flight: closed, max_wait: 2s}}\nroutes: [{match: GET /, gate: b}, {match: /, gate: b}, {match: GET /status, answer: health}]\n",
		"gates: {b: {max_in_flight: 9, max_wait: 2s, max_waiting: 3}}\nroutes: [{match: /, gate: b}]\ntrusted_proxies: [127.0.0.1]\nrequest_id: {header: X-Trace, trust: everybody}\n",
		"gates: {b: {max_in_flight: 9, streams: c}, c: {max_in_flight: 2}}\nroutes: [{match: /, gate: b}]\n",
		fmt.Sprintf(twoGates, 4),
	}
	r := start(t, texts[0])
	for i, text := range texts {
		r.reload(text)
		fresh, err := New(Options{Load: r.load})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := picture(r.Server), picture(fresh); got != want {
			t.Errorf("configuration %d: after a reload\n%s\nafter a fresh start\n%s", i, got, want)
		}
		_ = fresh.log.Close()
	}
}

// picture is what a server does with requests.
func picture(s *Server) string {
	var b strings.Builder
	for _, g := range s.Gates() {
		c := g.Config()
		moved := ""
		if c.Streams.Gate != nil {
			moved = c.Streams.Gate.Name()
		}
		c.Observers, c.Intake, c.Streams.Gate = nil, nil, nil // an intake is never another after a reload
		fmt.Fprintf(&b, "%+v streams to %q in force %d\n", c, moved, g.Stats().Capacity)
	}
	st := s.state.Load()
	for _, target := range []string{"/", "/a/x", "/b/x", "/free", "/status", "/a/../b/x"} {
		p := st.groups.Lookup(httptest.NewRequest("GET", target, nil))
		fmt.Fprintf(&b, "%s: %q", target, p.Route)
		for _, g := range p.Gates {
			fmt.Fprintf(&b, " %s", g.Name())
		}
		fmt.Fprintf(&b, " answered here: %v\n", st.answers(s)[p.Route] != nil)
	}
	pc := proxyConfig(st.cfg)
	fmt.Fprintf(&b, "%+v\n", pc)
	return b.String()
}

// TestCF09ReloadFails is the first half of CF-09: all or nothing, told once and in full.
func TestCF09ReloadFails(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	before := r.state.Load()
	c := r.call(6, "/hold")
	r.gateIs("a", 5, 1)
	r.write("gates: {a: {max_in_flight: 1}, b: {max_in_flight: 0}}\nroutes: [{match: /, gate: nobody}]\n")
	err := r.Reload(t.Context())
	for _, part := range []string{"max_in_flight is 0", "nobody"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v; it should name %q", err, part)
		}
	}
	if r.state.Load() != before {
		t.Error("something was put in force")
	}
	if st := r.gateIs("a", 5, 1).Stats(); st.Capacity != 5 {
		t.Errorf("limit of a = %d, want 5", st.Capacity)
	}
	if got := r.scrape("forebay_config_last_reload_successful"); got != "0" {
		t.Errorf("last reload successful = %q, want 0", got)
	}
	got := r.ask("POST", "/reload", "")
	if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "max_in_flight is 0") {
		t.Errorf("POST /reload: %d %s", got.status, got.body)
	}
	if info := r.Info(); info.LastReloadOK || len(info.Problems) < 2 {
		t.Errorf("info = %+v", info)
	}
	r.logged(`"msg":"reload failed`, "max_in_flight is 0")
	r.letGo(6)
	c.want(6, http.StatusOK)
	r.reload(fmt.Sprintf(twoGates, 1))
	if got := r.scrape("forebay_config_last_reload_successful"); got != "1" {
		t.Errorf("last reload successful = %q, want 1", got)
	}
}

// TestReloadCannotMoveListeners: what is given to net/http at the start cannot change,
// and nothing else of that file is put in force.
func TestReloadCannotMoveListeners(t *testing.T) {
	r := start(t, fmt.Sprintf(twoGates, 1))
	for key, change := range map[string][2]string{
		"listen":               {"listen: 127.0.0.1:0", "listen: 127.0.0.2:0"},
		"admin":                {"admin: 127.0.0.1:0", "admin: {listen: '127.0.0.3:0'}"},
		"timeouts.read_header": {"log:", "timeouts: {read_header: 9s}\nlog:"},
		"timeouts.idle":        {"log:", "timeouts: {idle: 9s}\nlog:"},
	} {
		r.write(fmt.Sprintf(twoGates, 2))
		r.text = strings.Replace(r.text, change[0], change[1], 1)
		err := r.Reload(t.Context())
		if err == nil || !strings.Contains(err.Error(), key+" is ") || !strings.Contains(err.Error(), "restart") {
			t.Errorf("%s: the error is %v", key, err)
		}
		if b, _ := r.gate("b"); b.Stats().Capacity != 1 {
			t.Errorf("%s: the limit of b was changed all the same", key)
		}
	}
}

// TestReloadNeverOpensAClosedGate hammers a closed gate while reloads change
// everything else about it, remove it, and bring it back.
func TestReloadNeverOpensAClosedGate(t *testing.T) {
	text := func(wait int) string {
		return fmt.Sprintf("gates: {a: {max_in_flight: closed, max_wait: %dms}, rest: {max_in_flight: 9}}\nroutes: [{match: /a/, gate: a}, {match: /, gate: rest}]\n", wait)
	}
	r := start(t, text(1))
	g, _ := r.gate("a")
	stop := make(chan struct{})
	var hammers sync.WaitGroup
	for range 4 {
		hammers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if l, ok := g.TryAcquire(forebay.Call{}); ok {
						l.Release()
						t.Error("a closed gate admitted somebody")
						return
					}
				}
			}
		})
	}
	for i := range 300 {
		r.reload(text(1 + i%7))
		if i%10 == 0 {
			r.reload(withoutA)
		}
	}
	close(stop)
	hammers.Wait()
	if st := g.Stats(); st.Accepted != 0 {
		t.Errorf("accepted = %d, want 0", st.Accepted)
	}
}

// TestReloadUnderDrain: gates that a reload brings admit nobody while everybody is
// refused.
func TestReloadUnderDrain(t *testing.T) {
	r := start(t, withoutA)
	r.Drain()
	r.reload(fmt.Sprintf(oneGate, 1))
	if got := r.get("/a/x"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_draining") {
		t.Errorf("during the drain: %d %s", got.status, got.body)
	}
	r.Resume()
	if got := r.get("/a/x"); got.status != http.StatusOK {
		t.Errorf("after the drain: %d %s", got.status, got.body)
	}
	if st := r.gateIs("a", 0, 0).Stats(); st.Accepted != 1 {
		t.Errorf("accepted = %d, want 1", st.Accepted)
	}
}

// TestReloadOfTheToken: a token in a file that is exchanged is in force with the
// reload, and the old one no longer.
func TestReloadOfTheToken(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	path := filepath.Join(dir, "forebay.yaml")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(token, "first\n")
	put(path, "admin: {listen: '127.0.0.1:0', token_file: token}\nupstream: http://127.0.0.1:1\n"+withoutA)
	s, err := New(Options{Load: func() (*config.Config, error) { return config.Load(path) }})
	if err != nil {
		t.Fatal(err)
	}
	h := s.AdminHandler(true)
	status := func(token string) int {
		req := httptest.NewRequest("GET", "http://localhost/stats", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec.Code
	}
	put(token, "second\n")
	got := []int{status("first"), status("second")}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	got = append(got, status("first"), status("second"))
	if want := []int{200, 401, 401, 200}; !reflect.DeepEqual(got, want) {
		t.Errorf("statuses of the first and second token, before and after = %v, want %v", got, want)
	}
	_ = s.log.Close()
}
