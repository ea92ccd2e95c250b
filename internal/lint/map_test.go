package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	architectureFile     = "ARCHITECTURE.md"
	maxArchitectureLines = 150
	casesFile            = "docs/cases.md"
)

var (
	goFileName = regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_./-]*\.go\b`)
	dirName    = regexp.MustCompile("`([A-Za-z0-9_][A-Za-z0-9_./-]*)/`")
	caseID     = regexp.MustCompile(`\b[A-Z]{2}-[0-9]{2}\b`)
	testName   = regexp.MustCompile(`\b(Test|Fuzz|Example|Benchmark)[A-Z0-9_]\w*(/[\w-]+)?`)
	noTest     = regexp.MustCompile(`(?i)no test: \S`)
	idInName   = regexp.MustCompile(`^(?:Test|Fuzz|Example)([A-Z]{2})_?([0-9]{2})(?:[^0-9]|$)`)
)

// architecture: ARCHITECTURE.md is short, names what exists, and names every
// package directory. A file without a slash may stand anywhere; a directory is
// written in backticks with a slash at its end.
func architecture(t *tree) (found []string) {
	text := t.read(architectureFile)
	if text == nil {
		return []string{architectureFile + ": missing; it names every package directory in at most 150 lines"}
	}
	if n := bytes.Count(text, []byte("\n")); n > maxArchitectureLines {
		found = append(found, fmt.Sprintf("%s: %d lines; at most %d", architectureFile, n, maxArchitectureLines))
	}
	for _, f := range goFileName.FindAllString(string(text), -1) {
		anywhere := func(p string) bool { return !strings.Contains(f, "/") && path.Base(p) == f }
		if !t.exists(f) && !slices.ContainsFunc(t.files, anywhere) {
			found = append(found, fmt.Sprintf("%s: %s does not exist", architectureFile, f))
		}
	}
	for _, m := range dirName.FindAllStringSubmatch(string(text), -1) {
		if !t.exists(path.Clean(m[1])) {
			found = append(found, fmt.Sprintf("%s: directory %s does not exist; write it from the root", architectureFile, m[1]))
		}
	}
	for _, dir := range t.packageDirs() {
		named := regexp.MustCompile(`(^|[^A-Za-z0-9_/.-])` + regexp.QuoteMeta(dir) + `($|[^A-Za-z0-9_-])`)
		if dir != "." && !named.Match(text) {
			found = append(found, fmt.Sprintf("%s: package directory %s is not named", architectureFile, dir))
		}
	}
	return found
}

// cases: docs/cases.md says for each case id, one line each, which tests show
// it, at least one of them named after the id (TestSL01…, or a subtest
// TestX/SL-01…), or "no test:" and why. The tests exist, and a test named
// after an id is listed.
func cases(t *tree) (found []string) {
	text := t.read(casesFile)
	if text == nil {
		return []string{casesFile + ": missing; it says which test shows which case"}
	}
	tests := t.testFunctions()
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		say := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("%s:%d: %s", casesFile, n, fmt.Sprintf(format, args...)))
		}
		named := testName.FindAllString(line, -1)
		for _, name := range named {
			top, _, _ := strings.Cut(name, "/")
			if !slices.Contains(tests, top) {
				say("%s does not exist", top)
			}
		}
		if id := caseID.FindString(line); id != "" && strings.HasPrefix(strings.TrimSpace(line), "|") && !shows(named, id) && !noTest.MatchString(line) {
			say(`%s has no test named after it and no "no test:" with the reason`, id)
		}
	}
	for _, name := range tests {
		m := idInName.FindStringSubmatch(name)
		if m != nil && !strings.Contains(string(text), name) {
			found = append(found, fmt.Sprintf("%s: %s is named after %s-%s and is not listed", casesFile, name, m[1], m[2]))
		}
	}
	return found
}

var decisionFile = regexp.MustCompile(`^docs/decisions/([0-9]{4})-why-[a-z0-9-]+\.md$`)

// maxDecisionLines keeps a page to a question, an answer, and what would change our mind.
const maxDecisionLines = 40

// decisions: every page has a name of the form and a number of its own, since others
// refer to it by that, and is short.
func decisions(t *tree) (found []string) {
	by := map[string]string{}
	for _, p := range t.files {
		if path.Dir(p) != "docs/decisions" {
			continue
		}
		m := decisionFile.FindStringSubmatch(p)
		if m == nil {
			found = append(found, fmt.Sprintf("%s: call it NNNN-why-….md", p))
			continue
		}
		if other := by[m[1]]; other != "" {
			found = append(found, fmt.Sprintf("%s: %s is the number of %s; take the next free one", p, m[1], path.Base(other)))
		}
		by[m[1]] = p
		if n := bytes.Count(t.read(p), []byte("\n")); n >= maxDecisionLines {
			found = append(found, fmt.Sprintf("%s: %d lines; keep it under %d", p, n, maxDecisionLines))
		}
	}
	return found
}

// shows reports whether one of the tests is named after the case.
func shows(tests []string, id string) bool {
	letters, digits, _ := strings.Cut(id, "-")
	return slices.ContainsFunc(tests, func(name string) bool {
		return strings.Contains(name, letters+digits) || strings.Contains(name, letters+"_"+digits) || strings.Contains(name, id)
	})
}

// testFunctions returns the names of all tests, examples and fuzz targets.
func (t *tree) testFunctions() (names []string) {
	for _, s := range t.sources {
		if !s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}
