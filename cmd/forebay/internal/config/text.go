package config

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxSize bounds a configuration file. All routes that are allowed fit into half of
// it; what is larger is another file, named by mistake.
const maxSize = 256 << 10

const byteOrderMark = "\ufeff"

// normalise returns the text as the parser gets it, without byte order mark, with
// plain line ends, and without the sections in which characters are wrong; or says why
// it is none. Lines and columns are the file's.
func (d *decoder) normalise(text []byte) (string, bool) {
	start := Pos{1, 1}
	switch {
	case len(text) > maxSize:
		d.wrongAt(start, fmt.Sprintf("the file has more than %d KiB", maxSize>>10), "name a configuration file")
		return "", false
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		d.wrongAt(start, "the file is UTF-16", "save it as UTF-8")
		return "", false
	}
	s := strings.TrimPrefix(string(text), byteOrderMark)
	s = strings.ReplaceAll(s, "\r\n", "\n")
	found := false
	var bad []int
	lines := strings.SplitAfter(s, "\n")
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\n")
		if !d.checkLine(i+1, line) {
			bad = append(bad, i+1)
		}
		content, _, _ := strings.Cut(line, "#")
		content = strings.TrimSpace(content)
		found = found || content != "" && content != "---" && content != "..."
	}
	if !found {
		d.wrongAt(start, "the file is empty", "it needs at least "+d.kind.needs)
		return "", false
	}
	for _, n := range bad {
		blankSection(lines, n)
		d.partial = true
	}
	return strings.Join(lines, ""), true
}

// checkLine finds what the parser would not place, or place in another line: a
// character that it takes as a line end and editors do not moves all that follows.
func (d *decoder) checkLine(n int, line string) bool {
	col, indent := 0, true
	for i, r := range line {
		col++
		at := Pos{n, col}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd"):
			d.wrongAt(at, fmt.Sprintf("the byte 0x%02x is not UTF-8", line[i]), "save the file as UTF-8")
			return false
		case r == '\t' && indent:
			if rest := strings.TrimLeft(line[i:], " \t"); rest != "" && rest[0] != '#' {
				if !d.tab { // one says it for all
					d.wrongAt(at, "the line is indented with a tab", "indent with spaces")
				}
				d.tab = true
				return false
			}
		case r == '\r':
			d.wrongAt(at, "a carriage return stands alone", "end lines with a line feed, or with both")
			return false
		case r < ' ' && r != '\t', 0x7f <= r && r < 0xa0, r == '\u2028', r == '\u2029':
			d.wrongAt(at, fmt.Sprintf("the character U+%04X does not belong into a configuration", r), "take it out")
			return false
		case r == '\ufeff':
			d.wrongAt(at, "a byte order mark stands in the middle", "take it out, or put it first")
			return false
		}
		indent = indent && (r == ' ' || r == '\t')
	}
	return true
}
