package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// marker excuses the site on the line below.
const marker = "//mutate:equivalent"

// A mutant is one file with one change.
type mutant struct {
	file   string // relative to the module
	callee string // whose call was taken out, if it is one
	line   int
	what   string   // the text that was taken out or turned round
	reason string   // of a marker; such a mutant is not run
	texts  [][]byte // the changed file, in variants: the first that builds counts
}

func (m mutant) place() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

// A unit is one parsed file with what mutating it needs.
type unit struct {
	name string // relative to the module
	text []byte
	fset *token.FileSet
	file *ast.File
}

// findMutants reads the directories and returns the mutants in order of place.
func findMutants(root string, cfg config) ([]mutant, error) {
	units, err := readUnits(root, cfg.dirs)
	if err != nil {
		return nil, err
	}
	shapes := resultShapes(units, cfg.names)
	var found []mutant
	for _, u := range units {
		ms := u.releases(cfg.part, shapes)
		if cfg.flips {
			ms = append(ms, u.flips()...)
		}
		marked, err := u.excuse(ms)
		if err != nil {
			return nil, err
		}
		found = append(found, marked...)
	}
	slices.SortStableFunc(found, func(a, b mutant) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	return found, nil
}

// readUnits parses the files of the directories that are not tests.
func readUnits(root string, dirs []string) (units []*unit, err error) {
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			if strings.HasSuffix(p, "_test.go") {
				continue
			}
			u := &unit{fset: token.NewFileSet()}
			if u.text, err = os.ReadFile(p); err != nil {
				return nil, err
			}
			if u.file, err = parser.ParseFile(u.fset, p, u.text, parser.ParseComments); err != nil {
				return nil, err
			}
			rel, _ := filepath.Rel(root, p)
			u.name = filepath.ToSlash(rel)
			units = append(units, u)
		}
	}
	return units, nil
}

// releases returns a mutant for each call of one of the names, each decrease
// of one of the fields and each send to a channel.
func (u *unit) releases(p part, shapes map[string][]shape) (found []mutant) {
	statements := u.statements()
	for _, stmt := range statements {
		if p.givesBack(stmt) {
			found = append(found, u.without(stmt))
		}
	}
	ast.Inspect(u.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := calleeName(call)
		site, ok := p.names[name]
		if !ok {
			return true
		}
		if i := slices.IndexFunc(statements, func(s ast.Stmt) bool { return isCall(s, call) }); i >= 0 {
			m := u.without(statements[i])
			m.callee = name
			found = append(found, m)
			return true
		}
		if name == decrement {
			text := u.replace(call.Args[0], "0")
			found = append(found, mutant{file: u.name, callee: name, line: u.line(call.Pos()), what: u.source(call), texts: [][]byte{text}})
			return true
		}
		if site.alone {
			return true
		}
		for _, answer := range site.answersOr("false") {
			m := mutant{file: u.name, callee: name, line: u.line(call.Pos()), what: u.source(call)}
			if answer != "false" {
				m.what += " answering " + answer
			}
			for _, s := range shapes[name] {
				m.texts = append(m.texts, u.replace(call, s.standIn(u.file.Name.Name, u.source(call), answer)))
			}
			found = append(found, m)
		}
		return true
	})
	return found
}

func (t target) answersOr(answer string) []string {
	if len(t.answers) == 0 {
		return []string{answer}
	}
	return t.answers
}

// without returns the mutant in which a statement is never reached. It still
// stands there, so that everything it mentions is used and the file builds.
func (u *unit) without(stmt ast.Stmt) mutant {
	text := u.replace(stmt, "if false { "+u.source(stmt)+" }")
	return mutant{file: u.name, line: u.line(stmt.Pos()), what: u.source(stmt), texts: [][]byte{text}}
}

// statements returns the statements of all blocks. Those in the header of a
// for, if or select are not among them: they cannot be put into an if.
func (u *unit) statements() (found []ast.Stmt) {
	add := func(list []ast.Stmt) {
		for _, s := range list {
			if l, ok := s.(*ast.LabeledStmt); ok {
				s = l.Stmt
			}
			found = append(found, s)
		}
	}
	ast.Inspect(u.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			add(n.List)
		case *ast.CaseClause:
			add(n.Body)
		case *ast.CommClause:
			add(n.Body)
		}
		return true
	})
	return found
}

// isCall reports whether a statement is just this call, plain, deferred or in
// a goroutine of its own.
func isCall(stmt ast.Stmt, call *ast.CallExpr) bool {
	switch s := stmt.(type) {
	case *ast.ExprStmt:
		return s.X == ast.Expr(call)
	case *ast.DeferStmt:
		return s.Call == call
	case *ast.GoStmt:
		return s.Call == call
	}
	return false
}

// givesBack reports whether a statement that is no call gives something back.
func (p part) givesBack(stmt ast.Stmt) bool {
	var less ast.Expr
	switch s := stmt.(type) {
	case *ast.SendStmt:
		return true
	case *ast.IncDecStmt:
		if s.Tok == token.DEC {
			less = s.X
		}
	case *ast.AssignStmt:
		if s.Tok == token.SUB_ASSIGN {
			less = s.Lhs[0]
		}
	}
	field, ok := less.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	_, ok = p.fields[field.Sel.Name]
	return ok
}

// excuse gives each mutant the reason of a marker on its line or the line
// above. A marker without a reason, or with nothing to excuse, is an error.
func (u *unit) excuse(ms []mutant) ([]mutant, error) {
	for _, group := range u.file.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, marker)
			if !ok {
				continue
			}
			line, used := u.line(c.Pos()), false
			for i := range ms {
				if ms[i].line == line || ms[i].line == line+1 {
					ms[i].reason, used = strings.TrimSpace(reason), true
				}
			}
			if !used {
				return nil, fmt.Errorf("%s:%d: %s stands at no mutant; take it out", u.name, line, marker)
			}
			if strings.TrimSpace(reason) == "" {
				return nil, fmt.Errorf("%s:%d: %s needs a reason", u.name, line, marker)
			}
		}
	}
	return ms, nil
}

func (u *unit) line(pos token.Pos) int   { return u.fset.Position(pos).Line }
func (u *unit) offset(pos token.Pos) int { return u.fset.Position(pos).Offset }

func (u *unit) source(n ast.Node) string {
	return string(u.text[u.offset(n.Pos()):u.offset(n.End())])
}

// replace returns the file with other text in place of a node.
func (u *unit) replace(n ast.Node, text string) []byte {
	return slices.Concat(u.text[:u.offset(n.Pos())], []byte(text), u.text[u.offset(n.End()):])
}

// decrement is how a call that counts one less is named in a part's table.
const decrement = "Add(-1)"

// calleeName returns the last part of what is called: Release of l.Release().
func calleeName(call *ast.CallExpr) string {
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	if name != "Add" || len(call.Args) != 1 {
		return name
	}
	if less, ok := call.Args[0].(*ast.UnaryExpr); ok && less.Op == token.SUB && isOne(less.X) {
		return decrement
	}
	return name
}

func isOne(x ast.Expr) bool {
	n, ok := x.(*ast.BasicLit)
	return ok && n.Value == "1"
}
