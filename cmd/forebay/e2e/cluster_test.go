//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/forebay/forebaytest/redistest"
)

const sharing = `
upstream: %s
drain_timeout: 60s
cluster: {redis: %s, gates: [a]}
gates: {a: {max_in_flight: 5, max_wait: 10m, max_waiting: 1000}}
routes: [{match: /, gate: a}]
`

// TestOneLimitOverTwoPrograms is acceptance 6 of the cluster: 5 000 requests through two
// programs with one limit of 5, of which one is restarted in order and one is killed.
// The upstream counts itself.
func TestOneLimitOverTwoPrograms(t *testing.T) {
	redis := redistest.Start(t, redistest.Config{})
	b := newBackend(t)
	b.seen = func(*http.Request) { time.Sleep(time.Millisecond) } // some work, so that calls overlap
	b.allowed.Store(5)
	config := fmt.Sprintf(sharing, b.URL, redis.URL())
	var programs [2]atomic.Pointer[program]
	for i := range programs {
		programs[i].Store(start(t, config))
	}
	const requests, clients = 5000, 50
	var left, sent atomic.Int64
	left.Store(requests)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				served(t.Context(), &programs[sent.Add(1)%2])
			}
		})
	}
	eventually(t, "a third of the requests are served", func() bool { return b.served.Load() > requests/3 })
	old := programs[0].Load()
	old.signal(syscall.SIGTERM)
	programs[0].Store(start(t, config))
	if code := old.exit(); code != 0 {
		t.Errorf("SIGTERM: exit code %d, want 0", code)
	}
	eventually(t, "two thirds of the requests are served", func() bool { return b.served.Load() > requests*2/3 })
	old = programs[1].Load()
	old.signal(syscall.SIGKILL)
	programs[1].Store(start(t, config))
	all.Wait()
	if n := b.tooMany.Load(); n > 0 {
		t.Errorf("%d times more than 5 ran at the upstream, at most %d at once", n, b.most.Load())
	}
	if most := b.most.Load(); most < 5 {
		t.Errorf("at most %d ran at once; the test has no load", most)
	}
	if n := b.served.Load(); n < requests {
		t.Errorf("%d were served, want %d at least", n, requests)
	}
}

// served asks until the request is answered by the upstream, as a caller does who is
// told to come back.
func served(ctx context.Context, p *atomic.Pointer[program]) {
	for ctx.Err() == nil && p.Load().do(ctx, http.MethodGet, p.Load().data+"/x", "").status != http.StatusOK {
		time.Sleep(time.Millisecond)
	}
}
