package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A tree is a source tree as the rules see it: every file that git would
// keep, the Go files among them parsed, and the module that each belongs to.
type tree struct {
	fsys    fs.FS
	module  string            // path of the module at the root
	modules map[string]string // directory of each go.mod to its module path
	files   []string          // sorted, slash separated, relative to the root
	sources []*source         // Go files outside testdata
	clock   map[string]string // files that may read the clock, see clockFiles
}

// A source is one parsed Go file.
type source struct {
	path string
	dir  string // "." at the root
	text []byte
	fset *token.FileSet
	file *ast.File
}

// load reads and parses a tree. A Go file that does not parse is an error:
// rules that skip what they cannot read would pass on anything.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, modules: map[string]string{}, clock: clockFiles}
	if err := t.walk(); err != nil {
		return nil, err
	}
	for _, p := range t.files {
		if path.Base(p) == "go.mod" {
			t.modules[path.Dir(p)] = modulePath(t.read(p))
		}
		if path.Ext(p) != ".go" || slices.Contains(strings.Split(p, "/"), "testdata") {
			continue
		}
		s := &source{path: p, dir: path.Dir(p), text: t.read(p), fset: token.NewFileSet()}
		f, err := parser.ParseFile(s.fset, p, s.text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		s.file = f
		t.sources = append(t.sources, s)
	}
	t.module = t.modules["."]
	return t, nil
}

// walk lists the files that .gitignore does not exclude.
func (t *tree) walk() error {
	ignored, err := ignoreRules(t.read(".gitignore"))
	if err != nil {
		return err
	}
	return fs.WalkDir(t.fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == ".git" || p != "." && ignored(p, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			t.files = append(t.files, p)
		}
		return nil
	})
}

// ignoreRules understands the three forms of .gitignore line that this
// repository uses: "/path" or "/path/" from the root, "name" or "name/"
// anywhere, and "*.ext". Any other form is an error, not a guess.
func ignoreRules(text []byte) (func(p string, dir bool) bool, error) {
	var lines []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.ContainsAny(line, "!?[\\") || strings.Contains(line, "**") {
			return nil, fmt.Errorf(".gitignore: %q is a form that internal/lint does not read", line)
		}
		lines = append(lines, line)
	}
	return func(p string, dir bool) bool {
		return slices.ContainsFunc(lines, func(line string) bool {
			name := strings.TrimSuffix(line, "/")
			if name != line && !dir {
				return false
			}
			subject := path.Base(p)
			if strings.HasPrefix(name, "/") {
				name, subject = name[1:], p
			}
			ok, _ := path.Match(name, subject)
			return ok
		})
	}, nil
}

// read returns a file's content, nil when there is no such file.
func (t *tree) read(p string) []byte {
	text, _ := fs.ReadFile(t.fsys, p)
	return text
}

// exists reports whether p names a file or directory of the tree.
func (t *tree) exists(p string) bool {
	if p == "." {
		return true
	}
	return slices.ContainsFunc(t.files, func(f string) bool {
		return f == p || strings.HasPrefix(f, p+"/")
	})
}

// moduleOf returns the directory of the module that p belongs to.
func (t *tree) moduleOf(p string) string {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, ok := t.modules[dir]; ok {
			return dir
		}
	}
	return "."
}

// inLibrary reports whether a source belongs to the module at the root.
func (t *tree) inLibrary(s *source) bool { return t.moduleOf(s.path) == "." }

// packageDirs returns the directories that hold Go packages, sorted.
func (t *tree) packageDirs() []string {
	var dirs []string
	for _, s := range t.sources {
		dirs = append(dirs, s.dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// modulePath returns the path in a go.mod file.
func modulePath(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isProgram reports whether the file belongs to a command.
func (s *source) isProgram() bool { return s.file.Name.Name == "main" }

// within reports whether the file lies in one of the directories or below.
func (s *source) within(dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		return s.dir == d || strings.HasPrefix(s.dir, d+"/")
	})
}

// at writes one finding about a place in the file.
func (s *source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...))
}

// lines returns how many lines a node covers.
func (s *source) lines(n ast.Node) int {
	return s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
}

// imports returns the import paths of the file with their positions.
func (s *source) imports() map[string]token.Pos {
	paths := map[string]token.Pos{}
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths[p] = spec.Pos()
	}
	return paths
}

// importName returns the name under which the file uses an import path of the
// standard library, "" when it does not import it.
func (s *source) importName(importPath string) string {
	for _, spec := range s.file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses calls f for every mention of one of a standard package's names, called
// or not: a stored time.Now reads the clock as well as a called one.
func (s *source) uses(importPath string, names []string, f func(n *ast.SelectorExpr)) {
	local := s.importName(importPath)
	if local == "" {
		return
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier with an object is a variable that shadows the import.
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil && slices.Contains(names, sel.Sel.Name) {
			f(sel)
		}
		return true
	})
}

// isText tells text from binary content.
func isText(b []byte) bool { return !bytes.Contains(b, []byte{0}) }
