package main

import (
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the wire section's client and the proxies' upstream, as
// the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{clientCommand, upstreamCommand, awakeCommand}, os.Args[1]) {
		if err := run(os.Args[1:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Every row of every section is measured, and every target speaks of something
// that is.
func TestSectionsAreWhole(t *testing.T) { checkSuite(t, gateSuite) }

func TestClusterSectionsAreWhole(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(bench.end)
	checkSuite(t, clusterSuite)
}

func TestProxySectionsAreWhole(t *testing.T) {
	if err := missing(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(bench.end)
	checkSuite(t, proxySuite)
}

func checkSuite(t *testing.T, s *suite) {
	results, err := s.measureAll(io.Discard, tiny, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(s.sections) {
		t.Fatalf("%d results, want %d", len(results), len(s.sections))
	}
	for _, r := range results {
		checkRows(t, r)
		for _, target := range r.targets {
			if v := target.judge(r); math.IsNaN(v.value) && target.what != "refusal p50 at the worst load, ms" {
				t.Errorf("%s: target %q was not measured", r.name, target.what)
			}
		}
	}
}

func checkRows(t *testing.T, r *result) {
	t.Helper()
	names := map[string]kind{}
	for _, row := range r.rows {
		if _, twice := names[row.name]; twice {
			t.Errorf("%s: two rows %q", r.name, row.name)
		}
		names[row.name] = row.kind
		if len(r.measured[0][row.name]) == 0 {
			t.Errorf("%s: row %q was not measured", r.name, row.name)
		}
	}
	for _, row := range r.rows {
		if k, known := names[row.against]; row.kind == rival && (!known || k != ours) {
			t.Errorf("%s: row %q is compared with %q, which is no row of ours", r.name, row.name, row.against)
		}
	}
	if _, known := names[r.base]; r.base != "" && !known {
		t.Errorf("%s: base %q is no row", r.name, r.base)
	}
}

func TestQuickRunWritesTheDocument(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.md")
	rep := report{suite: gateSuite, command: gateSuite.commandLine([]string{"--quick"}), host: gateSuite.thisHost(), effort: tiny, began: time.Unix(0, 0), results: []*result{sample()}}
	if err := rep.save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"`cd bench && go run . gate --quick`", "## Targets", "## Sample", "## Where a rival wins",
		"| ours ÷ theirs | ≤ 0.8 | 2 | 2 – 2 | **missed** |",
		"- Sample: ns: theirs 10, 0.5 x us.",
		"| **us** | 20 | 4 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %q:\n%s", want, text)
		}
	}
	if rep.missed() != 1 {
		t.Errorf("missed = %d, want 1", rep.missed())
	}
}

// sample is a section in which a rival wins, and one target is missed.
func sample() *result {
	s := &section{
		title: "Sample", base: "floor", columns: []column{{name: seqNS, ratio: "x floor"}},
		rows: []row{{name: "floor", kind: yardstick}, {name: "us", kind: ours}, {name: "theirs", kind: rival, against: "us"}},
		targets: []target{
			{what: "ours ÷ theirs", limit: 0.8, of: quotient("us", "theirs", seqNS)},
			{what: "an aim", limit: 1, aim: true, of: quotient("us", "floor", seqNS)},
		},
	}
	m := func(f float64) round {
		return round{"floor": {seqNS: 5 * f}, "us": {seqNS: 20 * f}, "theirs": {seqNS: 10 * f}}
	}
	return &result{section: s, measured: []round{m(1), m(3), m(1)}}
}

func TestRunRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range [][]string{nil, {"proxy"}, {"gate", "--only", "("}, {"gate", "--only", "nosuch"}} {
		if err := run(args); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}

func TestVerdict(t *testing.T) {
	r := &result{measured: []round{{"a": {seqNS: 1}}, {"a": {seqNS: 3}}, {"a": {seqNS: 2}}}}
	for _, c := range []struct {
		target target
		met    bool
		value  float64
	}{
		{target{limit: 2, of: just("a", seqNS)}, true, 2},
		{target{limit: 2, always: true, of: just("a", seqNS)}, false, 3},
		{target{limit: 2, atLeast: true, of: just("a", seqNS)}, true, 2},
		{target{limit: 2, atLeast: true, always: true, of: just("a", seqNS)}, false, 1},
		{target{limit: 2, of: just("b", seqNS)}, false, math.NaN()},
	} {
		v := c.target.judge(r)
		if v.met() != c.met || v.value != c.value && !math.IsNaN(c.value) {
			t.Errorf("%+v: met %t with %g, want %t with %g", v.bound(), v.met(), v.value, c.met, c.value)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.004: "0", 0.25: "0.25", 1.3: "1.3", 2: "2", 4.5678: "4.57", 1.2345: "1.234", 17.64: "17.6", 40: "40", 100: "100", 2345.6: "2346", -1.5: "-1.5",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%g) = %q, want %q", v, got, want)
		}
	}
	if got := number(math.NaN()); got != "–" {
		t.Errorf("number(NaN) = %q", got)
	}
}
