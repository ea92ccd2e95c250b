package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// floors says where each directory stands; imports point down only. The first
// entry that matches wins. A package on no floor is a finding: a new package
// needs a second importer or a third-party dependency to keep out, and a line
// here.
var floors = []struct {
	dir   string // "*" stands for one path element; subdirectories included
	level int
}{
	{"internal/lint", outside},
	{"internal/admit", 0},
	{"internal/feed", 0},
	{"internal/simulate", 2}, // runs what the server runs, without the server
	{"adaptive", 4},          // its tests play scenarios, and run the suite
	{"cluster", 2},
	{"forebaytest", 3},          // knows the interfaces that it checks: gate, limiter, store
	{"internal/redisledger", 3}, // half of every store on Redis
	{"contrib/*", 4},
	{"cmd/*/internal", 5},
	{"cmd/*", 6},
	{"examples/shop", 4}, // the sample backend, which the demo starts
	{"examples/*", 7},
	{"bench", 7},
}

const (
	outside   = -1 // imports the standard library only and is imported by nobody
	rootFloor = 1  // the package at the root
	noFloor   = -2
)

// floorOf returns a directory's level and the unit within which packages may
// import each other: one adapter, one program, one example.
func floorOf(dir string) (level int, unit string) {
	if dir == "." {
		return rootFloor, dir
	}
	elems := strings.Split(dir, "/")
next:
	for _, f := range floors {
		want := strings.Split(f.dir, "/")
		if len(elems) < len(want) {
			continue
		}
		for i, w := range want {
			if w != "*" && w != elems[i] {
				continue next
			}
		}
		return f.level, strings.Join(elems[:len(want)], "/")
	}
	return noFloor, dir
}

// libraryRequiresNothing: the root go.mod has a module and a go line, no more.
func libraryRequiresNothing(t *tree) (found []string) {
	n := 0
	for line := range strings.Lines(string(t.read("go.mod"))) {
		n++
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word != "" && word != "module" && word != "go" && word != "toolchain" && !strings.HasPrefix(word, "//") {
			found = append(found, fmt.Sprintf("go.mod:%d: %s: the library module requires nothing, not even for tests", n, strings.TrimSpace(line)))
		}
	}
	if t.module == "" {
		found = append(found, "go.mod: no module line")
	}
	if len(t.read("go.sum")) > 0 {
		found = append(found, "go.sum: the library module requires nothing, so it has no sums")
	}
	return found
}

// importFloors: imports point down only, and third-party code stays in modules
// of its own.
func importFloors(t *tree) (found []string) {
	for _, s := range t.sources {
		level, _ := floorOf(s.dir)
		if level == noFloor {
			found = append(found, s.at(s.file.Package, "package %s stands on no floor; give it a line in internal/lint/floors_test.go or make it a file of an existing package", s.dir))
			continue
		}
		imports := s.imports()
		for _, p := range slices.Sorted(maps.Keys(imports)) {
			if why := t.mayNotImport(s, p); why != "" {
				found = append(found, s.at(imports[p], "import %q: %s", p, why))
			}
		}
	}
	return found
}

// mayNotImport returns what is wrong with an import, "" if nothing is.
func (t *tree) mayNotImport(s *source, importPath string) string {
	target, ours := t.ourDir(importPath)
	if !ours {
		first, _, _ := strings.Cut(importPath, "/")
		if t.inLibrary(s) && strings.Contains(first, ".") {
			return "third-party code belongs in contrib, cmd, examples or bench, each a module of its own"
		}
		return ""
	}
	from, fromUnit := floorOf(s.dir)
	to, toUnit := floorOf(target)
	switch {
	case fromUnit == toUnit && from != outside:
		return ""
	case to == outside:
		return "nobody imports the lint"
	case from == outside:
		return "the lint imports the standard library only"
	case toUnit == "forebaytest" && fromUnit != "internal/admit":
		if s.isTest() || strings.HasPrefix(fromUnit, "examples/") || fromUnit == "bench" {
			return ""
		}
		return "the test kit is for tests, examples and benchmarks"
	case to < from:
		return ""
	case to == from:
		return fmt.Sprintf("sideways, from %s to %s; imports point down only", fromUnit, toUnit)
	}
	return fmt.Sprintf("upwards, from %s to %s; imports point down only", fromUnit, toUnit)
}

// ourDir returns the directory of one of our own packages.
func (t *tree) ourDir(importPath string) (dir string, ours bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}
