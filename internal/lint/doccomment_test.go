package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// documented: every exported name has a comment that starts with it and is a
// sentence; every field of a configuration has one of its own, and every method
// of an interface with more than one; every package has a package comment.
func documented(t *tree) (found []string) {
	comment := map[string]bool{} // directories with a package comment
	for _, s := range t.sources {
		if s.isTest() {
			continue
		}
		comment[s.dir] = comment[s.dir] || s.file.Doc != nil
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found = append(found, s.funcDoc(d)...)
			case *ast.GenDecl:
				found = append(found, s.declDoc(d)...)
			}
		}
	}
	for _, dir := range t.packageDirs() {
		if has, code := comment[dir]; code && !has {
			found = append(found, dir+": no package comment")
		}
	}
	return found
}

// funcDoc checks a function, or a method of an exported type.
func (s *source) funcDoc(d *ast.FuncDecl) []string {
	if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiverName(d)) {
		return nil
	}
	return s.nameDoc(d.Pos(), d.Doc, d.Name.Name)
}

// declDoc checks the names of a const, var or type declaration. Within
// parentheses a comment at the end of the line will do, or a mention in the
// comment of the whole.
func (s *source) declDoc(d *ast.GenDecl) (found []string) {
	for _, spec := range d.Specs {
		doc, grouped := d.Doc, d.Lparen.IsValid()
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if grouped || doc == nil {
				doc = spec.Doc
			}
			if spec.Name.IsExported() {
				found = append(found, s.nameDoc(spec.Pos(), doc, spec.Name.Name)...)
				found = append(found, s.memberDoc(spec)...)
			}
		case *ast.ValueSpec:
			if grouped {
				doc = spec.Doc
			}
			names := exportedNames(spec.Names)
			if len(names) > 0 && !(grouped && doc == nil && (spec.Comment != nil || mentions(d.Doc, names))) {
				found = append(found, s.nameDoc(spec.Pos(), doc, names...)...)
			}
		}
	}
	return found
}

// nameDoc checks that a comment starts with one of the names it is about.
func (s *source) nameDoc(pos token.Pos, doc *ast.CommentGroup, names ...string) []string {
	text := strings.TrimSpace(doc.Text())
	if text == "" {
		return []string{s.at(pos, "%s is exported and has no comment", names[0])}
	}
	first, rest, _ := strings.Cut(text, "\n\n")
	word := strings.FieldsFunc(first, func(r rune) bool { return strings.ContainsRune(" \n,:.;'’([", r) })
	if len(word) == 0 || !slices.Contains(names, word[0]) {
		return []string{s.at(pos, "the comment of %s does not start with its name", names[0])}
	}
	shown := strings.HasPrefix(rest, "\t") // code that the sentence goes on with
	if !strings.HasSuffix(first, ".") && !strings.HasSuffix(first, ":") && !shown {
		return []string{s.at(pos, "the comment of %s is not a sentence", names[0])}
	}
	return nil
}

// memberDoc checks that the fields of a configuration and the methods of an
// interface say what they are. Elsewhere the comment of the type may do it for
// all, and for the one method of a small interface it does.
func (s *source) memberDoc(spec *ast.TypeSpec) (found []string) {
	var members *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		members = typ.Fields
		if !strings.HasSuffix(spec.Name.Name, "Config") {
			return nil
		}
	case *ast.InterfaceType:
		members = typ.Methods
		if members.NumFields() == 1 {
			return nil
		}
	default:
		return nil
	}
	for _, m := range members.List {
		names := exportedNames(m.Names)
		if len(names) > 0 && m.Doc == nil && m.Comment == nil {
			found = append(found, s.at(m.Pos(), "%s.%s is exported and has no comment", spec.Name.Name, names[0]))
		}
	}
	return found
}

// guarded: every mutex in a struct says what it guards.
func guarded(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.isTest() || s.importName("sync") == "" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || len(f.Names) == 0 || !s.isMutex(f.Type) {
				return true
			}
			if text := f.Doc.Text() + f.Comment.Text(); !strings.Contains(text, "guard") {
				found = append(found, s.at(f.Pos(), "the mutex %s does not say what it guards", f.Names[0].Name))
			}
			return true
		})
	}
	return found
}

func (s *source) isMutex(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Mutex" && sel.Sel.Name != "RWMutex" {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == s.importName("sync")
}

// mentions reports whether a comment speaks of one of the names.
func mentions(doc *ast.CommentGroup, names []string) bool {
	words := strings.FieldsFunc(doc.Text(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(words, n) })
}

func exportedNames(idents []*ast.Ident) (names []string) {
	for _, id := range idents {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	return names
}

// receiverName returns the name of a method's type, "" for a function.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	x := d.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return fmt.Sprintf("%T", x)
		}
	}
}
