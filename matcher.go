package forebay

import (
	"errors"
	"net/url"
	"slices"
)

// A matcher maps requests to the patterns of a route table: precedence is that
// of [net/http.ServeMux], but a request is never redirected, and it is given
// every pattern that any reading of its path names (see reading.go). It is
// immutable and safe for concurrent use.
//
// One lookup per reading walks a tree of segments, which tries the literal
// before the wildcard for one segment before the wildcard for the rest, and at
// the end of a path HEAD before GET before any method. The first pattern that it
// meets is the most specific one. For let S be the patterns of one host that
// match a request. Any two of them match a same request, so newMatcher would
// have refused them unless one matched strictly less than the other: S is a
// chain. Where p matches strictly less than q, the tree meets p first: up to the
// end of p or to the rest wildcard of q, each segment of p is of q's kind or of
// a more specific one; at the first that differs the tree tries p's branch
// first; if none differs the two paths are equal, and the method decides.
type matcher struct {
	patterns []pattern
	hosts    map[string]*hostTable
	anyHost  *hostTable
	// folds is true if folding changes a literal, so that even a path without
	// any letter to fold has to be looked up in the folded trees too.
	folds bool
	// rivals lists for each pattern those that match some same path once case
	// is folded, though none of the two is then the more specific one, as
	// /Reports/{id} and /reports/{id}. A reading without case names them all.
	rivals [][]int
}

// A hostTable holds the patterns of one host, or of none. The two trees are the
// same one where folding changes no literal.
type hostTable struct {
	exact, folded *pathNode
}

// A pathNode is what patterns with a same beginning have in common.
type pathNode struct {
	literals map[string]*pathNode
	one      *pathNode
	ends     []pathEnd // the path ends here
	rests    []pathEnd // the path goes on, with at least a slash
}

// A pathEnd is where a pattern ends; those of one node differ in method and are
// in the order HEAD, other methods, any method.
type pathEnd struct {
	method string
	index  int
}

// newMatcher compiles a route table: what match returns are positions in
// patterns. Its error joins all mistakes, one line each, that begins with
// `forebay: Routes[N] ("PATTERN"): ` and says what would be right.
func newMatcher(patterns []string) (*matcher, error) {
	m := &matcher{patterns: make([]pattern, len(patterns)), rivals: make([][]int, len(patterns))}
	var errs []error
	var sound []*pattern
	for i, text := range patterns {
		p, wrong := parsePattern(i, text)
		m.patterns[i] = p
		errs = append(errs, wrong...)
		if len(wrong) == 0 {
			sound = append(sound, &m.patterns[i])
		}
	}
	errs = append(errs, findConflicts(sound)...)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	m.build()
	return m, nil
}

func (m *matcher) build() {
	m.folds = slices.ContainsFunc(m.patterns, func(p pattern) bool { return !slices.Equal(p.path, p.folded) })
	m.hosts = map[string]*hostTable{}
	for i := range m.patterns {
		p := &m.patterns[i]
		t := m.hosts[p.host]
		if t == nil {
			t = newHostTable(m.folds)
			m.hosts[p.host] = t
		}
		t.exact.insert(p.path, p)
		if m.folds {
			t.folded.insert(p.folded, p)
			m.findRivals(p)
		}
	}
	m.anyHost = m.hosts[""]
	delete(m.hosts, "")
}

func newHostTable(folds bool) *hostTable {
	t := &hostTable{exact: &pathNode{}}
	t.folded = t.exact
	if folds {
		t.folded = &pathNode{}
	}
	return t
}

func (m *matcher) findRivals(p *pattern) {
	for j := range m.patterns[:p.index] {
		q := &m.patterns[j]
		if p.host != q.host {
			continue
		}
		if meet, ordered := comparePatterns(p, q, p.folded, q.folded); meet && !ordered {
			m.rivals[p.index] = append(m.rivals[p.index], j)
			m.rivals[j] = append(m.rivals[j], p.index)
		}
	}
}

func (n *pathNode) insert(path []segment, p *pattern) {
	for _, s := range path {
		switch {
		case s.kind == restSegment:
			n.rests = insertEnd(n.rests, p)
			return
		case s.kind == oneSegment:
			if n.one == nil {
				n.one = &pathNode{}
			}
			n = n.one
		default:
			if n.literals == nil {
				n.literals = map[string]*pathNode{}
			}
			if n.literals[s.text] == nil {
				n.literals[s.text] = &pathNode{}
			}
			n = n.literals[s.text]
		}
	}
	n.ends = insertEnd(n.ends, p)
}

func insertEnd(ends []pathEnd, p *pattern) []pathEnd {
	ends = append(ends, pathEnd{p.method, p.index})
	slices.SortStableFunc(ends, func(a, b pathEnd) int { return methodRank(a.method) - methodRank(b.method) })
	return ends
}

func methodRank(method string) int {
	switch method {
	case "HEAD":
		return 0
	case "":
		return 2
	}
	return 1
}

// find returns the most specific pattern for a path that is not empty, or for
// what is left of one; -1 is none.
func (n *pathNode) find(path []byte, method string) int {
	if len(path) == 0 {
		return pickEnd(n.ends, method)
	}
	seg, tail := cutSegment(path)
	if next := n.literals[string(seg)]; next != nil {
		if i := next.find(tail, method); i >= 0 {
			return i
		}
	}
	// What follows a trailing slash is no segment for a wildcard to match.
	if n.one != nil && len(seg)+len(tail) > 0 {
		if i := n.one.find(tail, method); i >= 0 {
			return i
		}
	}
	return pickEnd(n.rests, method)
}

func pickEnd(ends []pathEnd, method string) int {
	for _, e := range ends {
		if methodMatches(e.method, method) {
			return e.index
		}
	}
	return -1
}

func methodMatches(pattern, method string) bool {
	return pattern == "" || pattern == method || pattern == "GET" && method == "HEAD"
}

// match appends to into the positions of all patterns that any reading of the
// path names, without repeats. The first one appended is always that of the path
// as sent, and is -1 if that names none. into must be empty.
func (m *matcher) match(method, host string, u *url.URL, into []int) []int {
	l := lookup{matcher: m, method: method}
	if len(m.hosts) > 0 {
		var scratch [256]byte
		l.own = m.hosts[string(appendHost(scratch[:0], host))]
	}
	plain, cased := isPlain(u.Path)
	switch {
	case u.Opaque != "" || len(u.Path) > longPath:
		// No path, or one whose readings cost more than they are worth: whatever the
		// application behind makes of it, it passes every gate that it could.
		into = l.addEverything(append(into, l.find(nil, false)))
	case plain && u.RawPath == "":
		var scratch [256]byte
		path := append(scratch[:0], u.Path...)
		into = append(into, l.find(path, false))
		if cased || m.folds {
			into = l.addFolded(into, path)
		}
	case u.Path == "" || u.Path == "*":
		// net/http sends these on as / and /*, and so do proxies.
		into = append(into, l.find(nil, false))
		into = addIndex(into, l.find(rooted(u.Path), false))
		into = l.addFolded(into, rooted(u.Path))
	default:
		into = l.addReadings(into, u)
	}
	return into
}

// longPath is far above any path that is meant, and below what makes a lookup felt.
const longPath = 16 << 10

// A lookup is the state of one call of match. What was found is not in it but
// handed from step to step, so that it stays on the caller's stack.
type lookup struct {
	*matcher
	method string
	own    *hostTable // of the request's host, or nil
}

// find returns the most specific pattern for a path, or -1: a pattern with the
// request's host goes before all without.
func (l *lookup) find(path []byte, folded bool) int {
	i := -1
	if l.own != nil {
		i = l.own.find(path, l.method, folded)
	}
	if i < 0 && l.anyHost != nil {
		i = l.anyHost.find(path, l.method, folded)
	}
	return i
}

// find serves an empty path too (OPTIONS *, CONNECT): only a pattern for
// everything can mean that.
func (t *hostTable) find(path []byte, method string, folded bool) int {
	switch {
	case len(path) == 0:
		return pickEnd(t.exact.rests, method)
	case folded:
		return t.folded.find(path, method)
	}
	return t.exact.find(path, method)
}

// addFolded adds what the path names if case does not count. It overwrites path.
func (l *lookup) addFolded(found []int, path []byte) []int {
	path = appendFold(path[:0], path)
	i := l.find(path, true)
	if i < 0 {
		return found
	}
	found = addIndex(found, i)
	for _, j := range l.rivals[i] {
		if p := &l.patterns[j]; methodMatches(p.method, l.method) && matchesPath(p.folded, path) {
			found = addIndex(found, j)
		}
	}
	return found
}

func (l *lookup) addReadings(found []int, u *url.URL) []int {
	readings, complete := readingsOf(u)
	found = append(found, l.find(readings[0], false))
	if !complete {
		return l.addEverything(found)
	}
	for _, path := range readings {
		found = addIndex(found, l.find(path, false))
		found = l.addFolded(found, path)
	}
	return found
}

// addEverything adds what any path could name.
func (l *lookup) addEverything(found []int) []int {
	for i := range l.patterns {
		p := &l.patterns[i]
		here := p.host == "" || l.own != nil && l.own == l.hosts[p.host]
		if here && methodMatches(p.method, l.method) {
			found = addIndex(found, i)
		}
	}
	return found
}

func addIndex(found []int, i int) []int {
	if i >= 0 && !slices.Contains(found, i) {
		found = append(found, i)
	}
	return found
}

// matchesPath reports whether one pattern's segments match a path.
func matchesPath(pattern []segment, path []byte) bool {
	for _, s := range pattern {
		if len(path) == 0 {
			return false
		}
		if s.kind == restSegment {
			return true
		}
		var seg []byte
		seg, path = cutSegment(path)
		if s.kind == literalSegment && s.text != string(seg) || s.kind == oneSegment && len(seg)+len(path) == 0 {
			return false
		}
	}
	return len(path) == 0
}
