//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const oneGate = `
drain_timeout: 60s
timeouts: {upstream_response: %s}
gates:
  a: {max_in_flight: 3, max_wait: 10m, max_waiting: 1000}
  other: {max_in_flight: %d}
routes:
  - {match: /, gate: a}
  - {match: /other/, gate: other}
  - {match: /status, answer: health}
upstream: %s
`

// TestUpstreamDiesInMidBody is acceptance 5: the client sees a broken answer, not half
// of one that looks whole, and nothing is lost.
func TestUpstreamDiesInMidBody(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "30s", 1, b.URL))
	before := p.idleUsage()
	if got := p.call(30, "/half").all(30); got[0] != 30 {
		t.Errorf("answers by status: %v, want 30 that broke off", got)
	}
	p.logged("the upstream did not answer as it should", `"status":200`)
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// TestUpstreamDiesUnderStreams: the connections to the upstream are cut while answers
// run that have begun.
func TestUpstreamDiesUnderStreams(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "30s", 1, b.URL))
	before := p.idleUsage()
	c := p.call(6, "/stream")
	p.gateIs("a", 3, 3)
	eventually(t, "three streams", func() bool { return b.running.Load() == 3 })
	b.CloseClientConnections()
	p.gateIs("a", 3, 0)
	eventually(t, "the next three", func() bool { return b.running.Load() == 3 })
	b.CloseClientConnections()
	if got := c.all(6); got[0] != 6 {
		t.Errorf("answers by status: %v, want 6 that broke off", got)
	}
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// TestUpstreamNeverAnswers: 504, said in the log, and the slot comes back; at once where
// nothing is to be kept.
func TestUpstreamNeverAnswers(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "100ms, still_running: 0", 1, b.URL))
	before := p.idleUsage()
	if got := p.call(9, "/slow").all(9); got[http.StatusGatewayTimeout] != 9 {
		t.Errorf("answers by status: %v, want 9 times 504", got)
	}
	p.logged("the upstream did not answer as it should", `"status":504`)
	p.backTo(before, "a", func() { p.get("/") })
}

// TestUpstreamIsAway: 502 while nobody listens, and service again without a restart.
func TestUpstreamIsAway(t *testing.T) {
	b := newBackend(t)
	addr := b.Listener.Addr().String()
	p := start(t, fmt.Sprintf(oneGate, "30s", 1, b.URL))
	before := p.idleUsage()
	b.Listener.Close()
	b.CloseClientConnections()
	if got := p.call(9, "/x").all(9); got[http.StatusBadGateway] != 9 {
		t.Errorf("answers by status: %v, want 9 times 502", got)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("the address of the backend is taken: %v", err)
	}
	again := &http.Server{Handler: http.HandlerFunc(b.serve)}
	go again.Serve(l) //nolint:errcheck // it ends with the test
	defer again.Close()
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// TestCallerLeaves, in line and in flight: the line moves, nothing that nobody reads is
// started, and the slots come back.
func TestCallerLeaves(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "60s", 1, b.URL))
	before := p.idleUsage()
	served := b.served.Load()
	inFlight := p.call(3, "/hold")
	p.gateIs("a", 3, 0)
	inLine := p.call(20, "/hold")
	p.gateIs("a", 3, 20)
	inLine.leave()
	p.gateIs("a", 3, 0)
	inFlight.leave()
	p.gateIs("a", 0, 0)
	p.logged("the caller left", `"status":499`)
	eventually(t, "the backend is told", func() bool { return b.running.Load() == 0 })
	if n := b.served.Load() - served; n != 3 {
		t.Errorf("the backend was asked %d times, want 3", n)
	}
	if st := p.stats("a"); st.Canceled != 20 {
		t.Errorf("canceled = %d, want 20", st.Canceled)
	}
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// TestQU20ReloadKeyHeldDown is QU-20: one client opens and closes 50 requests; none of them
// reaches the backend, and the next one is served before all that nobody waits for.
func TestQU20ReloadKeyHeldDown(t *testing.T) {
	b := newBackend(t)
	p := start(t, strings.Replace(fmt.Sprintf(oneGate, "60s", 1, b.URL), "max_in_flight: 3", "max_in_flight: 1", 1))
	holder := p.call(1, "/hold")
	p.gateIs("a", 1, 0)
	for range 50 {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan reply, 1)
		go func() { done <- p.do(ctx, http.MethodGet, p.data+"/x", "") }()
		p.gateIs("a", 1, 1)
		leave()
		<-done
		p.gateIs("a", 1, 0)
	}
	last := p.call(1, "/x")
	p.gateIs("a", 1, 1)
	b.free(t, 1)
	if got := last.all(1); got[http.StatusOK] != 1 {
		t.Errorf("the one who waited: %v", got)
	}
	holder.all(1)
	if n := b.served.Load(); n != 2 {
		t.Errorf("the backend was asked %d times, want 2", n)
	}
}

// flood sends requests on so many connections until stop is closed, and returns the
// answers by status.
func (p *program) flood(connections int, path string, stop <-chan struct{}) (wait func() map[int]int) {
	var clients sync.WaitGroup
	var mu sync.Mutex
	counts := map[int]int{}
	for range connections {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got := p.get(path)
				mu.Lock()
				counts[got.status]++
				mu.Unlock()
			}
		})
	}
	return func() map[int]int {
		clients.Wait()
		return counts
	}
}

// TestReloadUnderLoad: no request fails for it, and nothing is left.
func TestReloadUnderLoad(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "30s", 1, b.URL))
	before := p.idleUsage()
	stop := make(chan struct{})
	wait := p.flood(50, "/x", stop)
	for i := range 30 {
		p.write(fmt.Sprintf(oneGate, fmt.Sprintf("%ds", 30+i%3), 2+i, b.URL)) // another proxy as well
		if i%2 == 0 {
			p.ask("POST", "/reload", "")
		} else {
			was := p.metrics()["forebay_config_last_reload_success_timestamp_seconds"]
			p.signal(syscall.SIGHUP)
			eventually(t, "it is reloaded", func() bool {
				return p.metrics()["forebay_config_last_reload_success_timestamp_seconds"] > was
			})
		}
	}
	close(stop)
	counts := wait()
	if len(counts) != 1 || counts[http.StatusOK] == 0 {
		t.Errorf("answers by status: %v, want 200 alone", counts)
	}
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// TestSIGTERMUnderLoad: what runs is answered, the line is refused, exit code 0; and
// after that nobody listens.
func TestSIGTERMUnderLoad(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "60s", 1, b.URL))
	running := p.call(3, "/hold")
	p.gateIs("a", 3, 0)
	inLine := p.call(50, "/hold")
	p.gateIs("a", 3, 50)
	stop := make(chan struct{})
	wait := p.flood(20, "/other/x", stop)
	p.signal(syscall.SIGTERM)
	if got := inLine.all(50); got[http.StatusServiceUnavailable] != 50 {
		t.Errorf("the line by status: %v, want 50 times 503", got)
	}
	p.signal(syscall.SIGHUP) // a reload now, or nothing; not the end
	if got := p.get("/x"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "rejected_draining") {
		t.Errorf("a new request: %+v", got)
	}
	if got := p.do(t.Context(), "GET", p.admin+"/ready", ""); got.status != http.StatusServiceUnavailable {
		t.Errorf("/ready: %+v", got)
	}
	b.free(t, 3)
	if got := running.all(3); got[http.StatusOK] != 3 {
		t.Errorf("what ran by status: %v, want 3 times 200", got)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	close(stop)
	wait()
	if conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://")); err == nil {
		conn.Close()
		t.Error("somebody still listens")
	}
	if !strings.Contains(p.stderr.String(), "drained; bye") {
		t.Error("the log does not say how it ended")
	}
}

// TestExitCodes: 1 when drain_timeout ran out, 2 when it cannot begin.
func TestExitCodes(t *testing.T) {
	b := newBackend(t)
	p := start(t, strings.Replace(fmt.Sprintf(oneGate, "60s", 1, b.URL), "drain_timeout: 60s", "drain_timeout: 50ms", 1))
	c := p.call(2, "/hold")
	p.gateIs("a", 2, 0)
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 1 {
		t.Errorf("with calls that outlast drain_timeout: exit code %d, want 1", code)
	}
	c.all(2)
	if !strings.Contains(p.stderr.String(), "drain_timeout is over") {
		t.Error("the log does not say why")
	}
	p = start(t, fmt.Sprintf(oneGate, "60s", 1, b.URL))
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != 0 {
		t.Errorf("on Ctrl-C: exit code %d, want 0", code)
	}
	p = prepare(t, "upstream: nowhere\n")
	p.run()
	if code := p.exit(); code != 2 {
		t.Errorf("with a bad configuration: exit code %d, want 2", code)
	}
}

// TestKR11AdminAtTenTimesCapacity: everything is full, ten times as many ask, and the admin
// port and health on the data port answer every time. How long that takes is told and
// not judged: this is one machine for all.
func TestKR11AdminAtTenTimesCapacity(t *testing.T) {
	raiseFiles(t, 3000)
	b := newBackend(t)
	p := start(t, strings.Replace(fmt.Sprintf(oneGate, "60s", 1, b.URL), "max_waiting: 1000", "max_waiting: 100", 1))
	before := p.idleUsage()
	idle := p.adminMedian()
	holders := p.call(103, "/hold")
	p.gateIs("a", 3, 100)
	stop := make(chan struct{})
	refusals := func() float64 {
		return p.metrics()[`forebay_decisions_total{decision="rejected_busy",gate="a",lane="",route="/"}`]
	}
	wait := p.flood(30, "/x", stop) // ten times the limit, refused as fast as they come
	eventually(t, "the flood is there", func() bool { return refusals() > 100 })
	busy := p.adminMedian()
	if got := p.get("/status"); got.status != http.StatusOK {
		t.Errorf("/status on the data port: %+v", got)
	}
	if got := p.ask("GET", "/health", ""); !strings.Contains(got.body, "degraded") {
		t.Errorf("/health says %s", got.body)
	}
	close(stop)
	counts := wait()
	if len(counts) != 1 || counts[http.StatusServiceUnavailable] == 0 {
		t.Errorf("the flood was answered %v, want 503 alone", counts)
	}
	t.Logf("median of an admin request: idle %v, at ten times capacity %v; %v refused meanwhile", idle, busy, counts[503])
	holders.leave()
	holders.all(103)
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}

// adminMedian is how long a request to the admin port takes; all have to be answered.
func (p *program) adminMedian() time.Duration {
	p.Helper()
	var took []time.Duration
	for range 20 {
		for _, path := range []string{"/health", "/ready", "/stats", "/holders", "/metrics"} {
			began := time.Now()
			p.ask("GET", path, "")
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestAdminFlooded: the admin port is asked by many at once while the data port is
// full; what it says stays true and what waits is served.
func TestAdminFlooded(t *testing.T) {
	b := newBackend(t)
	p := start(t, fmt.Sprintf(oneGate, "60s", 1, b.URL))
	before := p.idleUsage()
	c := p.call(30, "/hold")
	p.gateIs("a", 3, 27)
	var askers sync.WaitGroup
	for range 30 {
		askers.Go(func() {
			for range 20 {
				for _, path := range []string{"/stats", "/metrics", "/holders", "/health"} {
					p.ask("GET", path, "")
				}
			}
		})
	}
	b.free(t, 30)
	if got := c.all(30); got[http.StatusOK] != 30 {
		t.Errorf("by status: %v, want 30 times 200", got)
	}
	askers.Wait()
	p.backTo(before, "a", p.fullSet(b, "a", 3))
}
