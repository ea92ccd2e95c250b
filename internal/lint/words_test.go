package lint

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// vaguePackages and vagueTypes are names that say nothing.
var (
	vaguePackages = []string{"util", "utils", "common", "helper", "helpers", "base", "types"}
	vagueTypes    = []string{"manager", "service", "impl", "data"}
)

// otherWords are words for which this project has one of its own, from the
// word table in CONTRIBUTING.md. Words of that table which HTTP or Go need for
// something else (status, result, timeout, key, user, role, limiter) are left
// to review.
var otherWords = map[string]string{
	"throttle":    "Gate",
	"throttler":   "Gate",
	"guard":       "Gate",
	"token":       "Lease",
	"permit":      "Lease",
	"ticket":      "Lease",
	"hook":        "Event, Observer",
	"active":      "InFlight",
	"pending":     "Waiting",
	"latency":     "Waited or Held",
	"weight":      "Cost",
	"seat":        "Cost",
	"controller":  "Limiter",
	"tenant":      "Lane or Caller",
	"vip":         "Lane",
	"distributed": "cluster",
	"global":      "cluster",
	"shutdown":    "Drain",
	"throughput":  "goodput",
}

// allowedNames keep one of the otherWords, each with its reason.
var allowedNames = map[string]string{
	"token_file": "a bearer token on the admin port is not a lease",
}

// packageNames: no package is named after nothing.
func packageNames(t *tree) (found []string) {
	for _, s := range t.sources {
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		for _, n := range []string{name, path.Base(s.dir)} {
			if slices.Contains(vaguePackages, n) {
				found = append(found, s.at(s.file.Package, "package %s: name it after what it provides", n))
				break
			}
		}
	}
	return found
}

// typeNames: no type is named after nothing.
func typeNames(t *tree) (found []string) {
	for _, s := range t.sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				words := splitWords(spec.Name.Name)
				if slices.Contains(vagueTypes, words[len(words)-1]) {
					found = append(found, s.at(spec.Pos(), "type %s: name it after what it is", spec.Name.Name))
				}
			}
			return true
		})
	}
	return found
}

// oneWordPerIdea: no outside name uses another word for an idea that has one.
func oneWordPerIdea(t *tree) (found []string) {
	for _, n := range t.outsideNames() {
		if _, ok := allowedNames[n.name]; ok {
			continue
		}
		for _, w := range splitWords(path.Base(strings.ReplaceAll(n.name, ".", "/"))) {
			ours, other := otherWords[w]
			if !other {
				ours, other = otherWords[strings.TrimSuffix(w, "s")]
			}
			if other {
				found = append(found, fmt.Sprintf("%s: %s %s: the word here is %s", n.where, n.kind, n.name, ours))
			}
		}
	}
	return found
}

// splitWords splits MaxInFlight, max_in_flight and HTTPStatus into lower-case
// words.
func splitWords(name string) (words []string) {
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case r == '_' || r == '-':
			cut(i)
			start = i + 1
		case i > 0 && unicode.IsUpper(r):
			nextLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(runes[i-1]) || nextLower {
				cut(i)
			}
		}
	}
	cut(len(runes))
	if len(words) == 0 {
		words = []string{""}
	}
	return words
}

// The patterns below are put together from pieces so that this file does not
// break its own rules.
var (
	leftovers     = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	machinePaths  = regexp.MustCompile(`(^|[^A-Za-z0-9_.*}/])/(wor` + `k|roo` + `t|tm` + `p|hom` + `e|User` + `s)/`)
	registryHosts = regexp.MustCompile(`\b(proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.npm` + `js\.org|py` + `pi\.org|index\.cra` + `tes\.io|deb\.deb` + `ian\.org|go` + `proxy\.[a-z]+)\b`)
)

// leftoverWords: Go and Markdown hold no notes to oneself.
func leftoverWords(t *tree) []string {
	return t.matches(leftovers, "finish it, or file an issue", func(p string) bool {
		return path.Ext(p) == ".go" || path.Ext(p) == ".md"
	})
}

// thisMachine: no committed file names a path or a package registry of the
// machine it was written on.
func thisMachine(t *tree) []string {
	committed := func(p string) bool { return path.Base(p) != "go.sum" && path.Base(p) != "go.work.sum" }
	return slices.Concat(
		t.matches(machinePaths, "a path of one machine", committed),
		t.matches(registryHosts, "the host of a package registry", committed),
	)
}

// matches reports each line of the chosen text files that a pattern matches.
func (t *tree) matches(pattern *regexp.Regexp, why string, choose func(string) bool) (found []string) {
	for _, p := range t.files {
		text := t.read(p)
		if !choose(p) || !isText(text) {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if m := pattern.FindString(line); m != "" {
				found = append(found, fmt.Sprintf("%s:%d: %q: %s", p, n, strings.TrimSpace(m), why))
			}
		}
	}
	return found
}
