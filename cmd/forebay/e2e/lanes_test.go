//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/forebay"
)

const threeLanes = `
upstream: %s
gates: {web: {max_in_flight: 8, max_wait: 60s, max_waiting: 16}}
lanes:
  admin: {rank: 1, reserved: 1}
  order-intake: {rank: 2, share: 50%%}
  reports: {rank: 3, max_share: 75%%}
routes:
  - {match: /admin/, gate: web, lane: admin}
  - {match: /orders/, gate: web, lane: order-intake}
  - {match: /reports/, gate: web, lane: reports}
  - {match: /, gate: web}
`

// lane returns what the stats of a gate say of a lane.
func lane(st forebay.Stats, name string) forebay.LaneStats {
	for _, l := range st.Lanes {
		if l.Name == name {
			return l
		}
	}
	return forebay.LaneStats{}
}

// laneIs waits until a lane of the gate web has so many units in flight and calls in line.
func (p *program) laneIs(name string, inUse, waiting int) {
	p.Helper()
	eventually(p, fmt.Sprintf("lane %s has %d in flight and %d in line", name, inUse, waiting), func() bool {
		l := lane(p.stats("web"), name)
		return l.InUse == inUse && l.Waiting == waiting
	})
}

// TestReportsAtTenTimesLeaveOrdersWhole: ten times as many reports as the gate has slots,
// in each of ten rounds, while orders come at a rate that the gate carries. No order is
// refused and none waits for more than one report to end; who operates the shop is
// answered throughout, while everything is full.
func TestReportsAtTenTimesLeaveOrdersWhole(t *testing.T) {
	reports, orders := make(chan struct{}), make(chan struct{})
	b := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		let := map[bool]chan struct{}{true: reports, false: orders}[strings.HasPrefix(r.URL.Path, "/reports/")]
		if strings.HasPrefix(r.URL.Path, "/admin/") {
			return
		}
		select {
		case <-let:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	p := start(t, fmt.Sprintf(threeLanes, b.URL))
	const rounds, atOnce, ordersEach = 10, 80, 2 // 8 slots: ten times as many
	replies := make(chan reply, rounds*atOnce)
	ordered := make(chan reply, rounds*ordersEach)
	refused := func(n int) {
		t.Helper()
		for range n {
			if got := <-replies; got.status != http.StatusServiceUnavailable {
				t.Fatalf("a report that nobody let go was answered %d: %v", got.status, got.err)
			}
		}
	}
	room := 6 + 16 // in the slots that reports may use, and in line
	for round := range rounds {
		for range atOnce {
			go func() { replies <- p.get("/reports/") }()
		}
		refused(atOnce - room)
		p.laneIs("reports", 6, 16)
		for range ordersEach {
			go func() { ordered <- p.get("/orders/") }()
		}
		p.laneIs("order-intake", 1, 1) // one has a slot at once, the other a report's place in line
		refused(1)
		for range 3 {
			if got := p.get("/admin/"); got.status != http.StatusOK {
				t.Fatalf("round %d: admin is answered %d: %s", round, got.status, got.body)
			}
		}
		reports <- struct{}{}
		p.laneIs("order-intake", 2, 0) // it is the order that runs, not the reports before it
		for range ordersEach {
			orders <- struct{}{}
			if got := <-ordered; got.status != http.StatusOK {
				t.Fatalf("round %d: an order is answered %d: %s", round, got.status, got.body)
			}
		}
		p.laneIs("order-intake", 0, 0)
		p.laneIs("reports", 6, 14)
		if got := <-replies; got.status != http.StatusOK {
			t.Fatalf("the report that was let go is answered %d", got.status)
		}
		room = 2 // in line: that of the one that went, and of the one that made room
	}
	st := p.stats("web")
	for name, want := range map[string]forebay.LaneStats{
		"admin":        {Name: "admin", Granted: 3 * rounds},
		"order-intake": {Name: "order-intake", Granted: ordersEach * rounds},
	} {
		if got := lane(st, name); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	m := p.metrics()
	for _, decision := range []string{"rejected_busy", "rejected_shed", "rejected_timeout"} {
		if n := m[fmt.Sprintf(`forebay_decisions_total{decision="%s",gate="web",lane="order-intake",route="/orders/"}`, decision)]; n != 0 {
			t.Errorf("%v orders are %s", n, decision)
		}
	}
	if n := m[`forebay_decisions_total{decision="rejected_shed",gate="web",lane="reports",route="/reports/"}`]; n != rounds {
		t.Errorf("%v reports gave up their place, want %d", n, rounds)
	}
	close(reports)
	p.gateIs("web", 0, 0)
}
