package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxDepth bounds nesting: the deepest key there is stands on the fifth level.
const maxDepth = 16

// maxRepairs is how many places with broken syntax are reported one by one.
const maxRepairs = 20

// parse returns the mapping that the text is, nil if it is none. A syntax error ends
// a parser's reading, yet the other mistakes of the file are wanted too: what holds
// it is blanked and the rest read again.
func (d *decoder) parse(text string) *yaml.Node {
	lines := strings.SplitAfter(text, "\n")
	for range maxRepairs {
		root, err := d.parseOnce(strings.Join(lines, ""))
		if err == nil {
			return root
		}
		at := d.syntax(err, lines) // within lines
		d.partial = true
		if !blankLine(lines, at.Line) && !blankSection(lines, at.Line) {
			return nil
		}
	}
	return nil
}

func (d *decoder) parseOnce(text string) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var doc, second yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil // blanked altogether
		}
		return nil, err
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		d.wrongAt(Pos{second.Line, second.Column}, "a second document begins", "write one document in one file: take out the line --- or ... before it")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if !d.checkTree(root, 0) {
		return nil, nil
	}
	return root, nil
}

// syntax records a syntax error and returns where it is.
func (d *decoder) syntax(err error, lines []string) Pos {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		at := Pos{1, 1}
		d.wrongAt(at, "this is not YAML: "+err.Error(), "correct it")
		return at
	}
	mark := load.Mark
	// The end of an unclosed thing is found where the file ends: its beginning helps.
	for _, open := range []string{"flow", "quoted", "simple key"} {
		if strings.Contains(load.ContextMsg, open) && load.ContextMark.Line > 0 {
			mark = load.ContextMark
		}
	}
	at := Pos{min(max(mark.Line, 1), len(lines)), max(mark.Column, 1)}
	if above := wordAbove(lines, at.Line); above.Line > 0 && strings.Contains(load.Message, "mapping values") {
		d.wrongAt(above, "a key without a colon", "write KEY: VALUE")
		return above
	}
	what, remedy := explainSyntax(load, lines[at.Line-1])
	d.wrongAt(at, what, remedy)
	return at
}

// wordAbove returns where a word stands alone in the line above, which the parser
// takes together with the key that follows.
func wordAbove(lines []string, line int) Pos {
	if line < 2 {
		return Pos{}
	}
	above := lines[line-2]
	if blank(above) || strings.ContainsAny(above, ":#") || strings.HasPrefix(strings.TrimSpace(above), "-") {
		return Pos{}
	}
	return Pos{line - 1, indentOf(above) + 1}
}

func explainSyntax(load *yaml.LoadError, line string) (what, remedy string) {
	message := load.Message
	switch {
	case strings.Contains(message, "max depth"):
		return "it is nested too deeply", "write the keys of docs/config.md"
	case strings.HasPrefix(line, "%"):
		return "a directive stands here", "take the line out"
	case strings.Contains(message, "tab character"), strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "a tab stands where YAML wants spaces", "indent with spaces"
	case strings.Contains(load.ContextMsg, "flow"):
		return "a [ or { is not closed as it should be",
			"close it, put commas between, and put a pattern with braces in quotes, as \"/x/{id}\""
	case strings.Contains(load.ContextMsg, "quoted"):
		return "a quotation mark is not closed", "close it"
	case strings.Contains(load.ContextMsg, "simple key"):
		return "a key without a colon", "write KEY: VALUE"
	case strings.Contains(message, "mapping values are not allowed"):
		return "a colon where no key can be", "indent the line as its neighbours are, or put a value with a colon in quotes"
	case strings.Contains(message, "did not find expected key"), strings.Contains(message, "did not find expected '-'"):
		return "the indentation fits nothing above", "indent the line as its neighbours are"
	case strings.Contains(message, "cannot start any token"):
		return "a value cannot begin with this character", "put the value in quotes"
	case strings.Contains(message, "unknown anchor"):
		return "an alias (*) stands here", "write the value out"
	}
	return "this is not YAML: " + message, "correct it"
}

// blankLine empties a line and what is indented below it, if its brackets and quotes
// are closed within, so that what remains is likely to be sound; it tells whether it
// did. The number of lines stays.
func blankLine(lines []string, line int) bool {
	i := line - 1
	s := lines[i]
	opened := strings.Count(s, "{") + strings.Count(s, "[")
	closed := strings.Count(s, "}") + strings.Count(s, "]")
	quotes := strings.Count(s, `"`)%2 + strings.Count(s, "'")%2
	isKey := indentOf(s) == 0 && !strings.HasPrefix(s, "- ")
	if blank(s) || isKey || opened != closed || quotes != 0 {
		return false
	}
	end := i + 1
	for end < len(lines) && (blank(lines[end]) || indentOf(lines[end]) > indentOf(s)) {
		end++
	}
	for ; i < end; i++ {
		lines[i] = lineEnd(lines[i])
	}
	return true
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

// lineEnd is what is left of a line that is emptied: the last one may have none.
func lineEnd(line string) string {
	if strings.HasSuffix(line, "\n") {
		return "\n"
	}
	return ""
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// blankSection empties the top-level key around a line with all below it, and tells
// whether there was anything left to empty.
func blankSection(lines []string, line int) bool {
	begins := func(i int) bool { return !blank(lines[i]) && !strings.ContainsAny(lines[i][:1], " \t#-]}") }
	first := line - 1
	for first > 0 && !begins(first) {
		first--
	}
	changed := false
	for i := first; i < len(lines) && (i == first || !begins(i)); i++ {
		changed = changed || !blank(lines[i])
		lines[i] = lineEnd(lines[i])
	}
	return changed
}

// checkTree refuses what YAML has and this format has not, wherever it stands, and
// tells whether the tree can be read on. Anchors and merge keys are refused because
// whoever reads a gate must see what holds for it, and because a merge hides
// duplicate keys.
func (d *decoder) checkTree(n *yaml.Node, depth int) bool {
	if depth > maxDepth {
		d.wrong(n, "it is nested too deeply", "write the keys of docs/config.md")
		return false
	}
	switch {
	case n.Anchor != "":
		d.wrong(n, fmt.Sprintf("an anchor (&%s) stands here", n.Anchor), "write the value out wherever it is meant")
	case n.Kind == yaml.AliasNode:
		d.partial = true // what it stands for is not read
		d.wrong(n, fmt.Sprintf("an alias (*%s) stands here", n.Value), "write the value out")
		return true
	case n.Style&yaml.TaggedStyle != 0:
		d.wrong(n, fmt.Sprintf("a tag (%s) stands here", n.Tag), "take it out")
	}
	for _, child := range n.Content {
		if !d.checkTree(child, depth+1) {
			return false
		}
	}
	return true
}
