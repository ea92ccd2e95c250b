//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

const moved = `
upstream: %s
gates: {a: {max_in_flight: 4, max_wait: 10m, max_waiting: 1000}}
routes: [{match: /, gate: a}]
`

// TestReloadMovesTheUpstream: the upstream changes again and again under load. No request
// fails for it, none that begins after a reload was answered comes to the one before, and
// over both together no more run than may.
func TestReloadMovesTheUpstream(t *testing.T) {
	const limit, moves, clients = 4, 12, 40
	var running, tooMany atomic.Int64
	var by [2]*backend
	for i := range by {
		by[i] = newBackend(t)
		name := fmt.Sprint(i)
		by[i].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if running.Add(1) > limit {
				tooMany.Add(1)
			}
			defer running.Add(-1)
			for range 100 { // some work, so that calls overlap
				_, _ = fmt.Fprint(w, name)
			}
		})
	}
	p := start(t, fmt.Sprintf(moved, by[0].URL))
	before := p.idleUsage()
	// Even: this many moves and a half are over, all of them answered. Odd: one is under way.
	var phase, asked atomic.Int64
	wrong := make(chan string, clients)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range clients {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				from := phase.Load()
				got := p.get("/x")
				to := phase.Load()
				asked.Add(1)
				if got.status != http.StatusOK || len(got.body) != 100 || strings.Count(got.body, got.body[:1]) != 100 {
					wrong <- fmt.Sprintf("answered %d %q, %v", got.status, got.body, got.err)
					return
				}
				if want := fmt.Sprint(from / 2 % 2); from == to && from%2 == 0 && got.body[:1] != want {
					wrong <- fmt.Sprintf("after move %d it was answered by %s", from/2, got.body[:1])
					return
				}
			}
		})
	}
	for i := range moves {
		until := asked.Load() + clients
		eventually(t, "they are served", func() bool { return asked.Load() >= until || len(wrong) > 0 })
		phase.Add(1)
		p.write(fmt.Sprintf(moved, by[(i+1)%2].URL))
		if i%3 < 2 {
			p.ask("POST", "/reload", "")
		} else { // by signal, of which the log tells when it is done
			was := p.metrics()["forebay_config_last_reload_success_timestamp_seconds"]
			p.signal(syscall.SIGHUP)
			eventually(t, "it is reloaded", func() bool {
				return p.metrics()["forebay_config_last_reload_success_timestamp_seconds"] > was
			})
		}
		phase.Add(1)
	}
	close(stop)
	all.Wait()
	close(wrong)
	for w := range wrong {
		t.Error(w)
	}
	if n := tooMany.Load(); n > 0 {
		t.Errorf("%d times more than %d ran", n, limit)
	}
	if st := p.stats("a"); st.Granted != st.Released || st.StaleReleases != 0 {
		t.Errorf("granted %d, released %d, stale %d", st.Granted, st.Released, st.StaleReleases)
	}
	p.backTo(before, "a", nil)
}
