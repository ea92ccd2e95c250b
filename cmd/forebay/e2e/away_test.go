//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
	"example.com/forebay/forebaytest/redistest"
)

// policies has a gate for each policy while the store is away, and short leases.
const policies = `
upstream: %s
drain_timeout: 60s
log: {decisions: all}
cluster:
  redis: %s
  lease: 1s
  gates: {share: {min_share: 1}, closed: {when_store_is_away: closed}, open: {when_store_is_away: open}}
gates: {share: {max_in_flight: 4}, closed: {max_in_flight: 4}, open: {max_in_flight: 4}}
routes:
  - {match: /share/, gate: share}
  - {match: /closed/, gate: closed}
  - {match: /open/, gate: open}
  - {match: /, exempt: true}
`

// pair is two programs with one line to a Redis of their own.
type pair struct {
	*testing.T
	redis    *redistest.Server
	wire     *wire
	backend  *backend
	programs [2]*program
}

func newPair(t *testing.T, away bool) *pair {
	t.Helper()
	c := &pair{T: t, redis: redistest.Start(t, redistest.Config{}), backend: newBackend(t)}
	c.wire = newWire(t, c.redis.Addr())
	c.wire.set(away, 0)
	for i := range c.programs {
		c.programs[i] = start(t, fmt.Sprintf(policies, c.backend.URL, c.wire.url()))
	}
	return c
}

// modes waits until each gate goes on as it should at both programs.
func (c *pair) modes(want map[string]string) {
	c.Helper()
	for _, p := range c.programs {
		eventually(c, fmt.Sprintf("the modes are %v", want), func() bool {
			m := p.metrics()
			for gate, mode := range want {
				if m[fmt.Sprintf("forebay_cluster_mode{gate=%q,mode=%q}", gate, mode)] != 1 {
					return false
				}
			}
			return true
		})
	}
}

var (
	normal = map[string]string{"share": "normal", "closed": "normal", "open": "normal"}
	alone  = map[string]string{"share": "share", "closed": "closed", "open": "open"}
)

// lets returns how many of six calls at once a program lets in at a gate, and checks
// what the others are told; an empty reason is any.
func (c *pair) lets(p *program, gate, reason string) int {
	c.Helper()
	const all = 6
	calls := p.call(all, "/"+gate+"/hold")
	eventually(c, "each call is refused or runs", func() bool { return len(calls.replies)+int(c.backend.running.Load()) == all })
	refused := len(calls.replies)
	for range refused {
		if got := <-calls.replies; got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `"reason":"`+reason) || got.header.Get("Retry-After") == "" {
			c.Errorf("gate %s refuses with %d %s, want 503 %s", gate, got.status, got.body, reason)
		}
	}
	c.backend.free(c, all-refused)
	calls.all(all - refused)
	return all - refused
}

// letsAll waits until a program lets in the whole limit at each gate: a call that may not
// wait is refused while slots are idle at the other program, for a moment, or while the
// store is too slow, on a busy machine.
func (c *pair) letsAll(p *program) {
	c.Helper()
	for gate := range normal {
		eventually(c, "gate "+gate+" lets in four", func() bool {
			n := c.lets(p, gate, "")
			if n > 4 {
				c.Errorf("gate %s lets in %d, want 4", gate, n)
			}
			return n == 4
		})
	}
}

// away checks what the programs say and do while the store is away: how many each lets
// in of those that have a share.
func (c *pair) away(share int) {
	c.Helper()
	c.modes(alone)
	for _, p := range c.programs {
		var rep forebay.Report
		if err := json.Unmarshal([]byte(p.ask("GET", "/health", "").body), &rep); err != nil {
			c.Fatal(err)
		}
		for _, g := range rep.Gates {
			if rep.Status != "degraded" || g.Status != "degraded" || !strings.Contains(g.Why, "the cluster's store is away") {
				c.Errorf("health: %+v", rep)
			}
		}
		for _, want := range []struct {
			gate, reason string
			n            int
		}{{"share", "rejected_busy", share}, {"closed", "rejected_store", 0}, {"open", "rejected_busy", 4}} {
			if n := c.lets(p, want.gate, want.reason); n != want.n {
				c.Errorf("gate %s lets in %d, want %d", want.gate, n, want.n)
			}
		}
		p.logged(`"msg":"the cluster's store is away"`, `"gate":"closed"`)
		if m := p.metrics(); m[`forebay_decisions_total{decision="rejected_store",gate="closed",lane="",route="/closed/"}`] == 0 || m[`forebay_cluster_failures_total{gate="closed"}`] == 0 {
			c.Error("the metrics say nothing of it")
		}
	}
	c.programs[0].logged(`"decision":"rejected_store"`, `"gate":"closed"`)
}

// back checks that the store is there again for good.
func (c *pair) back() {
	c.Helper()
	c.modes(normal)
	for _, p := range c.programs {
		eventually(c, "health gives no reason", func() bool { return !strings.Contains(p.ask("GET", "/health", "").body, `"why"`) })
		c.letsAll(p)
		p.logged(`"msg":"the cluster's store is back"`, `"gate":"closed"`)
		if said := strings.Count(p.stderr.String(), `"the cluster's store is away"`); said > 3*8 {
			c.Errorf("%d lines say that the store is away", said)
		}
	}
}

// TestStoreIsDownAtStart: the programs start, go on as the policy says, and join when
// the store is there.
func TestStoreIsDownAtStart(t *testing.T) {
	t.Parallel()
	c := newPair(t, true)
	c.away(1)
	c.wire.set(false, 0)
	c.back()
}

// TestStoreGoesDown: killed, and started again empty.
func TestStoreGoesDown(t *testing.T) {
	t.Parallel()
	c := newPair(t, false)
	c.modes(normal)
	c.letsAll(c.programs[0])
	c.redis.Kill()
	c.away(2)
	c.redis.Restart()
	c.back()
}

// TestStoreIsSlow: what takes 200 ms is away.
func TestStoreIsSlow(t *testing.T) {
	t.Parallel()
	c := newPair(t, false)
	c.modes(normal)
	c.wire.set(false, 200*time.Millisecond)
	c.away(2)
	c.wire.set(false, 0)
	c.back()
}

// TestStoreComesAndGoes: whatever it does, no more run than may at the gate that is to
// be exact, and all is well afterwards.
func TestStoreComesAndGoes(t *testing.T) {
	t.Parallel()
	c := newPair(t, false)
	c.modes(normal)
	c.backend.seen = func(*http.Request) { time.Sleep(2 * time.Millisecond) }
	c.backend.allowed.Store(4)
	stop := make(chan struct{})
	var waits []func() map[int]int
	for _, p := range c.programs {
		waits = append(waits, p.flood(8, "/closed/x", stop))
	}
	for i := range 12 {
		c.wire.set(i%2 == 0, 0)
		time.Sleep(time.Duration(100+90*(i%5)) * time.Millisecond) // a trouble of that length
	}
	c.wire.set(false, 0)
	close(stop)
	for _, wait := range waits {
		counts := wait()
		delete(counts, http.StatusServiceUnavailable)
		if len(counts) != 1 || counts[http.StatusOK] == 0 {
			t.Errorf("answers besides 503: %v, want 200 alone", counts)
		}
	}
	if n := c.backend.tooMany.Load(); n > 0 {
		t.Errorf("%d times more than 4 ran, at most %d at once", n, c.backend.most.Load())
	}
	c.backend.allowed.Store(0)
	c.back()
}
