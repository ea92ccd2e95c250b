package check

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const explained = `upstream: http://127.0.0.1:8000
gates:
  reports: {max_in_flight: 4, max_wait: 100ms, pool: db}
  orders: {max_in_flight: 12, max_wait: 50ms, max_waiting: 6}
  strict: {max_in_flight: 1}
  shut: {max_in_flight: closed, max_wait: 10ms}
pools: {db: 20}
routes:
  - {match: /health, exempt: true}
  - {match: /status, answer: health}
  - {match: GET /reports/, gate: reports}
  - {match: GET /export/, gates: [orders, reports]}
  - {match: /old/, gate: shut}
  - {match: /one/, gate: strict}
  - {match: api.example/, gate: strict}
  - {match: /, gate: orders}
`

func TestExplain(t *testing.T) {
	c := parse(t, explained)
	for _, x := range []struct {
		request, route string
		line           int
		gates          string
		patience       time.Duration
		why            []string
	}{
		{"GET /reports/7", "GET /reports/", 11, "reports", 100 * time.Millisecond, []string{"GET /reports/ matches it", "/ matches as well, but is less specific", "at most 100ms (of reports)"}},
		{"/reports/7", "GET /reports/", 11, "reports", 100 * time.Millisecond, nil},
		{"HEAD /reports/7?x=1", "GET /reports/", 11, "reports", 100 * time.Millisecond, nil},
		{"POST /reports/7", "/", 16, "orders", 50 * time.Millisecond, []string{"/ matches it"}},
		{"GET /export/all", "GET /export/", 12, "orders reports", 50 * time.Millisecond, []string{"a chain", "the smallest max_wait, that of orders"}},
		{"GET /health", "/health", 9, "", 0, []string{"exempt"}},
		{"GET /status", "/status", 10, "", 0, []string{"answers it itself"}},
		{"GET /old/x", "/old/", 13, "shut", 0, []string{"the gate shut is closed"}},
		{"GET /one/x", "/one/", 14, "strict", 0, []string{"refused at once"}},
		{"GET /REPORTS/7", "/", 16, "orders reports", 50 * time.Millisecond, []string{"read in another way, the path is one of GET /reports/ as well, and so it also passes reports"}},
		{"GET /x/../health", "/", 16, "orders", 50 * time.Millisecond, []string{"read in another way, the path is one of /health as well, which changes nothing"}},
		{"GET api.example/reports/7", "api.example/", 15, "strict", 0, []string{"GET /reports/ matches as well, but is less specific"}},
		{"GET http://API.example:8080/", "api.example/", 15, "strict", 0, nil},
	} {
		e, err := Explain(c, x.request)
		if err != nil {
			t.Errorf("%s: %v", x.request, err)
			continue
		}
		var names []string
		for _, g := range e.Gates {
			names = append(names, g.Name)
		}
		if gates := strings.Join(names, " "); e.Route != x.route || e.Pos.Line != x.line || gates != x.gates || time.Duration(e.Patience) != x.patience {
			t.Errorf("%s: %s (line %d), gates %q, patience %v; want %s (line %d), %q, %v", x.request, e.Route, e.Pos.Line, gates, e.Patience, x.route, x.line, x.gates, x.patience)
		}
		for _, part := range x.why {
			if !strings.Contains(strings.Join(e.Why, "\n"), part) {
				t.Errorf("%s: %q lacks %q", x.request, e.Why, part)
			}
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	c := parse(t, explained)
	for request, want := range map[string]string{
		"":           "has no path",
		"GET":        "has no path",
		"get /x":     "not in upper case",
		"GET /%zz":   "is no path",
		"GET x.test": "has no path",
	} {
		if _, err := Explain(c, request); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "GET /reports/7") {
			t.Errorf("%q: %v, want %q and an example", request, err, want)
		}
	}
}

func TestExplanationAsText(t *testing.T) {
	c := parse(t, explained)
	e, err := Explain(c, "GET /export/all")
	if err != nil {
		t.Fatal(err)
	}
	want := `request   GET /export/all
route     GET /export/   (line 12)
gates     orders: max_in_flight 12, max_wait 50ms, max_waiting 6
          reports: max_in_flight 4, max_wait 100ms, max_waiting 8, pool db
patience  50ms
why       GET /export/ matches it
          / matches as well, but is less specific
          the route is a chain: it takes a slot of each gate in this order, all or none
          it waits in line for at most 50ms (the smallest max_wait, that of orders), then it is refused
`
	if got := e.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	text, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(text), `"patience_ms":50`) || !strings.Contains(string(text), `"max_wait_ms":100`) {
		t.Errorf("%s, %v", text, err)
	}
	for request, want := range map[string]string{
		"GET /status": "answer    health, by the program itself\n",
		"GET /health": "gates     none\n",
		"GET /old/":   "gates     shut: closed\n",
	} {
		if e, _ := Explain(c, request); !strings.Contains(e.String(), want) {
			t.Errorf("%s: %s lacks %q", request, e, want)
		}
	}
}
