package config

import (
	"strings"
	"testing"
)

// QU-15: a route whose requests would take more than a gate has is refused before anything
// runs.
func TestQU15RouteCostsFitTheGate(t *testing.T) {
	c, err := Parse("f.yaml", []byte(`upstream: http://127.0.0.1:1
gates:
  db: {max_in_flight: 8}
routes:
  - {match: /export/, gate: db, cost: 4}
  - {match: /, gate: db}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Routes[0].Cost != 4 || c.Routes[1].Cost != 0 {
		t.Errorf("costs %+v", c.Routes)
	}
	_, err = Parse("f.yaml", []byte(`upstream: http://127.0.0.1:1
gates:
  db: {max_in_flight: 8}
routes:
  - {match: /export/, gate: db, cost: 9}
  - {match: /health, exempt: true, cost: 2}
  - {match: /x, gate: db, cost: 0}
  - {match: /, gate: db, costs: 2}
`))
	for _, want := range []string{
		"f.yaml:5:39: cost is more than gate db has: a request of this route could never run; write at most 8, or raise max_in_flight",
		"f.yaml:6:42: the route /health passes no gate and has a cost, which is units of a gate; take the cost out, or give it a gate",
		"f.yaml:7:33: cost is 0; write a whole number from 1",
		"did you mean cost?",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}
