package forebay

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// choices turns fuzz bytes into decisions; when they are used up it takes the
// first alternative each time.
type choices []byte

func (c *choices) below(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

func (c *choices) of(alternatives ...string) string { return alternatives[c.below(len(alternatives))] }

func randomChoices(r *rand.Rand, n int) choices {
	c := make(choices, n)
	for i := range c {
		c[i] = byte(r.Uint32())
	}
	return c
}

// fromRandomSeeds runs the body of a fuzz target without the fuzzer.
func fromRandomSeeds(t *testing.T, size int, body func(*testing.T, choices)) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		if body(t, randomChoices(r, size)); t.Failed() {
			return
		}
	}
}

func (c *choices) pattern() string {
	path := ""
	for i := range c.below(4) {
		path += "/" + c.of("a", "b", "c", "%61", "a%2Fb", "A", fmt.Sprintf("{x%d}", i), fmt.Sprintf("{y%d}", i))
	}
	end := c.of("", "/", "/{$}", "/{z...}")
	if path == "" && end == "" {
		end = "/"
	}
	return c.of("", "", "GET ", "HEAD ", "POST ", "PURGE ") + c.of("", "", "", "a.example", "b.example") + path + end
}

func (c *choices) cleanPath() string {
	path := ""
	for range c.below(5) {
		path += "/" + c.of("a", "b", "c", "%61", "a%2Fb", "a%2fb", "A", "a;b", "z%25", "%C3%A9")
	}
	if path == "" {
		return "/"
	}
	return path + c.of("", "/")
}

// muxAccepts registers a pattern with the reference.
func muxAccepts(mux *http.ServeMux, pattern string) (accepted bool) {
	defer func() { accepted = recover() == nil }()
	mux.Handle(pattern, destination{})
	return true
}

type destination struct{}

func (destination) ServeHTTP(http.ResponseWriter, *http.Request) {}

// sameAsServeMux compares one route table and some requests with the reference.
func sameAsServeMux(t *testing.T, c choices) {
	mux := http.NewServeMux()
	var table []string
	for range 1 + c.below(8) {
		p := c.pattern()
		want := muxAccepts(mux, p)
		if _, err := newMatcher(append(table, p)); (err == nil) != want {
			t.Fatalf("after %q, %q: ServeMux accepts: %v; we: %v", table, p, want, err)
		}
		if want {
			table = append(table, p)
		}
	}
	m := mustMatcher(t, table...)
	for range 8 {
		method := c.of("GET", "HEAD", "POST", "PURGE", "BREW")
		host := c.of("", "a.example", "b.example", "c.example", "a.example:80")
		u := mustURL(t, c.cleanPath())
		handler, want := mux.Handler(&http.Request{Method: method, Host: host, URL: u})
		if _, ours := handler.(destination); !ours && want != "" {
			continue // a redirect, which we never make
		}
		got := m.match(method, host, u, nil)
		if first := got[0]; first < 0 && want != "" || first >= 0 && table[first] != want {
			t.Fatalf("of %q, %s %s%s names %v, ServeMux says %q", table, method, host, u.EscapedPath(), got, want)
		}
		for i := range table {
			if n := occurrences(got, i); n > 1 {
				t.Fatalf("%v names %d twice", got, i)
			}
		}
	}
}

func occurrences(list []int, wanted int) (n int) {
	for _, i := range list {
		if i == wanted {
			n++
		}
	}
	return n
}

func TestSameAsServeMux(t *testing.T) { fromRandomSeeds(t, 120, sameAsServeMux) }

func FuzzSameAsServeMux(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x03\x01\x00\x01\x02\x03\x02\x06\x01\x00\x00\x00\x05\x04\x03\x02\x01"))
	f.Fuzz(func(t *testing.T, data []byte) { sameAsServeMux(t, data) })
}

// A disguise spells a path in another way that some backend reads alike. What it
// returns is the path before a given number of decodings is still to be done.
type disguise func(c *choices, path string) string

var disguises = []disguise{
	func(c *choices, path string) string { return insertAt(c, path, "/") },
	func(c *choices, path string) string { return insertAt(c, path, "/.") },
	func(c *choices, path string) string { return insertAt(c, path, "/x/..") },
	func(c *choices, path string) string { return insertAt(c, path, "/x;q/..;v=1") },
	func(c *choices, path string) string { return insertAt(c, path, ";v=1") },
	func(c *choices, path string) string { return insertAt(c, path, ";") },
	func(c *choices, path string) string { return strings.Replace(path, "/", `\`, 1+c.below(3)) },
	func(c *choices, path string) string { return strings.ToUpper(path) },
	func(c *choices, path string) string { return strings.ReplaceAll(path, "s", "ſ") },
	func(c *choices, path string) string { return strings.Replace(path, "k", "\u212a", 1) },
}

// insertAt puts what a reader takes out again in front of one of the slashes.
func insertAt(c *choices, path, text string) string {
	var slashes []int
	for i := range len(path) {
		// In front of the first slash there is no segment to have parameters.
		if path[i] == '/' && (i > 0 || text[0] == '/') {
			slashes = append(slashes, i)
		}
	}
	if len(slashes) == 0 {
		return path
	}
	i := slashes[c.below(len(slashes))]
	return path[:i] + text + path[i:]
}

// encodeSome percent-encodes some of the bytes, and all that a target cannot hold.
func encodeSome(c *choices, path string, must string) string {
	var b strings.Builder
	for i := range len(path) {
		char := path[i]
		switch {
		case strings.IndexByte(must, char) >= 0, char >= 0x80, c.below(4) == 3 && i > 0:
			fmt.Fprintf(&b, c.of("%%%02x", "%%%02X"), char)
		default:
			b.WriteByte(char)
		}
	}
	return b.String()
}

// noEscape checks that no disguise takes a request away from the route that its
// clean path names.
func noEscape(t *testing.T, c choices) {
	table := []string{
		"/", "/reports/", "/reports/{id}", "/reports/sick/kit", "GET /desk/{x}/s", "/desk/", "/k", "/{$}",
	}
	m := mustMatcher(t, table...)
	clean := ""
	for range 1 + c.below(3) {
		clean += "/" + c.of("reports", "sick", "kit", "desk", "s", "k", "other")
	}
	clean += c.of("", "/")
	want := naiveMatch(m, "GET", clean)
	path := clean
	for range c.below(5) {
		path = disguises[c.below(len(disguises))](&c, path)
	}
	if c.below(2) == 1 {
		path = encodeSome(&c, path, "%")
	}
	target := encodeSome(&c, path, "%\\")
	if target[0] != '/' {
		target = "/" + target
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.match("GET", "", u, nil); !slices.Contains(got, want) {
		t.Fatalf("%s, a disguise of %s, names %v, want also %d (%s)", target, clean, got, want, table[want])
	}
	if got := m.match("GET", "", mustURL(t, clean), nil); !slices.Equal(got, []int{want}) {
		t.Fatalf("%s names %v, want only %d (%s)", clean, got, want, table[want])
	}
}

// naiveMatch scans the whole table with another method of comparison.
func naiveMatch(m *matcher, method, path string) int {
	best := -1
	for i, p := range m.patterns {
		if p.method != "" && p.method != method || !naiveMatchPath(strings.Split(p.text[strings.Index(p.text, "/"):], "/"), strings.Split(path, "/")) {
			continue
		}
		if best < 0 || naiveLess(p.text, m.patterns[best].text) {
			best = i
		}
	}
	return best
}

func naiveMatchPath(pattern, path []string) bool {
	for i, s := range pattern {
		switch {
		case i == len(path):
			return false
		case s == "" && i == len(pattern)-1:
			return true
		case s == "{$}":
			return path[i] == "" && i == len(path)-1
		case strings.HasPrefix(s, "{"):
			if path[i] == "" {
				return false
			}
		case s != path[i]:
			return false
		}
	}
	return len(pattern) == len(path)
}

// naiveLess suffices for the table above: it counts literals, then wildcards.
func naiveLess(a, b string) bool {
	rank := func(s string) (n int) {
		for part := range strings.SplitSeq(s[strings.Index(s, "/"):], "/") {
			switch {
			case part == "{$}":
				n++
			case strings.HasPrefix(part, "{"):
				n += 10
			case part != "":
				n += 100
			}
		}
		return n
	}
	return rank(a) > rank(b)
}

func TestNoEscape(t *testing.T) { fromRandomSeeds(t, 150, noEscape) }

func FuzzNoEscape(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("\x01\x00\x01\x00\x03\x02\x01\x04\x00\x01\x03\x03\x03\x00\x03\x01"))
	f.Fuzz(func(t *testing.T, data []byte) { noEscape(t, data) })
}

func TestReadings(t *testing.T) {
	for target, want := range map[string]string{
		"/a":          "/a",
		"/a%2Fb":      "/a%2fb /a/b",
		"/a%252Fb":    "/a%252Fb /a%2fb /a/b",
		"/a%25%32f":   "/a%252f /a%2f /a/",
		"/a//b":       "/a//b /a/b",
		"/a/..":       "/a/.. / ",
		"/a/b/.":      "/a/b/. /a/b /a/b/",
		"/..":         "/.. /",
		"/;a/b":       "/;a/b //b /b",
		`/a\b%2Fc`:    `/a\b/c /a\b%2fc /a/b/c /a/b%2fc`,
		"/%25zz":      "/%25zz",
		"/%2541%2542": "/%2541%2542 /AB",
	} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		readings, complete := readingsOf(u)
		var got []string
		for _, r := range readings {
			if !slices.Contains(got, string(r)) {
				got = append(got, string(r))
			}
		}
		wanted := strings.Fields(want)
		if !complete || got[0] != wanted[0] {
			t.Errorf("%s as sent is read %q, want %q", target, got[0], wanted[0])
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("%s is read %q, want %q", target, got, wanted)
		}
	}
}

func TestAppendFold(t *testing.T) {
	for _, pair := range [][2]string{{"Reports", "rEPORTS"}, {"\u212a", "k"}, {"ſ", "S"}, {"ß", "ẞ"}, {"Σ", "ς"}, {"Ⱥ", "ⱥ"}, {"É", "é"}, {"a\xff", "A\xff"}} {
		a, b := string(appendFold(nil, []byte(pair[0]))), string(appendFold(nil, []byte(pair[1])))
		if a != b {
			t.Errorf("%q folds to %q, %q to %q", pair[0], a, pair[1], b)
		}
	}
	for r := rune(0); r < 0x20000; r++ {
		if s := string(r); len(appendFold(nil, []byte(s))) > len(s) {
			t.Errorf("%q grows when folded", s)
		}
	}
}
