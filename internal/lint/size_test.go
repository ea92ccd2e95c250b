package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"strings"
	"unicode/utf8"
)

const (
	maxFileLines      = 500
	maxFunctionLines  = 60
	maxCommentColumns = 90
)

// sizes: a file is one idea, a function fits a screen. Tests and generated
// files may be longer.
func sizes(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.isTest() || ast.IsGenerated(s.file) {
			continue
		}
		if n := bytes.Count(s.text, []byte("\n")); n > maxFileLines {
			found = append(found, fmt.Sprintf("%s: %d lines; at most %d, split it by idea", s.path, n, maxFileLines))
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && s.lines(f) > maxFunctionLines {
				found = append(found, s.at(f.Pos(), "%s has %d lines; at most %d", f.Name.Name, s.lines(f), maxFunctionLines))
			}
		}
	}
	return found
}

// commentWidth: a comment that has lines to itself is wrapped, but for its code.
func commentWidth(t *tree) (found []string) {
	for _, s := range t.sources {
		if s.isTest() || ast.IsGenerated(s.file) {
			continue
		}
		n := 0
		for line := range strings.Lines(string(s.text)) {
			n++
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "// ") && utf8.RuneCountInString(line) > maxCommentColumns {
				found = append(found, fmt.Sprintf("%s:%d: a comment of %d columns; wrap it", s.path, n, utf8.RuneCountInString(line)))
			}
		}
	}
	return found
}
