package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// namesFile lists what the outside sees; -update rewrites it.
const namesFile = "docs/names.md"

// A name is one that somebody outside writes or reads.
type name struct {
	kind  string // one of nameKinds
	group string // package directory of a Go name, "" otherwise
	name  string
	where string // file and line
}

// nameKinds are the sections of the list, in order.
var nameKinds = []string{"Go", "JSON field", "configuration key", "metric", "decision", "log key"}

var (
	metricName   = regexp.MustCompile(`^(forebay|http_server)_[a-z0-9]+(_[a-z0-9]+)*$`)
	decisionName = regexp.MustCompile(`^(accepted|exempt|canceled|rejected_[a-z_]+)$`)
	jsonInText   = regexp.MustCompile(`"([A-Za-z_][A-Za-z0-9_]*)"\s*:`)
	logMethods   = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3}
	attrMakers   = []string{"Any", "Bool", "Duration", "Float64", "Group", "Int", "Int64", "String", "Time", "Uint64"}
)

// outsideNames collects the names that each source shows to the outside.
func (t *tree) outsideNames() (names []name) {
	for _, s := range t.sources {
		if s.isTest() || s.within("internal/lint", "examples", "bench") {
			continue
		}
		c := &collector{source: s}
		if !s.isProgram() && !s.within("internal") && !strings.Contains("/"+s.dir+"/", "/internal/") {
			c.goNames()
		}
		c.textNames()
		names = append(names, c.names...)
	}
	return names
}

// A collector gathers the outside names of one source.
type collector struct {
	*source
	names []name
}

func (c *collector) add(kind, n string, pos token.Pos) {
	group := ""
	if kind == "Go" {
		group = c.dir
	}
	where := fmt.Sprintf("%s:%d", c.path, c.fset.Position(pos).Line)
	c.names = append(c.names, name{kind, group, n, where})
}

// goNames collects exported identifiers, with their fields and methods.
func (c *collector) goNames() {
	for _, d := range c.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			recv := receiverName(d)
			if d.Name.IsExported() && (recv == "" || ast.IsExported(recv)) {
				c.add("Go", strings.TrimPrefix(recv+"."+d.Name.Name, "."), d.Pos())
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				c.specNames(spec)
			}
		}
	}
}

func (c *collector) specNames(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range exportedNames(spec.Names) {
			c.add("Go", n, spec.Pos())
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		c.add("Go", spec.Name.Name, spec.Pos())
		var members *ast.FieldList
		switch typ := spec.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		default:
			return
		}
		for _, m := range members.List {
			for _, n := range exportedNames(m.Names) {
				c.add("Go", spec.Name.Name+"."+n, m.Pos())
			}
		}
	}
}

// textNames collects the names that live in struct tags, string literals and
// calls of log/slog.
func (c *collector) textNames() {
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			c.tagNames(n)
		case *ast.BasicLit:
			c.literalNames(n)
		case *ast.CallExpr:
			c.logKeys(n)
		}
		return true
	})
}

func (c *collector) tagNames(f *ast.Field) {
	if f.Tag == nil {
		return
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	for key, kind := range map[string]string{"json": "JSON field", "yaml": "configuration key"} {
		n, _, _ := strings.Cut(reflect.StructTag(tag).Get(key), ",")
		if n != "" && n != "-" {
			c.add(kind, n, f.Pos())
		}
	}
}

func (c *collector) literalNames(lit *ast.BasicLit) {
	if lit.Kind != token.STRING {
		return
	}
	text, _ := strconv.Unquote(lit.Value)
	switch {
	case metricName.MatchString(text):
		c.add("metric", text, lit.Pos())
	case decisionName.MatchString(text):
		c.add("decision", text, lit.Pos())
	}
	if lit.Value[0] == '`' && strings.HasPrefix(text, "json:") || strings.Contains(text, `" yaml:"`) {
		return // a struct tag, read as such
	}
	for _, m := range jsonInText.FindAllStringSubmatch(text, -1) {
		c.add("JSON field", m[1], lit.Pos())
	}
}

// logKeys collects the keys given to slog's attribute makers and, as every
// other argument, to a logger's methods.
func (c *collector) logKeys(call *ast.CallExpr) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	local := c.importName("log/slog")
	if !ok || local == "" {
		return
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(attrMakers, sel.Sel.Name) && len(call.Args) > 0 {
		c.logKey(call.Args[0])
		return
	}
	first, ok := logMethods[sel.Sel.Name]
	if !ok {
		return
	}
	for i := first; i < len(call.Args); i++ {
		if c.logKey(call.Args[i]) {
			i++ // its value
		}
	}
}

func (c *collector) logKey(arg ast.Expr) bool {
	lit, ok := arg.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	key, _ := strconv.Unquote(lit.Value)
	c.add("log key", key, lit.Pos())
	return true
}

// namesText writes the list of outside names.
func (t *tree) namesText() string {
	sections := map[string][]string{}
	for _, n := range t.outsideNames() {
		sections[n.kind+"\x00"+n.group] = append(sections[n.kind+"\x00"+n.group], n.name)
	}
	var b strings.Builder
	b.WriteString("# Outside names\n\nGenerated by `make docs`; do not edit. A name here is API: changing one needs a line in the changelog.\n")
	for _, kind := range nameKinds {
		var groups []string
		for key := range sections {
			if k, group, _ := strings.Cut(key, "\x00"); k == kind {
				groups = append(groups, group)
			}
		}
		slices.Sort(groups)
		for _, group := range groups {
			title := kind + "s"
			if kind == "Go" {
				title = "Go package " + strings.TrimSuffix(t.module+"/"+group, "/.")
			}
			names := sections[kind+"\x00"+group]
			slices.Sort(names)
			fmt.Fprintf(&b, "\n## %s\n\n```\n%s\n```\n", strings.ToUpper(title[:1])+title[1:], strings.Join(slices.Compact(names), "\n"))
		}
	}
	return b.String()
}

// namesUpToDate: the list of outside names says what the code has.
func namesUpToDate(t *tree) (found []string) {
	have, want := string(t.read(namesFile)), t.namesText()
	if have == want {
		return nil
	}
	listed, now := strings.Split(have, "\n"), strings.Split(want, "\n")
	found = append(found, namesFile+": out of date; run `make docs` and read the difference as if it were code")
	for _, n := range now {
		if !slices.Contains(listed, n) {
			found = append(found, namesFile+": not listed: "+n)
		}
	}
	for _, n := range listed {
		if !slices.Contains(now, n) {
			found = append(found, namesFile+": gone from the code: "+n)
		}
	}
	return found
}
