package forebay

import (
	"fmt"
	"net/url"
	"strings"
)

// findConflicts reports every two patterns of which the order would have to
// decide: equal ones, and those that match some same request though none of the
// two matches less than the other. Patterns of different hosts never conflict,
// since a pattern with a host goes before all without.
func findConflicts(patterns []*pattern) []error {
	var errs []error
	seen := map[string]*pattern{}
	var distinct []*pattern
	for _, p := range patterns {
		key := p.key()
		if q := seen[key]; q != nil {
			errs = append(errs, routeConflict(p, q, "it matches the same requests as", "take one of them out"))
			continue
		}
		seen[key] = p
		for _, q := range distinct {
			if p.host != q.host {
				continue
			}
			if meet, ordered := comparePatterns(p, q, p.path, q.path); meet && !ordered {
				errs = append(errs, routeConflict(p, q, "neither is more specific than the other, it or", "give one of them a method, a host or a literal segment that puts it within the other, or apart"))
			}
		}
		distinct = append(distinct, p)
	}
	return errs
}

// key is equal for patterns that match the same requests. A literal holds no
// percent sign but in "%25" and "%2f".
func (p *pattern) key() string {
	key := p.method + " " + p.host
	for _, s := range p.path {
		key += "/" + [...]string{s.text, "%one", "%rest"}[s.kind]
	}
	return key
}

func routeConflict(p, q *pattern, what, right string) error {
	method := p.method
	if method == "" || q.method == "HEAD" {
		method = q.method
	}
	request := strings.TrimPrefix(method+" "+showHost(p.host)+examplePath(p.path, q.path), " ")
	return routeError(p.index, p.text, fmt.Sprintf("%s Routes[%d] (%q), and both match %s", what, q.index, q.text, request), right)
}

// examplePath is a path that both patterns match, given that there is one.
func examplePath(p, q []segment) string {
	path := ""
	for i := range max(len(p), len(q)) {
		s := segment{kind: restSegment}
		for _, pattern := range [][]segment{p, q} {
			if i < len(pattern) && pattern[i].kind <= s.kind {
				s = pattern[i]
			}
		}
		name, _ := url.PathUnescape(s.text)
		if s.kind == restSegment {
			name = ""
		}
		path += "/" + url.PathEscape(name)
	}
	return path
}

// comparePatterns reports whether two patterns of one host match some same
// request, and whether one of them matches strictly less than the other. The
// paths are those of p and q, or both folded.
func comparePatterns(p, q *pattern, pPath, qPath []segment) (meet, ordered bool) {
	meet, pWithin, qWithin := comparePaths(pPath, qPath)
	meet = meet && (methodMatches(p.method, q.method) || methodMatches(q.method, p.method))
	pWithin = pWithin && methodMatches(q.method, p.method)
	qWithin = qWithin && methodMatches(p.method, q.method)
	return meet, pWithin != qWithin
}

// comparePaths reports whether some path matches both, and whether all that match
// p match q, and the other way round; without a meeting the latter mean nothing.
func comparePaths(p, q []segment) (meet, pWithin, qWithin bool) {
	pWithin, qWithin = true, true
	for i := 0; i < len(p) || i < len(q); i++ {
		if i >= len(p) || i >= len(q) {
			return false, false, false
		}
		a, b := p[i], q[i]
		if a.kind == restSegment || b.kind == restSegment {
			return true, pWithin && b.kind == restSegment, qWithin && a.kind == restSegment
		}
		if !a.meets(b) {
			return false, false, false
		}
		pWithin = pWithin && a.kind <= b.kind
		qWithin = qWithin && b.kind <= a.kind
	}
	return true, pWithin, qWithin
}

// meets reports whether some text matches both segments. None but the literal ""
// matches what follows a trailing slash.
func (s segment) meets(other segment) bool {
	if s.kind == oneSegment && other.kind == oneSegment {
		return true
	}
	if s.kind == oneSegment {
		return other.text != ""
	}
	return other.kind == oneSegment && s.text != "" || s.text == other.text
}
