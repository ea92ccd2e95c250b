package check

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"example.com/forebay/cmd/forebay/internal/config"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("forebay.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

// quiet is a file about which nothing bad is to be said.
const quiet = `upstream: http://127.0.0.1:8000
front_timeout: 60s
trusted_proxies: [127.0.0.1]
pools: {db: 20}
gates:
  reports: {max_in_flight: 4, max_wait: 100ms, max_waiting: 16, pool: db}
  orders: {max_in_flight: 12, max_wait: 50ms, pool: db, refuse: {retry_after: {max: 10s}}}
routes:
  - {match: /health, exempt: true}
  - {match: /status, answer: health}
  - {match: GET /reports/, gate: reports}
  - {match: GET /export/, gates: [orders, reports]}
  - {match: /, gate: orders}
`

// only are the findings of one rule.
func only(findings []Finding, rule string) (found []Finding) {
	for _, f := range findings {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	return found
}

func TestQuietFile(t *testing.T) {
	findings := Check(parse(t, quiet))
	if w := Worst(findings); w != Unknown { // the application's own timeout cannot be known
		t.Errorf("the worst is %v, want unknown: %v", w, findings)
	}
	for _, rule := range []string{"timeout_chain", "pool_size"} {
		if found := only(findings, rule); len(found) != 1 || found[0].Severity != OK {
			t.Errorf("%s says %v, want one ok", rule, found)
		}
	}
	if findings := Check(parse(t, config.Example)); Worst(findings) < Unknown {
		t.Errorf("of the documentation's example is said: %v", findings)
	}
}

// TestRules changes one thing of the quiet file, and one rule must say so, with its
// severity, place and words.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule     string
		old, new string
		severity Severity
		line     int
		say      []string
	}{
		{"timeout_chain", "front_timeout: 60s", "front_timeout: 30s", Error, 2, []string{"front_timeout 30s is not above", "gates.reports.max_wait 100ms", "timeouts.upstream_response 30s = 30.1s", "GET /reports/", "at least 31.1s"}},
		{"timeout_chain", "front_timeout: 60s", "front_timeout: 30100ms", Error, 2, []string{"not above"}},
		{"timeout_chain", "front_timeout: 60s", "front_timeout: 31s", Warning, 2, []string{"hardly above"}},
		{"timeout_chain", "front_timeout: 60s\n", "", Unknown, 0, []string{"front_timeout is not given", "30.1s"}},
		{"timeout_chain", "GET /reports/, gate: reports", "GET /reports/, gates: [orders, reports]", OK, 2, []string{"gates.orders.max_wait 50ms (the smallest of orders, reports)"}},
		{"application_timeout", "front_timeout", "timeouts: {upstream_response: 20s}\nfront_timeout", Unknown, 2, []string{"upstream_response 20s", "gunicorn"}},
		{"drain_timeout", "front_timeout", "drain_timeout: 10s\nfront_timeout", Warning, 2, []string{"drain_timeout 10s is below timeouts.upstream_response 30s"}},
		{"wait_beyond_timeout", "max_wait: 100ms", "max_wait: 60s", Error, 6, []string{"max_wait 1m of gate reports", "front_timeout 1m"}},
		{"wait_beyond_timeout", "max_wait: 100ms", "max_wait: 30s", Warning, 6, []string{"timeouts.upstream_response 30s"}},
		{"wait_long", "max_wait: 100ms", "max_wait: 1s", Warning, 6, []string{"max_wait 1s of gate reports"}},
		{"wait_short", "max_wait: 100ms", "max_wait: 900us", Warning, 6, []string{"900µs", "write 0"}},
		{"line_long", "max_waiting: 16", "max_waiting: 17", Warning, 6, []string{"max_waiting 17 of gate reports is more than 4 times max_in_flight 4", "leave it out for 8"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: 13", Warning, 4, []string{"reports 4 + orders 13 = 17 of 20 in pool db is more than 80 %", "to 16 together"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: 16", Warning, 4, []string{"20 of 20"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: 17", Error, 4, []string{"21 of 20 in pool db: calls queue inside the backend"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: auto", Warning, 4, []string{"reports 4 + orders up to 1000 = 1004 of 20 in pool db", "what is tried beyond the pool", "give max_in_flight.auto a max, of 16 together"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: {auto: {max: 13}}", Warning, 4, []string{"reports 4 + orders up to 13 = 17 of 20 in pool db is more than 80 %"}},
		{"pool_size", "max_in_flight: 12", "max_in_flight: {auto: {max: 12}}", OK, 4, []string{"reports 4 + orders up to 12 = 16 of 20"}},
		{"auto_deadline", "max_in_flight: 12", "max_in_flight: {auto: {max: 12, deadline: 1m}}", Warning, 7, []string{"deadline 1m of gate orders is not below front_timeout 1m"}},
		{"auto_deadline", "max_in_flight: 12", "max_in_flight: {auto: {max: 12, deadline: 30s}}", Warning, 7, []string{"not below timeouts.upstream_response 30s"}},
		{"auto_wait", "max_in_flight: 12, max_wait: 50ms", "max_in_flight: auto, max_wait: 1s", Warning, 7, []string{"max_wait 1s of gate orders is not below the deadline 1s", "write 100ms"}},
		{"hold_short", "max_in_flight: 12", "max_in_flight: {auto: {max: 14}}, hold: first_byte", Warning, 7, []string{"more than 14"}},
		{"pool_unused", "{db: 20}", "{db: 20, redis: 5}", Warning, 4, []string{"no gate takes from pool redis"}},
		{"pool_unknown", "16, pool: db", "16", Unknown, 4, []string{"reports 4 is not written here"}},
		{"gate_unused", "gates:\n", "gates:\n  ops: {max_in_flight: 1, pool: db}\n", Warning, 6, []string{"no route leads to gate ops"}},
		{"lane_unused", "gates:\n", "lanes: {top: {rank: 1}}\ngates:\n", Warning, 5, []string{"no route is of lane top"}},
		{"lane_alone", "routes:\n", "  ops: {max_in_flight: 2}\nlanes: {top: {rank: 1}}\nroutes:\n  - {match: /ops/, gate: ops, lane: top}\n", Warning, 8, []string{"all routes that pass gate ops are of lane top"}},
		{"lane_no_line", "routes:\n", "  ops: {max_in_flight: 2}\nlanes: {top: {rank: 1}}\nroutes:\n  - {match: /ops/, gate: ops, lane: top}\n  - {match: /op2/, gate: ops}\n", Warning, 8, []string{"gate ops has lanes, and no max_wait"}},
		{"lane_reserves_most", "routes:\n", "  ops: {max_in_flight: 3}\nlanes: {top: {rank: 1, reserved: 2}}\nroutes:\n  - {match: /ops/, gate: ops, lane: top}\n  - {match: /op2/, gate: ops}\n", Warning, 8, []string{"lanes reserve 2 of the 3 units of gate ops"}},
		{"retries_unused", "gates:\n", "retries: {key_header: Idempotency-Key}\ngates:\n", Warning, 5, []string{"no gate has lanes"}},
		{"body_never_first", "max_in_flight: 12", "max_in_flight: 12, acquire: {body: 65MiB}", Warning, 7, []string{"gate orders"}},
		{"spool_unused", "gates:\n", "spool: {memory: 1MiB}\ngates:\n", Warning, 5, []string{"spool.memory is set", "hold: upstream_done"}},
		{"spool_never", "gates:\n  reports: {", "spool: {per_answer: 65MiB}\ngates:\n  reports: {hold: upstream_done, ", Warning, 5, []string{"spool.per_answer is 68157440 bytes", "spool.memory holds 67108864"}},
		{"spool_directory", "gates:\n  reports: {", "spool: {directory: /nowhere/at/all}\ngates:\n  reports: {hold: upstream_done, ", Warning, 5, []string{"/nowhere/at/all", "serve does not start", "make the directory"}},
		{"hold_short", "max_in_flight: 12", "max_in_flight: 12, hold: first_byte", Warning, 7, []string{"gate orders", "pool db", "more than 12"}},
		{"streams_unbounded", "max_in_flight: 12", "max_in_flight: 12, streams: release", Warning, 7, []string{"streams of gate orders"}},
		{"streams_unbounded", "max_in_flight: 12", "max_in_flight: 12, streams: {slot: release}", Warning, 7, []string{"streams of gate orders"}},
		{"route_never_matches", "routes:\n", "routes:\n  - {match: CONNECT /x, exempt: true}\n", Error, 9, []string{"CONNECT names no path"}},
		{"health_gated", "/health, exempt: true", "/health, gate: orders", Warning, 9, []string{"the health check /health stands in the line of gate orders"}},
		{"health_gated", "routes:\n", "routes:\n  - {match: GET /api/readyz/, gate: orders}\n", Warning, 9, []string{"GET /api/readyz/"}},
		{"admin_token", "front_timeout", "admin: {listen: :9001, token_file: testdata/short.token}\nfront_timeout", Warning, 2, []string{"has 6 characters and can be guessed"}},
		{"admin_network", "front_timeout", "admin: {listen: :9001, token_file: testdata/short.token}\nfront_timeout", Unknown, 2, []string{"without TLS"}},
		{"trust_everybody", "[127.0.0.1]", "[127.0.0.1, 0.0.0.0/0]", Warning, 3, []string{"0.0.0.0/0, which is everybody"}},
		{"trust_everybody", "[127.0.0.1]", "['::/0']", Warning, 3, []string{"::/0"}},
		{"trust_nobody", "trusted_proxies: [127.0.0.1]\n", "", Warning, 2, []string{"trusted_proxies is empty"}},
		{"caller_unread", "trusted_proxies: [127.0.0.1]\n", "caller: {header: Forwarded}\n", Warning, 3, []string{"caller.header is Forwarded", "read from nobody"}},
		{"caller_unread", "trusted_proxies: [127.0.0.1]\npools: {db: 20}\ngates:\n", "pools: {db: 20}\ngates:\n  x: {max_in_flight: 2, per_caller: {max_in_flight: 1, by: {header: X-Company}}}\n", Warning, 5, []string{"gate x tells callers apart by X-Company", "all count by address"}},
		{"caller_one", "trusted_proxies: [127.0.0.1]\npools: {db: 20}\ngates:\n", "pools: {db: 20}\ngates:\n  x: {max_in_flight: 2, per_caller: {max_in_flight: 1}}\n", Error, 5, []string{"all callers are one"}},
		{"connections_one", "trusted_proxies: [127.0.0.1]\n", "connections: {per_address: 9}\n", Error, 3, []string{"all its connections are of one address"}},
		{"caller_unbound", "max_in_flight: 4", "max_in_flight: 4, per_caller: {max_in_flight: 4}", Warning, 6, []string{"bounds nothing; write 2"}},
		{"trust_ids", "front_timeout", "request_id: {trust: everybody}\nfront_timeout", Warning, 2, []string{"request_id.trust is everybody"}},
	} {
		text := strings.Replace(quiet, c.old, c.new, 1)
		if text == quiet {
			t.Fatalf("%s: %q is not in the file", c.rule, c.old)
		}
		found := only(Check(parse(t, text)), c.rule)
		if len(found) != 1 || found[0].Severity != c.severity || found[0].Pos.Line != c.line {
			t.Errorf("%s, %q: %v; want one %v in line %d", c.rule, c.new, found, c.severity, c.line)
			continue
		}
		for _, part := range c.say {
			if !strings.Contains(found[0].Text, part) {
				t.Errorf("%s: %q lacks %q", c.rule, found[0].Text, part)
			}
		}
	}
}

// TestRulesHoldTheirTongue: the neighbours of what a rule is about.
func TestRulesHoldTheirTongue(t *testing.T) {
	for _, c := range []struct{ rule, old, new string }{
		{"lane_alone", "routes:\n", "lanes: {top: {rank: 1, reserved: 6}}\nroutes:\n  - {match: /ops/, gate: orders, lane: top}\n"},
		{"lane_reserves_most", "routes:\n", "lanes: {top: {rank: 1, reserved: 6}}\nroutes:\n  - {match: /ops/, gate: orders, lane: top}\n"},
		{"lane_no_line", "routes:\n", "  ops: {max_in_flight: 4}\nlanes: {top: {rank: 1, reserved: 1}}\nroutes:\n  - {match: /ops/, gate: ops, lane: top}\n  - {match: /op2/, gate: ops}\n"},
		{"lane_unused", "routes:\n", "lanes: {top: {rank: 1}}\nroutes:\n  - {match: /ops/, gate: orders, lane: top}\n"},
		{"drain_timeout", "front_timeout", "drain_timeout: 30s\nfront_timeout"},
		{"wait_beyond_timeout", "max_wait: 100ms", "max_wait: 29s"},
		{"wait_long", "max_wait: 100ms", "max_wait: 999ms"},
		{"wait_long", "max_wait: 100ms", "max_wait: 30s"}, // the worse rule says it
		{"wait_short", "max_wait: 100ms", "max_wait: 1ms"},
		{"caller_unread", "front_timeout", "caller: {header: Forwarded}\nfront_timeout"},
		{"caller_unbound", "max_in_flight: 4", "max_in_flight: 4, per_caller: {max_in_flight: 3, by: {header: X-Company}}"},
		{"connections_one", "front_timeout", "connections: {per_address: 9}\nfront_timeout"},
		{"caller_one", "max_in_flight: 4", "max_in_flight: 4, per_caller: {max_in_flight: 3}"},
		{"wait_short", "max_wait: 100ms, max_waiting: 16", "max_wait: 0"},
		{"line_long", "", ""},
		{"line_long", "max_in_flight: 4", "max_in_flight: {auto: {start: 1, max: 8}}"},
		{"auto_deadline", "max_in_flight: 12", "max_in_flight: {auto: {deadline: 29s}}"},
		{"auto_wait", "max_in_flight: 12, max_wait: 50ms", "max_in_flight: auto, max_wait: 999ms"},
		{"pool_unknown", "max_in_flight: 12, max_wait: 50ms, pool: db", "max_in_flight: auto"},
		{"caller_unbound", "max_in_flight: 4", "max_in_flight: auto, per_caller: {max_in_flight: 30}"},
		{"line_long", "max_in_flight: 4", "max_in_flight: closed"},
		{"retry_after", "", ""},
		{"pool_size", "{db: 20}", "{db: 20, unused: 1}"},
		{"pool_unused", "", ""},
		{"pool_unused", "max_in_flight: 4", "max_in_flight: closed"},
		{"pool_unknown", "", ""},
		{"pool_unknown", "gates:\n", "gates:\n  shut: {max_in_flight: closed}\n"},
		{"gate_unused", "", ""},
		{"gate_unused", "  orders: {max_in_flight: 12,", "  sockets: {max_in_flight: 1, pool: db}\n  orders: {max_in_flight: 12, streams: sockets,"},
		{"hold_short", "max_in_flight: 4, max_wait: 100ms, max_waiting: 16, pool: db", "max_in_flight: 4, hold: first_byte"},
		{"hold_short", "max_in_flight: 4", "max_in_flight: 4, hold: handler"},
		{"hold_short", "max_in_flight: 4", "max_in_flight: 4, hold: upstream_done"},
		{"spool_unused", "gates:\n  reports: {", "spool: {per_answer: 64KiB}\ngates:\n  reports: {hold: upstream_done, "},
		{"spool_never", "gates:\n  reports: {", "spool: {per_answer: 64MiB}\ngates:\n  reports: {hold: upstream_done, "},
		{"spool_directory", "gates:\n  reports: {", "spool: {directory: /tmp}\ngates:\n  reports: {hold: upstream_done, "},
		{"spool_directory", "gates:\n", "spool: {directory: /nowhere/at/all}\ngates:\n"},
		{"streams_unbounded", "max_in_flight: 4", "max_in_flight: 4, streams: hold"},
		{"body_never_first", "max_in_flight: 12", "max_in_flight: 12, acquire: {body: 64MiB}"},
		{"rules_unused", "max_in_flight: 4", "max_in_flight: 4, streams: {max_life: 1h}"},
		{"route_never_matches", "routes:\n", "routes:\n  - {match: /health/, exempt: true}\n  - {match: 'PUT h.example/x/{y}', exempt: true}\n"},
		{"health_gated", "routes:\n", "routes:\n  - {match: /healthcare/, gate: orders}\n"},
		{"health_gated", "routes:\n", "routes:\n  - {match: /health/records/, gate: orders}\n"},
		{"admin_open", "front_timeout", "admin: {listen: :9001, token_file: testdata/short.token}\nfront_timeout"},
		{"admin_token", "front_timeout", "admin: {listen: :9001, token_file: testdata/long.token}\nfront_timeout"},
		{"admin_token", "front_timeout", "admin: {listen: 127.0.0.1:9001, token_file: testdata/short.token}\nfront_timeout"},
		{"admin_network", "", ""},
		{"admin_network", "front_timeout", "admin: unix:/run/admin.sock\nfront_timeout"},
		{"trust_everybody", "[127.0.0.1]", "[0.0.0.0/1]"},
		{"trust_nobody", "front_timeout: 60s\ntrusted_proxies: [127.0.0.1]\n", ""},
		{"trust_nobody", "trusted_proxies: [127.0.0.1]\n", "listen: unix:/run/web.sock\n"},
		{"trust_ids", "front_timeout", "request_id: {trust: nobody}\nfront_timeout"},
	} {
		text := quiet
		if c.old != "" {
			if text = strings.Replace(quiet, c.old, c.new, 1); text == quiet {
				t.Fatalf("%s: %q is not in the file", c.rule, c.old)
			}
		}
		for _, f := range only(Check(parse(t, text)), c.rule) {
			if f.Severity != OK {
				t.Errorf("%q: %v", c.new, f)
			}
		}
	}
}

// TestQU20WaitBeyondTimeouts: a front that waits 5 s, a line that waits 10 s.
func TestQU20WaitBeyondTimeouts(t *testing.T) {
	findings := Check(parse(t, `upstream: http://127.0.0.1:8000
front_timeout: 5s
timeouts: {upstream_response: 4s}
trusted_proxies: [127.0.0.1]
gates: {a: {max_in_flight: 1, max_wait: 10s}}
routes: [{match: /, gate: a}]
`))
	for _, rule := range []string{"timeout_chain", "wait_beyond_timeout"} {
		if found := only(findings, rule); len(found) != 1 || found[0].Severity != Error {
			t.Errorf("%s says %v, want an error", rule, found)
		}
	}
	if findings[0].Severity != Error || Worst(findings) != Error {
		t.Errorf("the worst does not come first: %v", findings)
	}
}

// TestChainRules: in a chain the first gate with rules decides, and another one with
// others is told of.
func TestChainRules(t *testing.T) {
	file := func(orders, reports string) string {
		return strings.NewReplacer("max_in_flight: 12", "max_in_flight: 12"+orders, "max_in_flight: 4", "max_in_flight: 4"+reports).Replace(quiet)
	}
	for _, c := range []struct {
		orders, reports string
		want            int
	}{
		{", hold: first_byte", ", streams: {max_life: 1h}", 1},
		{", acquire: body", ", upload: {max_time: 1m}", 1},
		{", acquire: body", ", hold: first_byte", 0},
		{", hold: first_byte", ", hold: first_byte", 0},
		{", hold: first_byte", ", hold: handler", 0},
		{"", ", hold: first_byte", 0},
	} {
		found := only(Check(parse(t, file(c.orders, c.reports))), "rules_unused")
		if len(found) != c.want || c.want > 0 && (found[0].Severity != Warning || found[0].Pos.Line != 12 || !strings.Contains(found[0].Text, "gate orders, whose")) {
			t.Errorf("%+v: %v", c, found)
		}
	}
}

func TestRetryAfterBelowTheWait(t *testing.T) {
	file := func(retry string) string {
		return `upstream: http://127.0.0.1:8000
gates: {a: {max_in_flight: 1, max_wait: 3s, refuse: {retry_after: ` + retry + `}}}
routes: [{match: /, gate: a}]
`
	}
	for retry, want := range map[string]int{"2s": 1, "3s": 0, "{max: 2s}": 1, "{max: 3s}": 0, "{min: 1s}": 0} {
		found := only(Check(parse(t, file(retry))), "retry_after")
		if len(found) != want {
			t.Errorf("%s: %v, want %d findings", retry, found, want)
		}
		if want == 1 && found[0].Pos.Line != 2 {
			t.Errorf("%s: in line %d, want 2", retry, found[0].Pos.Line)
		}
	}
}

// TestShadowedRoutes: a route is dead when more specific ones take all of it, and
// alive as long as one shape of request is left to it.
func TestShadowedRoutes(t *testing.T) {
	file := func(patterns ...string) string {
		text := "upstream: http://127.0.0.1:8000\ngates: {a: {max_in_flight: 1}}\nroutes:\n"
		for _, p := range append(patterns, "/") {
			text += "  - {match: \"" + p + "\", gate: a}\n"
		}
		return text
	}
	for _, c := range []struct {
		dead     string
		patterns []string
	}{
		{"/a/", []string{"/a/", "/a/{$}", "/a/{x}", "/a/{x}/"}},
		{"", []string{"/a/", "/a/{$}", "/a/{x}"}},
		{"", []string{"/a/", "/a/{x}", "/a/{x}/"}},
		{"", []string{"/a/", "/a/{$}", "/a/{x}/"}},
		{"", []string{"/a/", "GET /a/{$}", "/a/{x}", "/a/{x}/"}},
		{"", []string{"/a/", "h.example/a/"}},
		{"CONNECT /x", []string{"CONNECT /x"}},
		{"", []string{"CONNECT h.example/"}},
		{"", []string{"GET /x", "HEAD /x", "POST /x", "/x"}},
		{"", []string{"/x/{y}/z", "/x/y/z", "/x/{y}/{w...}"}},
	} {
		found := only(Check(parse(t, file(c.patterns...))), "route_never_matches")
		switch {
		case c.dead == "" && len(found) > 0:
			t.Errorf("%v: %v", c.patterns, found)
		case c.dead != "" && (len(found) != 1 || !strings.Contains(found[0].Text, "the route "+c.dead+":")):
			t.Errorf("%v: %v, want that %s never matches", c.patterns, found, c.dead)
		}
	}
}

// TestAdminOpen: config refuses such a file, so the rule is asked directly.
func TestAdminOpen(t *testing.T) {
	c := parse(t, quiet)
	c.Admin.Address = "0.0.0.0:8081"
	if found := only(Check(c), "admin_open"); len(found) != 1 || found[0].Severity != Error {
		t.Errorf("%v, want an error", found)
	}
}

func TestFlagsAreCheckedToo(t *testing.T) {
	c, err := config.FromFlags(config.Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "16", MaxWait: "2s"})
	if err != nil {
		t.Fatal(err)
	}
	findings := Check(c)
	if found := only(findings, "wait_long"); len(found) != 1 || strings.Contains(found[0].String(), "line") {
		t.Errorf("%v, want one finding without a line", found)
	}
}

func TestFindingsAsText(t *testing.T) {
	f := Finding{Warning, "wait_long", config.Pos{Line: 6, Col: 3}, "gates.a.max_wait", "max_wait is long"}
	if got, want := f.String(), "warning: wait_long: line 6: max_wait is long"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	text, err := json.Marshal(f)
	want := `{"severity":"warning","rule":"wait_long","pos":{"line":6,"col":3},"key":"gates.a.max_wait","text":"max_wait is long"}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	if Worst(nil) != OK {
		t.Errorf("nothing found is %v", Worst(nil))
	}
	findings := Check(parse(t, quiet))
	if !slices.IsSortedFunc(findings, func(a, b Finding) int { return int(a.Severity) - int(b.Severity) }) {
		t.Errorf("not the worst first: %v", findings)
	}
}
