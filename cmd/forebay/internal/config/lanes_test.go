package config

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"example.com/forebay"
)

const laned = `upstream: http://127.0.0.1:8000
gates:
  orders: {max_in_flight: 12, max_wait: 100ms}
  reports: {max_in_flight: 4, max_wait: 100ms}
  ops: {max_in_flight: 2}
  shut: {max_in_flight: closed}
lanes:
  reporting: {rank: 3, max_share: 75%}
  order-intake: {rank: 1, reserved: 2, share: 50%}
routes:
  - {match: /orders/, gate: orders, lane: order-intake}
  - {match: /reports/, gates: [orders, reports], lane: reporting}
  - {match: /ops/, gate: ops}
  - {match: /shut/, gate: shut, lane: order-intake}
  - {match: /, gate: orders}
`

// TestLanesGoToGatesByRoutes: a gate has the lanes of the routes that pass it, and no other.
func TestLanesGoToGatesByRoutes(t *testing.T) {
	c := mustParse(t, laned)
	intake := forebay.Lane{Name: "order-intake", Rank: 1, Reserved: 2, Share: .5}
	reporting := forebay.Lane{Name: "reporting", Rank: 3, MaxShare: .75}
	for gate, want := range map[string][]forebay.Lane{
		"orders": {reporting, intake}, "reports": {reporting}, "ops": nil, "shut": {intake},
	} {
		if got := c.Gate(gate).Lanes; !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %+v, want %+v", gate, got, want)
		}
	}
	if g := c.Gate("shut"); g.MaxInFlight != 3 || !g.Closed {
		t.Errorf("the closed gate has %d units, want 3: what is reserved, and one", g.MaxInFlight)
	}
	gates, groups, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := gates.Get("orders").Stats().Lanes; len(got) != 3 || got[0].Name != "order-intake" {
		t.Errorf("the gate's lanes are %+v", got)
	}
	if got := gates.Get("shut").Stats(); got.Capacity != 0 || len(got.Lanes) != 2 {
		t.Errorf("the closed gate is %+v", got)
	}
	for path, want := range map[string]string{"/orders/1": "order-intake", "/reports/1": "reporting", "/ops/": "", "/": "", "/x/../orders/1": ""} {
		if got := groups.Lookup(httptest.NewRequest(http.MethodGet, path, nil)).Lane; got != want {
			t.Errorf("%s is of the lane %q, want %q", path, got, want)
		}
	}
}
