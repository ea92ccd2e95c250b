package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A shape is the list of result types that a function of some name has. Where
// the value of a release site is used, the site is replaced by the zero values
// of its shape: that is what the rest of the code sees when the call is not
// made. Functions of one name may differ, so each shape is tried.
type shape struct {
	pkg   string   // package that declares the function
	types []string // as written there
	local []bool   // whether the type is an exported one of that package
}

// resultShapes collects the shapes of the functions, methods and interface
// methods with one of the names.
func resultShapes(units []*unit, names map[string]target) map[string][]shape {
	shapes := map[string][]shape{}
	for _, u := range units {
		add := func(name string, f *ast.FuncType) {
			if _, ok := names[name]; ok {
				s := u.shapeOf(f)
				same := func(o shape) bool { return s.pkg == o.pkg && slices.Equal(s.types, o.types) }
				if !slices.ContainsFunc(shapes[name], same) {
					shapes[name] = append(shapes[name], s)
				}
			}
		}
		ast.Inspect(u.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name.Name, n.Type)
			case *ast.Field:
				if f, ok := n.Type.(*ast.FuncType); ok && len(n.Names) == 1 {
					add(n.Names[0].Name, f)
				}
			}
			return true
		})
	}
	return shapes
}

func (u *unit) shapeOf(f *ast.FuncType) shape {
	s := shape{pkg: u.file.Name.Name}
	if f.Results == nil {
		return s
	}
	for _, field := range f.Results.List {
		x := field.Type
		if star, ok := x.(*ast.StarExpr); ok {
			x = star.X
		}
		id, ok := x.(*ast.Ident)
		for range max(1, len(field.Names)) {
			s.types = append(s.types, u.source(field.Type))
			s.local = append(s.local, ok && id.IsExported())
		}
	}
	return s
}

// standIn returns an expression of the shape's types with their zero values,
// and the given answer for bools. The call stands in it but is never made, so
// that everything in it is used.
func (s shape) standIn(pkg, call, answer string) string {
	if len(s.types) == 0 {
		return "func() { if false { " + call + " } }()"
	}
	var results, names []string
	set := ""
	for i, typ := range s.types {
		if s.local[i] && pkg != s.pkg {
			stars := len(typ) - len(strings.TrimLeft(typ, "*"))
			typ = typ[:stars] + s.pkg + "." + typ[stars:]
		}
		names = append(names, fmt.Sprintf("result%d", i))
		results = append(results, names[i]+" "+typ)
		if typ == "bool" {
			set += names[i] + " = " + answer + "; "
		}
	}
	return fmt.Sprintf("func() (%s) { if false { %s = %s }; %sreturn }()", strings.Join(results, ", "), strings.Join(names, ", "), call, set)
}

// turned says what each operator is turned into by a flip.
var turned = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// flips returns a mutant for each comparison and each && and ||.
func (u *unit) flips() (found []mutant) {
	ast.Inspect(u.file, func(n ast.Node) bool {
		x, ok := n.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		to, ok := turned[x.Op]
		if !ok {
			return true
		}
		at := u.offset(x.OpPos)
		text := slices.Concat(u.text[:at], []byte(to.String()), u.text[at+len(x.Op.String()):])
		found = append(found, mutant{
			file: u.name, line: u.line(x.OpPos), texts: [][]byte{text},
			what: fmt.Sprintf("%s (%s to %s)", u.source(x), x.Op, to),
		})
		return true
	})
	return found
}
