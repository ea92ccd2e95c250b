package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	referenceLink = regexp.MustCompile(`^\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)`)
	codeSpan      = regexp.MustCompile("`[^`]*`")
	outsideLink   = regexp.MustCompile(`^([a-z][a-z0-9+.-]*:|//)`)
	heading       = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
)

// linksResolve: links between files of the repository lead somewhere, anchors
// included.
func linksResolve(t *tree) (found []string) {
	for _, p := range t.files {
		if path.Ext(p) != ".md" {
			continue
		}
		for n, line := range proseLines(t.read(p)) {
			line = codeSpan.ReplaceAllString(line, "``")
			links := slices.Concat(inlineLink.FindAllStringSubmatch(line, -1), referenceLink.FindAllStringSubmatch(line, -1))
			for _, m := range links {
				if why := t.brokenLink(p, m[1]); why != "" {
					found = append(found, fmt.Sprintf("%s:%d: link %s: %s", p, n, m[1], why))
				}
			}
		}
	}
	return found
}

// brokenLink returns what is wrong with a link in the file p, "" if nothing.
func (t *tree) brokenLink(p, link string) string {
	if outsideLink.MatchString(link) {
		return ""
	}
	target, anchor, _ := strings.Cut(link, "#")
	file := p
	if target != "" {
		file = path.Join(path.Dir(p), target)
	}
	switch {
	case strings.HasPrefix(target, "/"):
		return "write it relative to this file"
	case !t.exists(file):
		return "no such file"
	case anchor != "" && path.Ext(file) == ".md" && !slices.Contains(anchors(t.read(file)), anchor):
		return "no such heading"
	}
	return ""
}

// anchors returns the anchors of a Markdown file's headings, made as the usual
// forges make them.
func anchors(text []byte) (slugs []string) {
	seen := map[string]int{}
	for _, line := range proseLines(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		if n := seen[slug]; n > 0 {
			slugs = append(slugs, fmt.Sprintf("%s-%d", slug, n))
		} else {
			slugs = append(slugs, slug)
		}
		seen[slug]++
	}
	return slugs
}

// proseLines yields the numbered lines of a Markdown file outside code fences.
func proseLines(text []byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		fence, n := "", 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.TrimRight(line, "\r\n")
			trimmed := strings.TrimSpace(line)
			switch {
			case fence != "":
				if strings.HasPrefix(trimmed, fence) {
					fence = ""
				}
			case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
				fence = trimmed[:3]
			default:
				if !yield(n, line) {
					return
				}
			}
		}
	}
}
