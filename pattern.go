package forebay

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// A pattern is the compiled form of `[METHOD ][HOST]/path`, the syntax of
// [http.ServeMux]. It is immutable.
type pattern struct {
	index  int
	text   string
	method string    // "" means any; GET means GET and HEAD
	host   string    // as appendHost writes it; "" means any
	path   []segment // never empty; only the last one may be a restSegment
	folded []segment // path with its literals folded by appendFold
}

// A segment is what a pattern asks of the text between two slashes. `{$}` is
// the literal "" in last place: what follows a trailing slash is empty.
type segment struct {
	kind segmentKind
	text string // of a literal its reading (see reading.go), else the name
}

type segmentKind int

// The order is that of precedence: a literal is more specific than a wildcard
// for one segment, and that one more specific than a wildcard for all the rest.
const (
	literalSegment segmentKind = iota
	oneSegment
	restSegment
)

// patternParser collects every mistake of one pattern; a pattern with a mistake
// is never matched, so the parser may go on with a guess.
type patternParser struct {
	pattern
	errs []error
}

// parsePattern compiles the pattern at position index, or returns all its
// mistakes. It accepts less than net/http does: whatever could never match a
// request, or hardly the ones that its author had in mind, is a mistake.
func parsePattern(index int, text string) (pattern, []error) {
	p := patternParser{pattern: pattern{index: index, text: text}}
	if p.checkOutline(); len(p.errs) > 0 {
		return p.pattern, p.errs
	}
	slash := strings.IndexByte(text, '/')
	p.parseHead(text[:slash], text[slash:])
	p.parsePath(text[:slash], text[slash:])
	p.folded = foldSegments(p.path)
	return p.pattern, p.errs
}

// wrong records a mistake: what is wrong, and what would be right.
func (p *patternParser) wrong(what, right string) {
	p.errs = append(p.errs, routeError(p.index, p.text, what, right))
}

func routeError(index int, text, what, right string) error {
	return fmt.Errorf("forebay: Routes[%d] (%q): %s; %s", index, text, what, right)
}

func suggest(text string) string { return fmt.Sprintf("write %q", text) }

// checkOutline finds the mistakes that leave unclear which part of the text is
// the method, the host and the path, so that nothing more can be said.
func (p *patternParser) checkOutline() {
	text := p.text
	trimmed, slash := strings.TrimSpace(text), strings.IndexByte(text, '/')
	switch {
	case trimmed == "":
		p.wrong("the pattern is empty", `write a path such as "/reports/", or "/" for every path`)
	case strings.ContainsFunc(trimmed, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		p.wrong("the pattern holds a control character", "write it percent-encoded, as %0A")
	case trimmed != text:
		p.wrong("the pattern begins or ends with a space", suggest(trimmed))
	case slash > 0 && strings.HasPrefix(text[slash-1:], "://"):
		method := text[:strings.LastIndexByte(text[:slash], ' ')+1]
		p.wrong("the pattern has a scheme, which no request names", suggest(method+text[slash+2:]))
	case slash < 0:
		p.wrong("the pattern has no path", suggest(withSlash(text)))
	}
}

// withSlash guesses the pattern that a text without any slash stands for.
func withSlash(text string) string {
	if isStandardMethod(text) {
		return text + " /"
	}
	method, path := "", text
	if i := strings.LastIndexAny(text, " \t"); i >= 0 {
		method, path = strings.TrimSpace(text[:i])+" ", text[i+1:]
	}
	return method + "/" + path
}

// parseHead reads what stands before the first slash.
func (p *patternParser) parseHead(head, path string) {
	host, space := head, strings.LastIndexAny(head, " \t")
	if space >= 0 {
		host = head[space+1:]
		p.parseMethod(head[:space], head[space] == '\t', host+path)
	}
	if host != "" {
		p.parseHost(host, head[:len(head)-len(host)], path)
	}
}

func (p *patternParser) parseMethod(method string, tab bool, after string) {
	words := strings.Fields(method)
	joined := strings.Join(words, "")
	upper := strings.ToUpper(joined)
	near := nearMethod(upper)
	switch {
	case len(words) > 1:
		right := "write one method, in upper case, then one space"
		if isStandardMethod(upper) {
			right = suggest(upper + " " + after)
		}
		p.wrong(fmt.Sprintf("the method %q holds a space", method), right)
	case strings.ContainsFunc(joined, notMethodRune):
		p.wrong(fmt.Sprintf("the method %q holds a character that no method has", joined), "write upper-case letters only, such as GET")
	case near != "":
		p.wrong(fmt.Sprintf("there is no method %s", joined), fmt.Sprintf("did you mean %s? then %s", near, suggest(near+" "+after)))
	case joined != upper:
		p.wrong(fmt.Sprintf("the method %s is not in upper case, and methods are compared letter by letter", joined), suggest(upper+" "+after))
	case joined != method || tab:
		p.wrong("what stands after the method is not one space", suggest(joined+" "+after))
	}
	p.method = joined
}

// notMethodRune reports what RFC 9110 (section 5.6.2) allows in no method.
func notMethodRune(r rune) bool {
	return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

func isAlphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// parseHost accepts only the form that appendHost brings a request's host to:
// any other host would match nothing.
func (p *patternParser) parseHost(host, before, path string) {
	normal := string(appendHost(nil, host))
	shown := showHost(normal)
	p.host = normal
	switch {
	case strings.ContainsAny(host, "{}"):
		p.wrong("a wildcard stands before the first slash", suggest(before+"/"+host+path))
	case strings.Contains(host, "*"):
		p.wrong(fmt.Sprintf("the host %q has a wildcard, and hosts have none", host), "write one pattern for each host, or none for every host")
	case strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		p.wrong(fmt.Sprintf("the host %q is not ASCII, and requests are", host), `write it as requests name it, in its "xn--" form`)
	case !isHostName(normal) && !isIPv6(normal):
		p.wrong(fmt.Sprintf("there is no host %q", host), `write a name such as "api.example/path", or begin the path with a slash`)
	case host != shown:
		p.wrong(fmt.Sprintf("the host %q is compared in lower case, without port and final dot, an IPv6 address in brackets", host), suggest(before+shown+path))
	}
}

// parsePath reads everything from the first slash on.
func (p *patternParser) parsePath(head, path string) {
	if i := indexQuery(path); i >= 0 {
		p.wrong("the pattern has a query or a fragment, and routes see only the path", suggest(head+path[:i])+", or %3F and %23 for the characters themselves")
		path = path[:i]
	}
	if strings.ContainsFunc(path, unicode.IsSpace) {
		p.wrong("the path holds a space", suggest(head+strings.Join(strings.Fields(path), "%20")))
	}
	if strings.Contains(path, `\`) {
		p.wrong("the path holds a backslash", suggest(head+strings.ReplaceAll(path, `\`, "/"))+", or %5C for the character itself")
	}
	if merged := string(mergeSlashes([]byte(path))); merged != path {
		p.wrong("the path has an empty segment", suggest(head+merged))
		path = merged
	}
	decoded := decodeSegments([]byte(path))
	if resolved := resolveDots(decoded, true); string(resolved) != string(decoded) {
		p.wrong(`the path has a segment "." or ".."`, suggest(head+string(resolved)))
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		p.addSegment(s, i == len(segments)-1)
	}
	p.checkNames()
}

// indexQuery finds the first `?` or `#` outside of braces; inside, it is part
// of a name that is wrong for a reason of its own.
func indexQuery(path string) int {
	inside := false
	for i := range len(path) {
		switch path[i] {
		case '{', '}', '/':
			inside = path[i] == '{'
		case '?', '#':
			if !inside {
				return i
			}
		}
	}
	return -1
}

func (p *patternParser) addSegment(s string, last bool) {
	name, isWildcard := strings.CutPrefix(s, "{")
	name, closed := strings.CutSuffix(name, "}")
	switch {
	case s == "":
		p.path = append(p.path, segment{kind: restSegment})
	case !strings.ContainsAny(s, "{}"):
		p.addLiteral(s)
	case !isWildcard || !closed || strings.ContainsAny(name, "{}"):
		p.wrong(fmt.Sprintf("the braces in %q are not around a whole segment", s), `write a wildcard as "/{name}/", and %7B and %7D for the characters themselves`)
	case name == "$" && last:
		p.path = append(p.path, segment{kind: literalSegment})
	case name == "$":
		p.wrong("{$} is not at the end of the path", "take it out, or end the pattern with it")
	default:
		p.addWildcard(name, last)
	}
}

func (p *patternParser) addLiteral(s string) {
	if _, err := url.PathUnescape(s); err != nil {
		var bad url.EscapeError
		errors.As(err, &bad)
		p.wrong(fmt.Sprintf("%q is not a percent escape", string(bad)), "write two hexadecimal digits after %, or %25 for the character itself")
	}
	p.path = append(p.path, segment{literalSegment, string(decodeSegments([]byte(s)))})
}

func (p *patternParser) addWildcard(name string, last bool) {
	name, isRest := strings.CutSuffix(name, "...")
	if right := identifier(name); right != name {
		if isRest {
			right += "..."
		}
		p.wrong(fmt.Sprintf("the wildcard name %q is not a Go identifier", name), suggest("{"+right+"}"))
	}
	if isRest && !last {
		p.wrong(fmt.Sprintf("the wildcard {%s...} is not at the end of the path", name), fmt.Sprintf("write {%s}, or end the pattern with it", name))
	}
	kind := oneSegment
	if isRest {
		kind = restSegment
	}
	p.path = append(p.path, segment{kind, name})
}

// identifier is the Go identifier that comes closest to name.
func identifier(name string) string {
	right := strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
	if right == "" || unicode.IsDigit([]rune(right)[0]) {
		right = "x" + right
	}
	return right
}

func (p *patternParser) checkNames() {
	seen := map[string]bool{}
	for _, s := range p.path {
		if s.kind == literalSegment || s.text == "" {
			continue
		}
		if seen[s.text] {
			p.wrong(fmt.Sprintf("two wildcards are named %s", s.text), "give each a name of its own")
		}
		seen[s.text] = true
	}
}

func foldSegments(path []segment) []segment {
	folded := make([]segment, len(path))
	for i, s := range path {
		folded[i] = s
		if s.kind == literalSegment {
			folded[i].text = string(appendFold(nil, []byte(s.text)))
		}
	}
	return folded
}

var standardMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

func isStandardMethod(method string) bool { return slices.Contains(standardMethods, method) }

// nearMethod is the standard method from which the given one differs by one
// slip of the fingers, or "". Methods further away may well exist: PURGE, LOCK.
func nearMethod(method string) string {
	if isStandardMethod(method) {
		return ""
	}
	for _, m := range standardMethods {
		if oneSlip(m, method) {
			return m
		}
	}
	return ""
}

// oneSlip reports whether one character is missing, added, replaced, or swapped
// with its neighbour.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	a, b = a[i:], b[i:]
	if len(a) < len(b) {
		return a == b[1:]
	}
	swapped := len(a) > 1 && a[0] == b[1] && a[1] == b[0] && a[2:] == b[2:]
	return a != "" && (a[1:] == b[1:] || swapped)
}
