package config

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

// parseError is what Parse says about a text, "" if nothing.
func parseError(text string) string {
	if _, err := Parse("f", []byte(text)); err != nil {
		return err.Error()
	}
	return ""
}

func wantSaid(t *testing.T, text string, parts ...string) {
	t.Helper()
	said := parseError(text)
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("of\n%s\nis said\n%s\nwhich lacks %q", text, said, part)
		}
	}
}

// places are all mappings that have keys of their own, each with %s for one more.
var places = map[string]string{
	"":                           small + "%s\n",
	"admin":                      small + "admin: {listen: :9001, token_file: testdata/admin.token, %s}\n",
	"timeouts":                   small + "timeouts: {%s}\n",
	"tls":                        small + "tls: {cert_file: testdata/server.pem, key_file: testdata/server.key, %s}\n",
	"connections":                small + "connections: {%s}\n",
	"caller":                     small + "caller: {%s}\n",
	"deadline":                   small + "deadline: {%s}\n",
	"retries":                    small + "retries: {%s}\n",
	"request_id":                 small + "request_id: {%s}\n",
	"log":                        small + "log: {%s}\n",
	"gates.a":                    strings.Replace(small, "4}", "4, %s}", 1),
	"gates.a.max_in_flight":      strings.Replace(small, "4}", "{%s}}", 1),
	"gates.a.max_in_flight.auto": strings.Replace(small, "4}", "{auto: {%s}}}", 1),
	"gates.a.per_caller":         strings.Replace(small, "4}", "4, per_caller: {max_in_flight: 1, %s}}", 1),
	"gates.a.per_caller.by":      strings.Replace(small, "4}", "4, per_caller: {max_in_flight: 1, by: {%s}}}", 1),
	"intake":                     small + "intake: {%s}\n",
	"spool":                      small + "spool: {directory: /tmp, %s}\n",
	"gates.a.acquire":            strings.Replace(small, "4}", "4, acquire: {%s}}", 1),
	"gates.a.upload":             strings.Replace(small, "4}", "4, upload: {%s}}", 1),
	"gates.a.streams":            strings.Replace(small, "4}", "4, streams: {%s}}", 1),
	"gates.a.refuse":             strings.Replace(small, "4}", "4, refuse: {%s}}", 1),
	"gates.a.refuse.body":        strings.Replace(small, "4}", "4, refuse: {body: {file: testdata/busy.json, %s}}}", 1),
	"gates.a.refuse.retry_after": strings.Replace(small, "4}", "4, refuse: {retry_after: {%s}}}", 1),
	"gates.a.refuse.cors":        strings.Replace(small, "4}", "4, refuse: {cors: {origins: [https://a.example], %s}}}", 1),
	"lanes.x":                    small + "lanes: {x: {rank: 1, %s}}\n",
	"cluster":                    small + "cluster: {redis: redis://127.0.0.1, gates: [a], %s}\n",
	"cluster.tls":                small + "cluster: {redis: rediss://127.0.0.1, gates: [a], tls: {%s}}\n",
	"cluster.gates.a":            small + "cluster: {redis: redis://127.0.0.1, gates: {a: {%s}}}\n",
	"routes[0]":                  strings.Replace(small, "gate: a", "gate: a, %s", 1),
}

// TestCF01MisspeltKeysAreRefused: at every level, whatever the value, with the path.
func TestCF01MisspeltKeysAreRefused(t *testing.T) {
	for path, file := range places {
		for _, v := range []string{"5", "[1, 2]", "{a: 1}", "~", ""} {
			text := fmt.Sprintf(file, "limt: "+v)
			want := "unknown key limt in " + path + ";"
			if path == "" {
				want = "unknown key limt;"
			}
			wantSaid(t, text, want)
			if n := strings.Count(parseError(text), "\n"); n > 0 {
				t.Errorf("of\n%s\n%d things too many are said:\n%s", text, n, parseError(text))
			}
		}
	}
	for _, k := range reference {
		if strings.HasSuffix(k.Name, "NAME") {
			continue
		}
		for path, file := range places {
			if levelOfPath(path) != k.level() {
				continue
			}
			for _, odd := range []string{strings.ToUpper(k.last()), k.last() + "x", strings.ReplaceAll(k.last(), "_", "-")} {
				if odd != k.last() {
					wantSaid(t, fmt.Sprintf(file, odd+": "+k.Example), fmt.Sprintf("did you mean %s?", k.last()))
				}
			}
		}
	}
}

func levelOfPath(path string) string {
	return strings.NewReplacer("gates.a", "gates.NAME", "lanes.x", "lanes.NAME", "[0]", "[]").Replace(path)
}

// TestCF02DurationsHaveUnits: every key that takes a duration refuses a bare number,
// from a file and from a flag, and says what to write.
func TestCF02DurationsHaveUnits(t *testing.T) {
	keys := map[string]string{
		"drain_timeout":     small + "drain_timeout: %s\n",
		"front_timeout":     small + "front_timeout: %s\n",
		"read_header":       small + "timeouts: {read_header: %s}\n",
		"idle":              small + "timeouts: {idle: %s}\n",
		"upstream_response": small + "timeouts: {upstream_response: %s}\n",
		"max_wait":          strings.Replace(small, "4}", "4, max_wait: %s}", 1),
		"retry_after":       strings.Replace(small, "4}", "4, refuse: {retry_after: %s}}", 1),
		"min":               strings.Replace(small, "4}", "4, refuse: {retry_after: {min: %s}}}", 1),
		"max":               strings.Replace(small, "4}", "4, refuse: {retry_after: {max: %s}}}", 1),
		"withhold":          small + "cluster: {redis: redis://127.0.0.1, gates: {a: {withhold: %s}}}\n",
	}
	bad := map[string]string{
		"100": "add the unit that is meant: 100ms or 100s", `"100"`: "add the unit that is meant: 100ms or 100s",
		"1.5": "add the unit that is meant: 1.5ms or 1.5s", "-1s": "below zero", "-5": "below zero",
		"1d": "write 24h", "5S": "write 5s", `" 5s "`: "write 5s", "5 s": "write 5s", "PT5S": "no duration",
		"5sec": "write 5s", "1h30": "no duration", ".5s": "no duration", "+5s": "no duration", "1_0s": "no duration",
	}
	for key, file := range keys {
		for value, want := range bad {
			wantSaid(t, fmt.Sprintf(file, value), key+" is ", want)
		}
		if said := parseError(fmt.Sprintf(file, "100s")); said != "" {
			t.Errorf("%s: 100s is refused: %s", key, said)
		}
	}
	for value, want := range bad {
		if strings.ContainsAny(value, `"`) {
			continue
		}
		_, err := FromFlags(Flags{Upstream: "http://127.0.0.1:8000", MaxInFlight: "1", MaxWait: value})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--max-wait: is ") {
			t.Errorf("--max-wait %s: %v, want %q", value, err, want)
		}
	}
}

// TestCF03ScalarsMeanWhatTheySay: every key that takes a number refuses what YAML's
// versions read in several ways.
func TestCF03ScalarsMeanWhatTheySay(t *testing.T) {
	keys := map[string]string{
		"max_in_flight": strings.Replace(small, "4}", "%s}", 1),
		"max_waiting":   strings.Replace(small, "4}", "4, max_wait: 5ms, max_waiting: %s}", 1),
		"status":        strings.Replace(small, "4}", "4, refuse: {status: %s}}", 1),
		"db":            small + "pools: {db: %s}\n",
		"keep":          small + "log: {to: /x, keep: %s}\n",
	}
	for key, file := range keys {
		for value, want := range map[string]string{
			"010": "some readers take as octal; write 10", "0x10": "write 16", "0o17": "write 15", "1e3": "write 1000", "1_000": "write 1000",
			"~": "give it a value", "null": "give it a value", "": "give it a value", "4.5": "write a whole number", "12.0": "write 12",
			`"5"`: "write 5 without quotes", "'5'": "write 5 without quotes", "yes": "write", "on": "write", "true": "write",
			"-1": "below zero", ".inf": "write", "[5]": "is a list", "{a: 5}": "is a mapping", "5 5": "write a whole number",
		} {
			if key == "max_in_flight" && value == "{a: 5}" {
				wantSaid(t, fmt.Sprintf(file, value), "unknown key a in gates.a.max_in_flight; the keys here are auto")
				continue
			}
			wantSaid(t, fmt.Sprintf(file, value), key+" is ", want)
		}
	}
	wantSaid(t, small+"---\n"+small, "a second document begins")
	wantSaid(t, "", "the file is empty")
	wantSaid(t, "gates:\n\ta: 1\n", "2:1: the line is indented with a tab")
	wantSaid(t, "a: &x 1\nb: *x\n<<: {c: 1}\n", "an anchor (&x)", "an alias (*x)", "a merge key (<<)")
	wantSaid(t, small+small, "4:1: the key upstream is there already, in line 1")
}

// TestQU10ZeroClosedAndMissingDiffer: 0 is refused, closed closes, missing is refused.
func TestQU10ZeroClosedAndMissingDiffer(t *testing.T) {
	wantSaid(t, strings.Replace(small, "4}", "0}", 1), "which could mean closed or no limit; write closed")
	wantSaid(t, strings.Replace(small, "4}", "-1}", 1), "below zero")
	wantSaid(t, strings.Replace(small, "max_in_flight: 4", "", 1), "has no max_in_flight")
	c := mustParse(t, strings.Replace(small, "4}", "closed, max_wait: 100ms}", 1))
	gates, _, err := c.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gates.Get("a").Acquire(context.Background(), forebay.Call{}); err == nil {
		t.Error("a closed gate admits")
	}
	if got := gates.Get("a").Stats(); got.Capacity != 0 || got.RejectedBusy != 1 {
		t.Errorf("capacity %d, busy %d; want 0, 1", got.Capacity, got.RejectedBusy)
	}
}

// TestOP08LimitIsAskedFor: the limit comes from the file alone, whatever the machine is; what
// is no number is said with its place, and no number is put in its stead.
func TestOP08LimitIsAskedFor(t *testing.T) {
	cpus := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cpus)
	for _, n := range []int{1, 64} {
		runtime.GOMAXPROCS(n)
		wantSaid(t, strings.Replace(small, "max_in_flight: 4", "", 1), "has no max_in_flight, and no number is safe")
		for _, limit := range []string{"four", "4x", "''", "null", "0.5", "2.0"} {
			wantSaid(t, strings.Replace(small, "4}", limit+"}", 1), "max_in_flight")
		}
		if g := mustParse(t, small).Gate("a"); g.MaxInFlight != 4 {
			t.Errorf("4 gives %d on %d processors", g.MaxInFlight, n)
		}
	}
}

// TestQU17WaitOfNothing: omitted, 0 and 0s refuse at once; below zero is a mistake.
func TestQU17WaitOfNothing(t *testing.T) {
	for _, wait := range []string{"", ", max_wait: 0", ", max_wait: 0s"} {
		if g := mustParse(t, strings.Replace(small, "4}", "4"+wait+"}", 1)).Gate("a"); g.MaxWait != 0 {
			t.Errorf("%q gives %v", wait, g.MaxWait)
		}
	}
	wantSaid(t, strings.Replace(small, "4}", "4, max_wait: -1ns}", 1), "below zero")
	if g := mustParse(t, strings.Replace(small, "4}", "4, max_wait: 1ns}", 1)).Gate("a"); g.MaxWait != time.Nanosecond {
		t.Errorf("1ns gives %v", g.MaxWait)
	}
}

// TestCharacters: what is no text is said so, in its place, once, and the rest of the
// file is read all the same.
func TestCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"listen: \x80\n":                          "1:9: the byte 0x80 is not UTF-8",
		"a: é\nb: \xc3\n":                         "2:4: the byte 0xc3 is not UTF-8",
		"listen: a\x00\n":                         "1:10: the character U+0000",
		"listen: a\u0085b\n":                      "1:10: the character U+0085",
		"listen: a\u2028b\n":                      "1:10: the character U+2028",
		"a: b\ufeff\n":                            "1:5: a byte order mark stands in the middle",
		"a: b\rc: d\n":                            "1:5: a carriage return stands alone",
		"\xff\xfea\x00":                           "1:1: the file is UTF-16",
		"\xfe\xff\x00a":                           "1:1: the file is UTF-16",
		"gates:\n  \ta: 1\n\tb: 2\n":              "2:3: the line is indented with a tab",
		strings.Repeat("# none\n", 40000):         "1:1: the file has more than 256 KiB",
		"gates:\n\ta: 1\nlisten: 5\n":             "3:9: listen is 5",
		"log: {to: \x80}\ndrain_timeout: 5":       "2:16: drain_timeout is 5",
		strings.Repeat("[", 20000):                "nested too deeply",
		strings.Repeat("- ", 20000):               "nested too deeply",
		strings.Repeat("{a: ", 15) + "x":          "is not closed",
		"a: " + strings.Repeat("x", 1000) + ": 1": "1:",
	} {
		_, err := Parse("bad.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
			continue
		}
		checkProblems(t, err, text)
		if n := strings.Count(err.Error(), "indented with a tab"); n > 1 {
			t.Errorf("tabs are reported %d times", n)
		}
	}
}

// TestManyMistakesAreBounded: a file of nothing but mistakes costs a screenful.
func TestManyMistakesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	_, err := Parse("bad.yaml", []byte(b.String()))
	checkProblems(t, err, b.String())
	if ps := err.(Problems); len(ps) != maxProblems || !strings.Contains(ps[maxProblems-1].What, "4904 more mistakes") {
		t.Errorf("%d problems, the last %q", len(ps), ps[len(ps)-1])
	}
	many := small[:strings.Index(small, "routes")] + "routes:\n"
	for i := range maxRoutes + 1 {
		many += fmt.Sprintf("- {match: /%d, gate: a}\n", i)
	}
	wantSaid(t, many, "routes has more than 2000 routes")
}

// TestBrokenSyntaxHidesNothing: every section is read whatever breaks another.
func TestBrokenSyntaxHidesNothing(t *testing.T) {
	wantSaid(t, `listen: "127.0.0.1
admin: 5
gates:
  a: {max_in_flight: 010}
  b: {max_in_flight: 4
routes:
  - {match: /{x}, gate: a}
  - {match: /y, gate: ~}
drain_timeout: 5
`, "1:9: a quotation mark is not closed", "2:8: admin is 5", "5:6: a [ or { is not closed", "7:5: a [ or {", "8:23: gate is ~", "9:16: drain_timeout is 5")
}

// TestTheRouteIsNamedByItsLine: an error about two routes says where the other one is.
func TestTheRouteIsNamedByItsLine(t *testing.T) {
	wantSaid(t, `upstream: http://127.0.0.1:8000
gates: {a: {max_in_flight: 4}}
routes:
  - {match: /, gate: a}
  - {match: "/{x}/b;c", gate: a}
  - {match: "/a/{y}", gate: a}
  - {match: /, gate: b}
`, `6:13: neither is more specific than the other, it or the route in line 5 ("/{x}/b;c")`, `7:13: it matches the same requests as the route in line 4`, "7:22: there is no gate b")
}
