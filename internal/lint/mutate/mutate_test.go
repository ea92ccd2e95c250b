package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// toy is a module with one release site of each kind.
var toy = map[string]string{
	"go.mod": "module example.com/toy\n\ngo 1.26\n",
	"toy.go": `package toy

import "example.com/toy/internal/core"

type Gate struct{ in, inFlight int }

func (g *Gate) Release() { g.in-- }

func (g *Gate) Less(c chan int) {
	g.inFlight -= 2
	g.inFlight--
	g.in--
	select {
	case c <- 1:
	default:
	}
	c <- 2
}

func (g *Gate) free() bool { g.in--; return true }

func Call(g *Gate) {
	g.in++
	defer g.Release()
}

func Twice(g *Gate) int {
	g.in++
	if !g.free() {
		return -1
	}
	//mutate:equivalent the gate is empty already
	g.free()
	g.in++
	return g.in
}

func Line(l core.Line) int {
	var woken []int
	woken = append(woken, l.dispatchAll()...)
	for i := 0; i < 1; l.Unseen() {
		i++
	}
	next, _ := core.Settle(l)
	return len(woken) + next.N
}
`,
	"internal/core/core.go": `package core

type Item struct{ N int }

type Line struct{ Len int }

func (l Line) Unseen() {}

func Settle(l Line) (next Item, more bool) { return Item{l.Len}, true }
`,
	"internal/core/core_test.go": "package core\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) {}\n",
	"toy_test.go": `package toy

import (
	"testing"

	"example.com/toy/internal/core"
)

func TestCall(t *testing.T) {
	var g Gate
	if Call(&g); g.in != 0 || !less(&g) {
		t.Error("taken")
	}
}

func less(g *Gate) bool {
	c := make(chan int, 3)
	c <- 0
	g.Less(c)
	return g.inFlight == -3 && len(c) == 3
}

func TestTwice(t *testing.T) {
	if Twice(new(Gate)) < 0 {
		t.Error("not freed")
	}
}

func TestLine(t *testing.T) {
	if Line(core.Line{Len: 3}) != 3 {
		t.Error("not settled")
	}
}
`,
}

// write makes the toy module in a new directory.
func write(t *testing.T, edit func(name, text string) string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range toy {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(edit(name, text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func toyConfig() config {
	return config{
		part: part{
			dirs:   []string{".", "internal/core"},
			names:  nameTable("Release,free,Settle,Unseen,gone"),
			fields: map[string]string{"inFlight": "given in the test"},
		},
		parallel: 2,
		timeout:  5 * time.Second,
	}
}

// compiles takes out the line that the type checker would refuse: it is there
// for the tests that only look for sites.
func compiles(name, text string) string {
	return strings.Replace(text, "	woken = append(woken, l.dispatchAll()...)\n", "", 1)
}

// TestRun removes each site of the toy: what a test protects is caught, what
// none protects survives, and the summary has the excused one.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a module")
	}
	var out bytes.Buffer
	ok, err := run(t.Context(), write(t, compiles), toyConfig(), &out)
	if err != nil || ok {
		t.Fatalf("run = %v, %v, want false and no error\n%s", ok, err, &out)
	}
	for _, want := range []string{
		"toy.go:24 defer g.Release() caught by TestCall",
		"toy.go:29 g.free() caught by TestTwice",
		"toy.go:43 core.Settle(l) caught by TestLine",
		"NOT CAUGHT: toy.go:40 l.Unseen() SURVIVED",
		"equivalent: toy.go:33 g.free(): the gate is empty already",
		"nobody calls gone;",
		"mutate: 7 mutants, 6 caught, 1 not, 1 equivalent",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestRunHang: a mutant that hangs is caught by its timeout.
func TestRunHang(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a test to time out")
	}
	root := write(t, func(name, text string) string {
		return strings.Replace(compiles(name, text), "if Twice(new(Gate)) < 0 {", "for Twice(new(Gate)) < 0 {\n\t}\n\tif false {", 1)
	})
	cfg := toyConfig()
	cfg.only, cfg.timeout = "toy.go:29", time.Second
	var out bytes.Buffer
	ok, err := run(t.Context(), root, cfg, &out)
	if err != nil || !ok || !strings.Contains(out.String(), "timed out") {
		t.Fatalf("run = %v, %v, want true by a timeout\n%s", ok, err, &out)
	}
}

// TestRunFailingBaseline: tests that fail anyway prove nothing.
func TestRunFailingBaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs a module")
	}
	root := write(t, func(name, text string) string {
		return strings.Replace(compiles(name, text), "g.in != 0", "g.in == 0", 1)
	})
	_, err := run(t.Context(), root, toyConfig(), new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "without any mutant: TestCall") {
		t.Fatalf("err = %v, want the test that fails", err)
	}
}

// TestFindMutants: every form of a release site is found, flips only on demand.
func TestFindMutants(t *testing.T) {
	root := write(t, func(name, text string) string { return text })
	cfg := toyConfig()
	cfg.names = nameTable("Release,free,Settle,Unseen,dispatchAll")
	cfg.flips = true
	cfg.names["free"] = target{answers: []string{"false", "true"}}
	ms, err := findMutants(root, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range ms {
		got = append(got, fmt.Sprintf("%d %s %d", m.line, m.what, len(m.texts)))
	}
	want := []string{
		"10 g.inFlight -= 2 1", "11 g.inFlight-- 1", "17 c <- 2 1",
		"24 defer g.Release() 1", "29 g.free() 1", "29 g.free() answering true 1", "33 g.free() 1",
		"40 l.dispatchAll() 0", "41 i < 1 (< to <=) 1", "41 l.Unseen() 1", "44 core.Settle(l) 1",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestMarkers: a marker has a reason and a site.
func TestMarkers(t *testing.T) {
	for marked, want := range map[string]string{
		"//mutate:equivalent":                          "needs a reason",
		"//mutate:equivalent nothing\n\n\tprintln()\n": "stands at no mutant",
	} {
		root := write(t, func(name, text string) string {
			return strings.Replace(text, "//mutate:equivalent the gate is empty already", marked, 1)
		})
		if _, err := findMutants(root, toyConfig()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", marked, err, want)
		}
	}
}

// TestStandIn: an exported type of the other package is qualified, and a bool
// reads the answer.
func TestStandIn(t *testing.T) {
	s := shape{pkg: "core", types: []string{"*Item", "bool"}, local: []bool{true, false}}
	want := "func() (result0 *core.Item, result1 bool) { if false { result0, result1 = core.Take() }; result1 = true; return }()"
	if got := s.standIn("toy", "core.Take()", "true"); got != want {
		t.Errorf("standIn = %s, want %s", got, want)
	}
}

// TestEveryNameHasASite: a name in a part's table that the part does not call is one
// that was renamed, and whose sites nobody removes any more.
func TestEveryNameHasASite(t *testing.T) {
	for name, p := range parts {
		found, err := findMutants(filepath.Join("..", "..", "..", p.root), config{part: p})
		if err != nil {
			t.Fatal(err)
		}
		called := map[string]bool{}
		for _, m := range found {
			called[m.callee] = true
		}
		for callee := range p.names {
			if !called[callee] {
				t.Errorf("%s is called nowhere in the %s; take it out of the table in parts.go, or write its new name", callee, name)
			}
		}
	}
}
