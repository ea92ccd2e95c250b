package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// clockFiles are the outermost shell: the only files of the library, its
// adapters and the program that may read the clock, each with the reason.
// Commands' main packages, examples and benchmarks are shell by nature.
var clockFiles = map[string]string{
	"clock.go":         "the clock of every gate",
	"cluster/clock.go": "the clock of every instance",
	"stats.go":         "it shows by the wall clock since when a lease is held",

	"cmd/forebay/internal/telemetry/clock.go":    "lines and requests are stamped with it",
	"cmd/forebay/internal/story/clock.go":        "refusals are stamped with it",
	"cmd/forebay/internal/proxy/clock.go":        "how long the upstream took",
	"cmd/forebay/internal/server/certificate.go": "files are looked at now and then",
	"cmd/forebay/internal/server/conns.go":       "connections have deadlines",
	"cmd/forebay/internal/server/override.go":    "an override says since when it is in force",
	"cmd/forebay/internal/server/retries.go":     "a caller comes back too early or not",
	"cmd/forebay/internal/server/reload.go":      "a reload says when it was",
	"cmd/forebay/internal/server/server.go":      "the program says since when it runs",
	"forebaytest/stopwatch.go":                   "the conformance suite measures virtual time",
	"contrib/promgate/collector.go":              "a scrape stamps when it looks",
	"contrib/promgate/cluster.go":                "how long an exchange with the store takes",
}

// pureDirs decide and nothing else: time comes in as an argument, and whoever
// calls them holds the lock.
var pureDirs = []string{"internal/admit", "adaptive"}

var (
	clockReads   = []string{"Now", "Since", "Until"}
	clockWaits   = []string{"After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}
	shellImports = []string{"sync", "sync/atomic", "context"}
)

// clockReaders: only the outermost shell calls time.Now.
func clockReaders(t *tree) (found []string) {
	for _, s := range t.sources {
		_, listed := t.clock[s.path]
		if s.isTest() || s.isProgram() || s.within("examples", "bench") {
			continue
		}
		reads := false
		s.uses("time", clockReads, func(n *ast.SelectorExpr) {
			reads = true
			if !listed {
				found = append(found, s.at(n.Pos(), "time.%s: take the time as an argument; only the files in clockFiles of internal/lint/clock_test.go read the clock", n.Sel.Name))
			}
		})
		if listed && !reads {
			found = append(found, s.path+" reads no clock; take it out of clockFiles in internal/lint/clock_test.go")
		}
	}
	return found
}

// purePackages: the admission machine and the limiters have no clock, no
// goroutine, no lock and no context.
func purePackages(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.isTest() || !s.within(pureDirs...) {
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(s.imports())) {
			if slices.Contains(shellImports, p) {
				found = append(found, s.at(s.imports()[p], "import %q in a pure package", p))
			}
		}
		s.uses("time", slices.Concat(clockReads, clockWaits), func(n *ast.SelectorExpr) {
			found = append(found, s.at(n.Pos(), "time.%s in a pure package", n.Sel.Name))
		})
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				found = append(found, s.at(g.Pos(), "a goroutine in a pure package"))
			}
			return true
		})
	}
	return found
}

// sleeps: in the library and its adapters time.Sleep stands only where time is
// fake. That is inside a function given to synctest.Test, written there or by
// name, or inside a function whose comment has the word bubble in it.
func sleeps(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.within("cmd", "examples", "bench") {
			continue
		}
		bubbles := s.bubbles()
		s.uses("time", []string{"Sleep"}, func(n *ast.SelectorExpr) {
			inside := func(b ast.Node) bool { return b.Pos() <= n.Pos() && n.End() <= b.End() }
			if !slices.ContainsFunc(bubbles, inside) {
				found = append(found, s.at(n.Pos(), "time.Sleep outside a synctest bubble; wait for a condition, or say in the function's comment that it runs in a bubble"))
			}
		})
	}
	return found
}

// bubbles returns the parts of a file that run in a synctest bubble.
func (s *source) bubbles() (parts []ast.Node) {
	var named []string
	s.uses("testing/synctest", []string{"Test"}, func(sel *ast.SelectorExpr) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || call.Fun != ast.Expr(sel) {
				return true
			}
			for _, arg := range call.Args {
				switch arg := arg.(type) {
				case *ast.FuncLit:
					parts = append(parts, arg)
				case *ast.Ident:
					named = append(named, arg.Name)
				}
			}
			return true
		})
	})
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && (slices.Contains(named, f.Name.Name) || strings.Contains(f.Doc.Text(), "bubble")) {
			parts = append(parts, f)
		}
	}
	return parts
}

// nothingAtStart: importing a package runs nothing: no init function, no
// goroutine in a package variable.
func nothingAtStart(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					found = append(found, s.at(d.Pos(), "an init function; let the caller construct what it needs"))
				}
			case *ast.GenDecl:
				if d.Tok == token.VAR {
					found = append(found, s.goroutines(d)...)
				}
			}
		}
	}
	return found
}

func (s *source) goroutines(d *ast.GenDecl) (found []string) {
	ast.Inspect(d, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, s.at(g.Pos(), "a goroutine in a package variable; every goroutine has an owner that waits for it"))
		}
		return true
	})
	return found
}
