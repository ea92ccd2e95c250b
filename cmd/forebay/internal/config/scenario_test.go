package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/forebay/internal/admit"
	"example.com/forebay/internal/simulate"
)

// scenarioPlaces has one place for each mapping of a scenario, by how docs/scenarios.md
// calls it.
var scenarioPlaces = map[string]string{
	"gates.NAME.max_in_flight.aimd":      "gates: {g: {max_in_flight: {aimd: {%s}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n",
	"gates.NAME.max_in_flight.vegas":     "gates: {g: {max_in_flight: {vegas: {%s}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n",
	"gates.NAME.max_in_flight.gradient2": "gates: {g: {max_in_flight: {gradient2: {%s}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n",
	"":                                   "%s\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"resources.NAME":                     "resources: {db: {%s}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"resources.NAME.contention":          "resources: {db: {contention: {%s}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"resources.NAME.cliff":               "resources: {db: {cliff: {at: 30, power: 1.5, %s}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"resources.NAME.changes[]":           "resources: {db: {changes: [{at: 1s, speed: 1, %s}]}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"resources.NAME.pauses":              "resources: {db: {pauses: {every: 5s, for: 200ms, %s}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n",
	"routes.NAME":                        "resources: {db: {}}\ngates: {orders: {max_in_flight: 1}, reports: {max_in_flight: 1}}\nroutes: {r: {%s}}\nclients: {c: {route: r, rate: 1}}\n",
	"routes.NAME.work[]":                 "resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: 1ms, %s}]}}\nclients: {c: {route: r, rate: 1}}\n",
	"clients.NAME":                       "routes: {orders: {}}\nclients: {c: {route: orders, rate: 1, %s}}\n",
	"clients.NAME.bursts":                "routes: {r: {}}\nclients: {c: {route: r, rate: 1, bursts: {%s}}}\n",
	"clients.NAME.steps[]":               "routes: {r: {}}\nclients: {c: {route: r, rate: 1, steps: [{at: 10s, times: 1, %s}]}}\n",
	"clients.NAME.retries":               "routes: {r: {}}\nclients: {c: {route: r, rate: 1, retries: {%s}}}\n",
}

// scenarioError returns what is said about a scenario in testdata, "" if nothing.
func scenarioError(text string, sets ...string) string {
	_, err := ParseScenario("testdata/../s.yaml", []byte(text), sets...)
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "testdata/../", "")
}

// TestScenarioReferenceKnowsTheKeys: the documentation and the reader have the same keys.
func TestScenarioReferenceKnowsTheKeys(t *testing.T) {
	for level, place := range scenarioPlaces {
		said := scenarioError(fmt.Sprintf(place, "zzzzzzzzzzzz: 1"))
		_, list, found := strings.Cut(strings.Split(said, "\n")[0], "the keys here are ")
		if !found {
			t.Errorf("%s: %s", level, said)
			continue
		}
		got := strings.Split(list, ", ")
		var want []string
		for _, k := range scenarioKeys {
			if rest, ok := strings.CutPrefix("."+k.Name, strings.TrimSuffix("."+level, ".")+"."); ok {
				first, _, _ := strings.Cut(rest, ".")
				if first = strings.TrimSuffix(first, "[]"); !slices.Contains(want, first) {
					want = append(want, first)
				}
			}
		}
		if level == "" && !slices.Contains(want, "gates") {
			want = append(want, "gates")
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: the reader has %v, the reference %v", level, got, want)
		}
	}
}

// TestScenarioExamples: each example is accepted where it belongs, and so is the whole.
func TestScenarioExamples(t *testing.T) {
	if said := scenarioError(ExampleScenario); said != "" {
		t.Errorf("the example is refused: %s", said)
	}
	file, err := os.ReadFile(filepath.Join(docs, "..", "examples", "scenarios", "shop.yaml"))
	if err != nil || string(file) != ExampleScenario {
		t.Errorf("examples/scenarios/shop.yaml is not the example: %v", err)
	}
	for _, k := range scenarioKeys {
		place, ok := scenarioPlaces[k.level()]
		if !ok {
			t.Errorf("%s stands in no place that is tried", k.Name)
			continue
		}
		text := k.last() + ": " + k.Example
		before, after, _ := strings.Cut(place, "%s")
		own := regexp.MustCompile(`\b` + k.last() + `: [^,{}]*, `) // the place has one already
		place = own.ReplaceAllString(before, "") + "%s" + after
		if said := scenarioError(fmt.Sprintf(place, text)); said != "" {
			t.Errorf("%s: the example is refused: %s\n%s", k.Name, said, fmt.Sprintf(place, text))
		}
	}
}

func TestScenarioIsRead(t *testing.T) {
	text := `
for: 20s
warm_up: 2s
every: 500ms
seed: 7
instances: 2
resources:
  web: {cores: 1.5, contention: {sigma: 0.02, kappa: 0.0006}}
  db:
    servers: 20
    changes: [{at: 5s, speed: 0.5}, {at: 8s, speed: 1, servers: 10}]
    pauses: {every: 5s, for: 200ms}
  disk: {cliff: {at: 30, power: 1.5}, throughput: {10: 9.5, 1: 1}}
gates:
  orders: {max_in_flight: 10, max_wait: 100ms, max_waiting: 7, per_caller: {max_in_flight: 3}, refuse: {retry_after: {min: 2s, max: 9s}}, hold: first_byte}
  reports: {max_in_flight: 3, refuse: {retry_after: 5s}}
routes:
  orders:
    gate: orders
    work: [{at: web, takes: 1ms}, {at: db, takes: {mix: [{share: 90%, takes: {exponential: 15ms}}, {share: 10%, takes: {uniform: {from: 100ms, to: 1s}}}]}}]
  export: {gates: [orders, reports], cost: 2, work: [{at: db, takes: {lognormal: {mean: 20ms, sigma: 1.5}}}, {at: disk, takes: {pareto: {mean: 5ms, shape: 2.5}}}]}
clients:
  shoppers: {route: orders, rate: 12.5, even: true, batch: 4, callers: 20, deadline: 1s, tells: true, cancels: true, bursts: {high: 3}, steps: [{at: 1s, times: 5}], retries: {max: 2, honours: true}}
  replay: {route: export, trace: trace.txt}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trace.txt"), []byte("# when\n0.5\n1s\n1500ms # late\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ParseScenario(filepath.Join(dir, "s.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	machine := func(limit int, wait time.Duration, waiting, perCaller int) admit.Config {
		return admit.Config{Limit: limit, MaxWait: wait, MaxWaiting: waiting, Measure: true, PerCaller: perCaller, MaxCallers: admit.DefaultMaxCallers}
	}
	want := &simulate.Scenario{
		Name: "s.yaml", For: 20 * time.Second, WarmUp: 2 * time.Second, Every: 500 * ms, Seed: 7, Instances: 2,
		Resources: []simulate.Resource{
			{Name: "web", Cores: 1.5, Sigma: .02, Kappa: .0006},
			{Name: "db", Servers: 20, Changes: []simulate.Change{{At: 5 * time.Second, Speed: .5}, {At: 8 * time.Second, Speed: 1, Servers: 10}}, Pauses: simulate.Pauses{Every: 5 * time.Second, For: 200 * ms}},
			{Name: "disk", Cliff: simulate.Cliff{At: 30, Power: 1.5}, Throughput: []simulate.Rate{{Calls: 1, Does: 1}, {Calls: 10, Does: 9.5}}},
		},
		Gates: []simulate.Gate{
			{Name: "orders", Config: machine(10, 100*ms, 7, 3), RetryLo: 2, RetryHi: 9},
			{Name: "reports", Config: machine(3, 0, 0, 0), RetryLo: 5, RetryHi: 5},
		},
		Routes: []simulate.Route{
			{Name: "orders", Gates: []string{"orders"}, Work: []simulate.Visit{{At: "web", Takes: simulate.Fixed(ms)}, {At: "db", Takes: simulate.Mix{
				{Share: .9, Takes: simulate.Exponential(15 * ms)}, {Share: .1, Takes: simulate.Uniform{From: 100 * ms, To: time.Second}},
			}}}},
			{Name: "export", Gates: []string{"orders", "reports"}, Cost: 2, Work: []simulate.Visit{
				{At: "db", Takes: simulate.Lognormal{Average: 20 * ms, Sigma: 1.5}}, {At: "disk", Takes: simulate.Pareto{Average: 5 * ms, Shape: 2.5}},
			}},
		},
		Clients: []simulate.Client{
			{
				Name: "shoppers", Route: "orders", Callers: 20, Deadline: time.Second, Tells: true, Cancels: true,
				Arrivals: simulate.Arrivals{Rate: 12.5, Even: true, Batch: 4, Bursts: simulate.Bursts{High: 3, Low: .25, Mean: 200 * ms}, Steps: []simulate.Step{{At: time.Second, Times: 5}}},
				Retries:  simulate.Retries{Max: 2, Backoff: 100 * ms, Factor: 2, Jitter: .5, Honours: true},
			},
			{Name: "replay", Route: "export", Arrivals: simulate.Arrivals{Times: []time.Duration{500 * ms, time.Second, 1500 * ms}}},
		},
	}
	if g, w := asText(got), asText(want); g != w {
		t.Errorf("read\n%s\nwant\n%s", g, w)
	}
	if _, err := simulate.Run(got, nil); err != nil {
		t.Error(err)
	}
}

// asText is a scenario but for its limiters, which are functions.
func asText(sc *simulate.Scenario) string {
	type gate struct {
		Name             string
		Config           admit.Config
		RetryLo, RetryHi int
	}
	shown := struct {
		*simulate.Scenario
		Gates []gate // in place of the scenario's
	}{Scenario: sc}
	for _, g := range sc.Gates {
		shown.Gates = append(shown.Gates, gate{g.Name, g.Config, g.RetryLo, g.RetryHi})
	}
	text, err := json.MarshalIndent(shown, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestScenarioMistakes: each is said with its place and remedy.
func TestScenarioMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "s.yaml:1:1: the file is empty; it needs at least routes and clients; see docs/scenarios.md"},
		"nobody":          {"routes: {r: {}}\n", "s.yaml:1:1: clients is missing; say who calls: clients: {shop: {route: orders, rate: 200}}"},
		"a config":        {"upstream: http://127.0.0.1:8000\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:1: unknown key upstream; the keys here are for, warm_up, every, seed, instances, resources, gates, routes, clients"},
		"misspelt":        {"routes: {r: {}}\nclients: {c: {route: r, rat: 1}}\n", "s.yaml:2:25: unknown key rat in clients.c; did you mean rate?"},
		"no such route":   {"routes: {orders: {}}\nclients: {c: {route: order, rate: 1}}\n", "s.yaml:2:22: route is order, and there is no such route; did you mean orders?"},
		"no such gate":    {"routes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:20: gate is g, and there is no such gate; add g to gates"},
		"gate twice":      {"gates: {g: {max_in_flight: 1}}\nroutes: {r: {gates: [g, g]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:13: r passes the gate g twice; name it once"},
		"both":            {"gates: {g: {max_in_flight: 1}, h: {max_in_flight: 1}}\nroutes: {r: {gate: g, gates: [h]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:23: gate and gates are both given; keep one of the two"},
		"auto":            {"gates: {g: {max_in_flight: {auto: {min: 5, max: 4}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:49: max is 4, below min, which is 5; write a max of at least 5"},
		"law":             {"gates: {g: {max_in_flight: {vegas: {min: 5, max: 4}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:36: vegas cannot be used: max is 4; it must be from min, 5, to 1048575; let start be from min to max"},
		"auto misspelt":   {"gates: {g: {max_in_flight: {auto: {deadlin: 1s}}}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:36: unknown key deadlin in gates.g.max_in_flight.auto; did you mean deadline?"},
		"closed":          {"gates: {g: {max_in_flight: closed}}\nroutes: {r: {gate: g}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:9: the gate g is closed, so nothing would be seen of it; write a number for max_in_flight"},
		"never":           {"routes: {r: {}}\nclients: {c: {route: r}}\n", "s.yaml:2:14: c does not say how often it calls; write rate: NUMBER, in calls a second, or trace: FILE"},
		"warm-up":         {"for: 5s\nwarm_up: 5s\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:10: warm_up is 5s, and the whole takes 5s; write less than for, or a longer for"},
		"points":          {"for: 24h\nevery: 1ms\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:8: every is 1ms, which makes more than 100000 points; write more, such as 14m24s"},
		"half a visit":    {"resources: {db: {}}\nroutes: {r: {work: [{at: db}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:21: work[0] needs at and takes; write {at: RESOURCE, takes: 20ms}"},
		"no unit":         {"resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: 20}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:37: takes is 20, a number without a unit; add the unit that is meant: 20ms or 20s"},
		"two kinds":       {"resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: {exponential: 1ms, uniform: {from: 1ms, to: 2ms}}}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:37: takes has 2 distributions; write a time such as 20ms, or one of exponential, uniform, lognormal, pareto and mix"},
		"shares":          {"resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: {mix: [{share: 90%, takes: 1ms}]}}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:43: mix has 1 shares of 90% together; let the shares be 100% together"},
		"backwards":       {"resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: {uniform: {from: 2ms, to: 1ms}}}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:47: uniform goes from 2ms down to 1ms; write the shorter one as from"},
		"half a cliff":    {"resources: {db: {cliff: {at: 3}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:25: cliff needs at and power; write {at: 30, power: 1.5}"},
		"long pauses":     {"resources: {db: {pauses: {every: 1s, for: 1s}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:26: pauses lasts 1s of every 1s; write a longer every"},
		"does nothing":    {"resources: {db: {throughput: {1: 1, 5: 0}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:30: throughput ends in nothing, so calls would never end; let the last number be more than 0"},
		"no number":       {"resources: {db: {throughput: {x: 1}}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:31: x is no number of calls; write {1: 1, 10: 9.5, 40: 25}"},
		"order":           {"resources: {db: {changes: [{at: 2s, speed: 1}, {at: 1s, speed: 2}]}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:48: changes[1] comes at 1s, before the one above; write the earlier one first"},
		"no file":         {"routes: {r: {}}\nclients: {c: {route: r, trace: nothing.txt}}\n", "s.yaml:2:32: trace cannot be read: open nothing.txt: no such file or directory; name a file with one time a line, in seconds, or a log of decisions"},
		"steps":           {"routes: {r: {}}\nclients: {c: {route: r, rate: 1, steps: [{at: 2s, times: 1}, {at: 1s, times: 2}]}}\n", "s.yaml:2:62: steps[1] comes at 1s, before the one above; write the earlier one first"},
		"a bad decimal":   {"routes: {r: {}}\nclients: {c: {route: r, rate: 1e3}}\n", "s.yaml:2:31: rate is 1e3; write a number from 0 to 1e+07, such as 1.5"},
		"a share":         {"resources: {db: {}}\nroutes: {r: {work: [{at: db, takes: {mix: [{share: 0.5, takes: 1ms}]}}]}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:2:52: share is 0.5; write 1% to 100%, in whole ones"},
		"change of what?": {"resources: {db: {changes: [{at: 2s}]}}\nroutes: {r: {}}\nclients: {c: {route: r, rate: 1}}\n", "s.yaml:1:28: changes[0] needs at, and speed or servers; write {at: 40s, speed: 0.5}"},
	} {
		said := scenarioError(c.text)
		if !slices.Contains(strings.Split(said, "\n"), c.want) {
			t.Errorf("%s: said\n%s\nwant\n%s", name, said, c.want)
		}
	}
}

// TestSet: a value can be given beside the file, for a key that is there or is not.
func TestSet(t *testing.T) {
	sc, err := ParseScenario("s.yaml", []byte(ExampleScenario), "gates.orders.max_in_flight=24", "clients.office.retries={max: 1}", "resources.db.pauses.every=5s", "resources.db.pauses.for=1s", "seed=9")
	if err != nil {
		t.Fatal(err)
	}
	if sc.Gates[1].Config.Limit != 24 || sc.Clients[1].Retries.Max != 1 || sc.Resources[1].Pauses.For != time.Second || sc.Seed != 9 {
		t.Errorf("%+v", sc)
	}
	for set, want := range map[string]string{
		"seed":                         "s.yaml: --set seed is no key with a value; write --set gates.orders.max_in_flight=24",
		"seed.x=1":                     "s.yaml: --set seed.x=1: seed is no mapping; give the whole of it a value",
		"gates.orders.max_wiat=1s":     "s.yaml: unknown key max_wiat in gates.orders; did you mean max_wait?",
		"gates.orders.max_in_flight=0": "s.yaml: max_in_flight is 0, which could mean closed or no limit; write closed to refuse everybody, or a number from 1",
	} {
		text := ExampleScenario + "seed: 1\n"
		if said := scenarioError(text, set); said != want {
			t.Errorf("--set %s: said %s, want %s", set, said, want)
		}
	}
}

// TestTraceFromALog: the calls of one route, from when the first of them came. Who waited
// came before its decision, and perhaps before others whose decisions are in the log
// earlier.
func TestTraceFromALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.log")
	log := `{"time":"2026-11-30T10:00:00Z","level":"INFO","msg":"started"}
{"time":"2026-11-30T10:00:01Z","decision":"accepted","route":"GET /x"}
{"time":"2026-11-30T10:00:02.5Z","decision":"rejected_busy","route":"/"}
{"time":"2026-11-30T10:00:04Z","decision":"accepted","route":"/","waited_ms":2000}
{"time":"2026-11-30T10:00:05Z","decision":"","route":"/","held_ms":1000}
`
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	for route, want := range map[string]string{"/": "[0s 500ms]", "": "[0s 1s 1.5s]"} {
		times, err := readTrace(path, route)
		if err != nil || fmt.Sprint(times) != want {
			t.Errorf("route %q: %v %v, want %s", route, times, err, want)
		}
	}
	for text, want := range map[string]string{
		"1\n0.5\n": "line 2: it is earlier than the one before", "x\n": "line 1: x is no time", "\n": "there is no time in it", "-1s\n": "line 1: it is earlier than the one before",
		log + "1\n": "some lines are times and some are decisions",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readTrace(path, ""); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := readTrace(t.TempDir(), ""); err == nil {
		t.Error("a directory is read")
	}
}

// TestAutoIsSimulated: a limit that finds itself is that of the library, one for each
// instance, and another run is the same.
func TestAutoIsSimulated(t *testing.T) {
	const text = "for: 20s\nwarm_up: 5s\ninstances: 2\nresources: {db: {servers: 50}}\ngates: {g: {max_in_flight: %s, max_wait: 100ms}}\nroutes: {r: {gate: g, work: [{at: db, takes: {exponential: 50ms}}]}}\nclients: {c: {route: r, rate: 2000, deadline: 1s}}\n"
	for _, limit := range []string{"auto", "{auto: {max: 500, deadline: 1s}}", "{aimd: {timeout: 150ms}}", "{gradient2: {healthy: 60ms, start: 40}}"} {
		sc, err := ParseScenario("s.yaml", fmt.Appendf(nil, text, limit))
		if err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(sc, nil)
		if err != nil || r.Goodput < .9 || r.Gates[0].Limit < 30 || r.Gates[0].Limit > 300 {
			t.Errorf("%s: %v, %.3f of what could be, limits of %v together", limit, err, r.Goodput, r.Gates[0].Limit)
		}
		again, err := simulate.Run(sc, nil)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%s: %v, another run of it differs", limit, err)
		}
	}
}
