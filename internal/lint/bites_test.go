package lint

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a tree as a test writes it: path to content.
type files map[string]string

// clean is a small repository that breaks no rule. Trees that do are this one
// with some files put in its place.
var clean = files{
	".gitignore": "/bin/\n*.prof\n",
	"go.mod":     "module example.com/m\n\ngo 1.26\n",
	"gate.go": `// Package m admits calls.
package m

import ("sync"; "time"; "example.com/m/internal/admit")

// GateConfig configures a [Gate].
type GateConfig struct {
	Name string // of the gate
}

// Gate admits calls.
type Gate struct {
	mu sync.Mutex // guards what follows
	InFlight int ` + "`json:\"in_flight\"`" + `
}

// The kinds. Other is the last.
const (
	One = iota // the first
	// Two is the second.
	Two
	Other
)

// Acquire admits one call.
func (g *Gate) Acquire() { g.mu.Lock(); admit.Arrive(time.Now()) }

func (g *gate) Hidden() {}
`,
	"gate_test.go": `package m

import ("testing"; "testing/synctest"; "time"; "example.com/m/forebaytest")

func TestSL01_Release(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }
func TestNamed(t *testing.T) { synctest.Test(t, named) }
func named(t *testing.T) { time.Sleep(1) }

// nap runs in a bubble.
func nap() { time.Sleep(1); forebaytest.Check() }
`,
	"internal/admit/admit.go":   "// Package admit decides.\npackage admit\nimport \"time\"\n// Arrive decides about one call.\nfunc Arrive(now time.Time) {}\n",
	"forebaytest/kit.go":        "// Package forebaytest tests.\npackage forebaytest\nimport \"example.com/m\"\n// Check checks.\nfunc Check() { _ = m.One }\n",
	"contrib/prom/go.mod":       "module example.com/m/contrib/prom\n\nrequire github.com/a/b v1.0.0\n",
	"contrib/prom/prom.go":      "// Package prom exports.\npackage prom\nimport (\"github.com/a/b\"; \"example.com/m\")\nvar metric = b.New(m.One, \"forebay_wait_seconds\")\n",
	"cmd/m/main.go":             "// Command m serves.\npackage main\nimport (\"time\"; \"example.com/m/cmd/m/internal/admin\")\nfunc main() { admin.Serve(time.Now()) }\n",
	"cmd/m/internal/admin/a.go": "// Package admin answers.\npackage admin\nimport (\"log/slog\"; \"example.com/m\")\n// Serve serves.\nfunc Serve() { slog.Info(\"up\", \"waited_ms\", m.One); print(`{\"capacity\": 3}`, \"rejected_busy\") }\n",
	"internal/lint/doc.go":      "// Package lint polices.\npackage lint\n",
	"internal/admit/testdata/x": "0ms arrive a -> granted\n",
	"bin/ignored.go":            "package util\nvar x = 1 /",
	"README.md":                 "# Words to know\n\n[map](ARCHITECTURE.md) [here](#words-to-know) [out](https://example.com/none)\n\n```\n[not a link](none.md)\n```\n",
	"ARCHITECTURE.md":           "`gate.go` in `internal/admit/`, `internal/lint/`, `forebaytest/`, `contrib/prom/`, `cmd/m/`, `cmd/m/internal/admin/`; admit.go\n",
	"docs/cases.md":             "| SL-01 | TestSL01_Release, TestNamed |\n| SL-02 | no test: one process only |\n",
	"docs/names.md":             "",
}

// bites holds for each rule trees that break it, and what it then says. With
// an empty want the tree is close to a breach and must pass.
var bites = []struct {
	rule string
	with files
	want string
}{
	{"libraryRequiresNothing", files{"go.mod": "module example.com/m\nrequire (\n\tgolang.org/x/sync v0.1.0\n)\n"}, "go.mod:2: require"},
	{"libraryRequiresNothing", files{"go.mod": "module example.com/m\ntool golang.org/x/tools/cmd/stringer\n"}, "go.mod:2: tool"},
	{"libraryRequiresNothing", files{"go.sum": "golang.org/x/sync v0.1.0 h1:=\n"}, "go.sum"},

	{"importFloors", files{"internal/admit/up.go": "package admit\nimport _ \"example.com/m\"\n"}, "upwards, from internal/admit to ."},
	{"importFloors", files{"internal/admit/up_test.go": "package admit_test\nimport _ \"example.com/m/forebaytest\"\n"}, "upwards, from internal/admit to forebaytest"},
	{"importFloors", files{"up.go": "package m\nimport _ \"example.com/m/adaptive\"\n"}, "upwards, from . to adaptive"},
	{"importFloors", files{"kit.go": "package m\nimport _ \"example.com/m/forebaytest\"\n"}, "the test kit is for tests"},
	{"importFloors", files{"third.go": "package m\nimport _ \"github.com/a/b\"\n"}, "third-party"},
	{"importFloors", files{"third_test.go": "package m\nimport _ \"golang.org/x/sync/errgroup\"\n"}, "third-party"},
	{"importFloors", files{"cluster/side.go": "package cluster\nimport _ \"example.com/m/internal/simulate\"\n"}, "sideways, from cluster to internal/simulate"},
	{"importFloors", files{"contrib/prom/side.go": "package prom\nimport _ \"example.com/m/contrib/redis\"\n"}, "sideways"},
	{"importFloors", files{"contrib/prom/up.go": "package prom\nimport _ \"example.com/m/cmd/m/internal/admin\"\n"}, "upwards"},
	{"importFloors", files{"cmd/m/internal/admin/up.go": "package admin\nimport _ \"example.com/m/cmd/m\"\n"}, "upwards"},
	{"importFloors", files{"cmd/m/internal/admin/down.go": "package admin\nimport _ \"example.com/m/contrib/prom\"\n"}, ""},
	{"importFloors", files{"cmd/m/lint.go": "package main\nimport _ \"example.com/m/internal/lint\"\n"}, "nobody imports the lint"},
	{"importFloors", files{"internal/lint/x.go": "package lint\nimport _ \"example.com/m\"\n"}, "standard library only"},
	{"importFloors", files{"internal/queue/q.go": "package queue\n"}, "stands on no floor"},

	{"sizes", files{"long.go": "package m\n" + strings.Repeat("\n", maxFileLines)}, "long.go: 501 lines"},
	{"sizes", files{"long.go": "package m\nfunc f() {\n" + strings.Repeat("\n", maxFunctionLines-1) + "}\n"}, "long.go:2: f has 61 lines"},
	{"sizes", files{"long.go": "package m\nfunc f() {\n" + strings.Repeat("\n", maxFunctionLines-2) + "}\n"}, ""},
	{"sizes", files{"long_test.go": "package m\nfunc f() {\n" + strings.Repeat("\n", maxFileLines) + "}\n"}, ""},

	{"documented", files{"x.go": "package m\nfunc Free() {}\n"}, "Free is exported and has no comment"},
	{"documented", files{"x.go": "package m\n// Gives back.\nfunc Free() {}\n"}, "does not start with its name"},
	{"documented", files{"x.go": "package m\n// Free gives back\nfunc Free() {}\n"}, "not a sentence"},
	{"documented", files{"x.go": "package m\nfunc (g *Gate) Free() {}\n"}, "Free is exported"},
	{"documented", files{"x.go": "package m\n// Kinds.\nconst (\n\tLast = 1\n)\n"}, "Last is exported"},
	{"documented", files{"x.go": "package m\n// Limits.\nvar Last = 1\n"}, "does not start with its name"},
	{"documented", files{"x.go": "package m\n// LineConfig configures.\ntype LineConfig struct {\n\tLen int\n}\n"}, "LineConfig.Len is exported"},
	{"documented", files{"x.go": "package m\n// Store keeps.\ntype Store interface {\n\tGet()\n\tPut() // puts\n}\n"}, "Store.Get is exported"},
	{"documented", files{"x.go": "package m\n// Store keeps.\ntype Store interface{ Get() }\n"}, ""},
	{"documented", files{"adaptive/x.go": "package adaptive\n"}, "adaptive: no package comment"},
	{"documented", files{"x.go": "package m\n// Free gives back. It is\nfunc Free() {}\n"}, "not a sentence"},

	{"guarded", files{"x.go": "package m\nimport \"sync\"\ntype x struct {\n\tmu sync.Mutex\n}\n"}, "x.go:4: the mutex mu does not say"},
	{"guarded", files{"x.go": "package m\nimport lock \"sync\"\ntype x struct {\n\t// mu is held.\n\tmu lock.RWMutex\n}\n"}, "the mutex mu does not say"},
	{"guarded", files{"x.go": "package m\nimport \"sync\"\ntype x struct {\n\t// mu guards n.\n\tmu sync.Mutex\n\tn int\n}\n"}, ""},

	{"commentWidth", files{"x.go": "package m\n\t// " + strings.Repeat("x", maxCommentColumns-2) + "\n"}, "x.go:2: a comment of 91 columns"},
	{"commentWidth", files{"x.go": "package m\n// " + strings.Repeat("x", maxCommentColumns-3) + "\n//\t" + strings.Repeat("x", maxCommentColumns) + "\n"}, ""},

	{"clockReaders", files{"x.go": "package m\nimport \"time\"\nvar now = time.Now\n"}, "x.go:3: time.Now"},
	{"clockReaders", files{"x.go": "package m\nimport clock \"time\"\nvar d = clock.Since(t0)\n"}, "x.go:3: time.Since"},
	{"clockReaders", files{"contrib/prom/x.go": "package prom\nimport \"time\"\nvar now = time.Now()\n"}, "time.Now"},
	{"clockReaders", files{"x.go": "package m\nimport \"time\"\nfunc f(time interface{ Now() int }) { time.Now() }\nvar d time.Duration\n"}, ""},
	{"clockReaders", files{"x_test.go": "package m\nimport \"time\"\nvar now = time.Now()\n"}, ""},
	{"clockReaders", files{"lease.go": "package m\n"}, "lease.go reads no clock"},

	{"purePackages", files{"internal/admit/x.go": "package admit\nimport \"time\"\nvar t = time.NewTimer(1)\n"}, "time.NewTimer in a pure package"},
	{"purePackages", files{"adaptive/x.go": "package adaptive\nimport \"time\"\nvar t = time.Now()\n"}, "time.Now in a pure package"},
	{"purePackages", files{"adaptive/x.go": "package adaptive\nimport \"sync/atomic\"\n"}, `import "sync/atomic"`},
	{"purePackages", files{"internal/admit/x.go": "package admit\nimport \"context\"\n"}, `import "context"`},
	{"purePackages", files{"internal/admit/x.go": "package admit\nfunc f() { go f() }\n"}, "a goroutine in a pure package"},

	{"sleeps", files{"x_test.go": "package m\nimport \"time\"\nfunc TestX() { time.Sleep(1) }\n"}, "x_test.go:3: time.Sleep outside"},
	{"sleeps", files{"x_test.go": "package m\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { synctest.Test(t, func() {}); time.Sleep(1) }\n"}, "time.Sleep outside"},
	{"sleeps", files{"x_test.go": "package m\nimport (\"time\"; \"testing/synctest\")\nfunc TestX() { synctest.Test(t, named) }\nfunc other() { time.Sleep(1) }\n"}, "time.Sleep outside"},
	{"sleeps", files{"contrib/prom/x_test.go": "package prom\nimport \"time\"\nfunc TestX() { time.Sleep(1) }\n"}, "time.Sleep outside"},

	{"nothingAtStart", files{"x.go": "package m\nfunc init() {}\n"}, "an init function"},
	{"nothingAtStart", files{"cmd/m/x.go": "package main\nfunc init() {}\n"}, "an init function"},
	{"nothingAtStart", files{"x.go": "package m\nvar c = func() chan int { c := make(chan int); go send(c); return c }()\n"}, "a goroutine in a package variable"},
	{"nothingAtStart", files{"x.go": "package m\nfunc (g *Gate) init() {}\n"}, ""},

	{"packageNames", files{"cmd/m/internal/util/x.go": "package util\n"}, "package util"},
	{"packageNames", files{"cmd/m/internal/helpers/x.go": "package h\n"}, "package helpers"},

	{"typeNames", files{"x.go": "package m\ntype gateManager struct{}\n"}, "type gateManager"},
	{"typeNames", files{"x.go": "package m\nfunc f() { type Data int }\n"}, "type Data"},
	{"typeNames", files{"x.go": "package m\ntype metadata int\n"}, ""},

	{"oneWordPerIdea", files{"x.go": "package m\nfunc ThrottleNow() {}\n"}, "Go ThrottleNow: the word here is Gate"},
	{"oneWordPerIdea", files{"x.go": "package m\ntype X struct { MaxTickets int }\n"}, "Go X.MaxTickets: the word here is Lease"},
	{"oneWordPerIdea", files{"x.go": "package m\nvar m = \"forebay_active_seconds\"\n"}, "metric forebay_active_seconds: the word here is InFlight"},
	{"oneWordPerIdea", files{"cmd/m/x.go": "package main\nvar m = `{\"latency\":1}`\n"}, "JSON field latency"},
	{"oneWordPerIdea", files{"cmd/m/x.go": "package main\nimport \"log/slog\"\nvar a = slog.Int(\"pending\", 1)\n"}, "log key pending"},
	{"oneWordPerIdea", files{"x.go": "package m\ntype X struct { activeNow int }\nfunc hook() {}\n"}, ""},

	{"leftoverWords", files{"x.go": "package m\n// TO" + "DO: finish\n"}, "x.go:2"},
	{"leftoverWords", files{"docs/x.md": "FIX" + "ME\n"}, "docs/x.md:1"},

	{"thisMachine", files{"docs/x.md": "see /wor" + "k/main/x\n"}, "docs/x.md:1"},
	{"thisMachine", files{"x.yaml": "dir: \"/ho" + "me/me\"\n"}, "x.yaml:1"},
	{"thisMachine", files{"Makefile": "export GOPROXY=https://proxy.gol" + "ang.org\n"}, "Makefile:1"},
	{"thisMachine", files{"go.sum": "proxy.gol" + "ang.org\n", "x.go": "package m\nvar p = \"GET /a/wor" + "k/x\"\n"}, ""},

	{"namesUpToDate", files{"docs/names.md": "# Outside names\nGate.Gone\n"}, "gone from the code: Gate.Gone"},
	{"namesUpToDate", files{"docs/names.md": "# Outside names\n"}, "not listed: Gate.InFlight"},

	{"linksResolve", files{"docs/x.md": "[a](none.md)\n"}, "docs/x.md:1: link none.md: no such file"},
	{"linksResolve", files{"docs/x.md": "[a](../README.md#nowhere)\n"}, "no such heading"},
	{"linksResolve", files{"docs/x.md": "[a]: none.md\n"}, "no such file"},
	{"linksResolve", files{"docs/x.md": "[a](/README.md)\n"}, "relative"},
	{"linksResolve", files{"docs/x.md": "[a](../README.md#words-to-know) `[b](none.md)` [c](../internal/)\n"}, ""},

	{"architecture", files{"ARCHITECTURE.md": ""}, "package directory internal/admit is not named"},
	{"architecture", files{"ARCHITECTURE.md": strings.Repeat("\n", maxArchitectureLines+1)}, "at most 150"},
	{"architecture", files{"ARCHITECTURE.md": "see lost.go\n"}, "lost.go does not exist"},
	{"architecture", files{"ARCHITECTURE.md": "see `internal/lost/`\n"}, "directory internal/lost does not exist"},
	{"architecture", files{"ARCHITECTURE.md": "missing"}, "ARCHITECTURE.md: missing"},

	{"cases", files{"docs/cases.md": "| SL-01 | TestSL01_Gone |\n"}, "TestSL01_Gone does not exist"},
	{"cases", files{"docs/cases.md": "| SL-01 | TestSL01_Release |\n| SL-03 | TestNamed |\n"}, "SL-03 has no test named after it"},
	{"cases", files{"docs/cases.md": "| SL-01 | |\n"}, "TestSL01_Release is named after SL-01 and is not listed"},
	{"cases", files{"docs/cases.md": "| SL-01 | TestSL01_Release |\n| SL-03 | TestNamed/SL-03 |\n"}, ""},
	{"cases", files{"docs/cases.md": "missing"}, "docs/cases.md: missing"},

	{"decisions", files{"docs/decisions/0001-why-a.md": "", "docs/decisions/0001-why-b.md": ""}, "0001 is the number of 0001-why-a.md"},
	{"decisions", files{"docs/decisions/why-a.md": ""}, "call it NNNN-why"},
	{"decisions", files{"docs/decisions/0001-why-a.md": strings.Repeat("\n", maxDecisionLines)}, "40 lines; keep it under 40"},
	{"decisions", files{"docs/decisions/0001-why-a.md": "", "docs/decisions/0002-why-b.md": ""}, ""},
}

// parsed returns the clean tree with some files put in its place; the content
// "missing" takes a file out.
func parsed(t *testing.T, with files) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for _, m := range []files{clean, with} {
		for p, text := range m {
			fsys[p] = &fstest.MapFile{Data: []byte(text)}
			if text == "missing" {
				delete(fsys, p)
			}
		}
	}
	repo, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	repo.clock = map[string]string{"gate.go": "it stamps", "lease.go": "it stamps"}
	return repo
}

// TestRulesBite runs each rule on trees that break it, one breach at a time.
func TestRulesBite(t *testing.T) {
	for _, b := range bites {
		t.Run(b.rule, func(t *testing.T) {
			i := slices.IndexFunc(rules, func(r rule) bool { return r.name == b.rule })
			if i < 0 {
				t.Fatalf("no rule %s", b.rule)
			}
			found := rules[i].check(parsed(t, b.with))
			if b.want == "" {
				if len(found) > 0 {
					t.Errorf("%v: found %q, want nothing", slices.Sorted(maps.Keys(b.with)), found)
				}
				return
			}
			if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, b.want) }) {
				t.Errorf("%v: found %q, want %q", slices.Sorted(maps.Keys(b.with)), found, b.want)
			}
		})
	}
}

// TestEveryRuleBites: a rule without a tree that breaks it is no rule.
func TestEveryRuleBites(t *testing.T) {
	bitten := map[string]bool{}
	for _, b := range bites {
		bitten[b.rule] = bitten[b.rule] || b.want != ""
	}
	for _, r := range rules {
		if !bitten[r.name] {
			t.Errorf("no tree in bites breaks %s", r.name)
		}
	}
}

// TestCleanTree: a tree that breaks no rule has no findings.
func TestCleanTree(t *testing.T) {
	repo := parsed(t, nil)
	repo = parsed(t, files{"docs/names.md": repo.namesText()})
	for _, r := range rules {
		for _, f := range r.check(repo) {
			t.Errorf("%s: %s", r.name, f)
		}
	}
}

// TestNamesText: the list has each kind of outside name, once and sorted.
func TestNamesText(t *testing.T) {
	want := "# Outside names\n\nGenerated by `make docs`; do not edit. A name here is API: changing one needs a line in the changelog.\n" + `
## Go package example.com/m

|||
Gate
Gate.Acquire
Gate.InFlight
GateConfig
GateConfig.Name
One
Other
Two
|||

## Go package example.com/m/forebaytest

|||
Check
|||

## JSON fields

|||
capacity
in_flight
|||

## Metrics

|||
forebay_wait_seconds
|||

## Decisions

|||
rejected_busy
|||

## Log keys

|||
waited_ms
|||
`
	if got := parsed(t, nil).namesText(); got != strings.ReplaceAll(want, "|||", "```") {
		t.Errorf("names:\n%s\nwant:\n%s", got, want)
	}
}

// TestIgnoreForms: a form of .gitignore that would be misread is an error.
func TestIgnoreForms(t *testing.T) {
	for _, line := range []string{"!keep", "a/**/b", "[ab]"} {
		if _, err := load(fstest.MapFS{".gitignore": {Data: []byte(line)}}); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

// TestSplitWords: identifiers of both spellings come apart at the same places.
func TestSplitWords(t *testing.T) {
	for in, want := range map[string]string{
		"MaxInFlight": "max in flight", "max_in_flight": "max in flight",
		"HTTPStatus": "http status", "RemoteIP": "remote ip", "x": "x", "": "",
	} {
		if got := strings.Join(splitWords(in), " "); got != want {
			t.Errorf("splitWords(%q) = %q, want %q", in, got, want)
		}
	}
}
