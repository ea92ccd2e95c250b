package forebay

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func mustMatcher(t testing.TB, patterns ...string) *matcher {
	t.Helper()
	m, err := newMatcher(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustURL parses a request target as net/http's server does.
func mustURL(t testing.TB, target string) *url.URL {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// namesOf lists the patterns that a request names, "-" for none as sent.
func namesOf(t testing.TB, m *matcher, method, host, target string) string {
	t.Helper()
	var out []string
	for _, i := range m.match(method, host, mustURL(t, target), nil) {
		if i < 0 {
			out = append(out, "-")
		} else {
			out = append(out, m.patterns[i].text)
		}
	}
	return strings.Join(out, ", ")
}

func TestKR07DoubleSlashDoesNotSlipPast(t *testing.T) {
	m := mustMatcher(t, "/reports/", "/reports/{id}/pdf", "/")
	for target, want := range map[string]string{
		"/reports/x":              "/reports/",
		"//reports/x":             "/, /reports/",
		"/reports//x":             "/reports/",
		"/./reports/x":            "/, /reports/",
		"/x/../reports/x":         "/, /reports/",
		"/reports/../x":           "/reports/, /",
		"/%2e/reports/x":          "/, /reports/",
		"/%2Freports/x":           "/, /reports/",
		"/reports%2Fx":            "/, /reports/",
		"/%72eports/x":            "/reports/",
		"/%2572eports/x":          "/, /reports/",
		"/reports%252Fx":          "/, /reports/",
		`/reports\x`:              "/, /reports/",
		"/reports%5Cx":            "/, /reports/",
		"/reports;v=1/x":          "/, /reports/",
		"/x/..;/reports/x":        "/, /reports/",
		"/x/..;a=%2F/reports/x":   "/, /reports/",
		"/REPORTS/x":              "/, /reports/",
		"/repo%C5%BFts/x":         "/",
		"/report%C5%BF/x":         "/, /reports/",
		"/Reports/1//PDF":         "/, /reports/, /reports/{id}/pdf",
		"/reports/1/x/../pdf":     "/reports/, /reports/{id}/pdf",
		"/reports//../reports/x":  "/reports/",
		"/reports/a%2Fb/../c":     "/reports/",
		`/.//reports/..\..//x`:    "/, /reports/",
		"/x/..;/reports/..%3B/y":  "/, /reports/",
		"/x/../reports/%2e%2e/z":  "/, /reports/",
		"/%252e%252e/reports%2fx": "/, /reports/",
	} {
		if got := namesOf(t, m, "GET", "", target); got != want {
			t.Errorf("GET %s names %s, want %s", target, got, want)
		}
	}
}

func TestKR08LegalPathsKeepTheirRoute(t *testing.T) {
	m := mustMatcher(t, "/x/", "/x/{name}/raw", "/api/exchanges/{vhost}/{name}", "/")
	for target, want := range map[string]string{
		"/x/%2F/y":                     "/x/",
		"/x/https%3A%2F%2Fh%2F":        "/x/",
		"/x/https%3A%2F%2Fh%2F/raw":    "/x/{name}/raw, /x/",
		"/x/a%20b":                     "/x/",
		"/x/%E2%82%AC":                 "/x/",
		"/x/%e2%82%ac":                 "/x/",
		"/x/y?a=1;b=2":                 "/x/",
		"/x/a/b;c/d":                   "/x/",
		"/x/100%25":                    "/x/",
		"/x/.well-known/...":           "/x/",
		"/api/exchanges/%2F/name":      "/api/exchanges/{vhost}/{name}, /",
		"/api/exchanges/vh/caf%c3%a9":  "/api/exchanges/{vhost}/{name}",
		"/api/exchanges/vh/a+b@c:d,e=": "/api/exchanges/{vhost}/{name}",
	} {
		u := mustURL(t, target)
		before := *u
		if got := namesOf(t, m, "GET", "", target); got != want {
			t.Errorf("GET %s names %s, want %s", target, got, want)
		}
		if m.match("GET", "", u, nil); *u != before {
			t.Errorf("match changed the URL of %s", target)
		}
	}
}

func TestKR09SlashMethodAndHost(t *testing.T) {
	m := mustMatcher(t, "POST /reports", "GET /reports/", "api.example/reports/", "[::1]/", "HEAD /only/head", "GET /only/")
	for _, tt := range []struct{ method, host, target, want string }{
		{"POST", "", "/reports", "POST /reports"},
		{"GET", "", "/reports", "-"},
		{"POST", "", "/reports/", "-"},
		{"GET", "", "/reports/", "GET /reports/"},
		{"HEAD", "", "/reports/", "GET /reports/"},
		{"HEAD", "", "/only/head", "HEAD /only/head"},
		{"GET", "", "/only/head", "GET /only/"},
		{"get", "", "/reports/", "-"},
		{"BREW", "", "/reports/", "-"},
		{"BREW", "api.example", "/reports/", "api.example/reports/"},
		{"GET", "api.example", "/reports/x", "api.example/reports/"},
		{"GET", "api.example:8080", "/reports/x", "api.example/reports/"},
		{"GET", "API.Example", "/reports/x", "api.example/reports/"},
		{"GET", "api.example.", "/reports/x", "api.example/reports/"},
		{"GET", "API.example.:80", "/reports/x", "api.example/reports/"},
		{"GET", "www.example", "/reports/x", "GET /reports/"},
		{"POST", "api.example", "/reports", "POST /reports"},
		{"GET", "[::1]", "/x", "[::1]/"},
		{"GET", "[0:0:0::1]:8080", "/x", "[::1]/"},
		{"GET", "::1", "/x", "[::1]/"},
		{"GET", "[::1", "/reports/", "GET /reports/"},
		{"GET", ":", "/reports/", "GET /reports/"},
		{"CONNECT", "api.example", "/reports/", "api.example/reports/"},
	} {
		if got := namesOf(t, m, tt.method, tt.host, tt.target); got != tt.want {
			t.Errorf("%s %s%s names %s, want %s", tt.method, tt.host, tt.target, got, tt.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	m := mustMatcher(t, "/", "/{$}", "/a/", "/a/{$}", "/a/{x}", "/a/b", "GET /a/b", "/a/{x}/c", "/a/b/z/", "/a/b/c", "h/a/", "/a%2Fb", "/{x}")
	for target, want := range map[string]string{
		"/":        "/{$}",
		"/z":       "/{x}",
		"/z/":      "/",
		"/a":       "/{x}",
		"/a/":      "/a/{$}",
		"/a/z":     "/a/{x}",
		"/a/z/":    "/a/",
		"/a/b":     "GET /a/b",
		"/a/b/":    "/a/",
		"/a/z/c":   "/a/{x}/c",
		"/a/z/d":   "/a/",
		"/a/b/c":   "/a/b/c",
		"/a/b/d/e": "/a/",
		"/a/b/z/e": "/a/b/z/",
		"/a%2Fb":   "/a%2Fb, GET /a/b",
	} {
		if got := namesOf(t, m, "GET", "", target); got != want {
			t.Errorf("GET %s names %s, want %s", target, got, want)
		}
	}
	if got := namesOf(t, m, "GET", "h", "/a/b"); got != "h/a/" {
		t.Errorf("with the host h, /a/b names %s, want h/a/", got)
	}
}

func TestCaseInPatterns(t *testing.T) {
	m := mustMatcher(t, "/Reports/", "/reports/{id}", "/REPORTS/x", "/straße/", "/")
	for target, want := range map[string]string{
		"/Reports/1":       "/Reports/, /reports/{id}",
		"/reports/1":       "/reports/{id}",
		"/REPORTS/x":       "/REPORTS/x",
		"/reports/x":       "/reports/{id}, /REPORTS/x",
		"/reports/1/2":     "/, /Reports/",
		"/STRA%E1%BA%9EE/": "/, /straße/",
		"/other":           "/",
	} {
		if got := namesOf(t, m, "GET", "", target); got != want {
			t.Errorf("GET %s names %s, want %s", target, got, want)
		}
	}
}

func TestRivalsAreAllNamed(t *testing.T) {
	m := mustMatcher(t, "/Reports/{id}", "/reports/{id}", "/a/B/{x}", "/A/{y}/c", "GET /q/", "POST /Q/")
	for target, want := range map[string]string{
		"/REPORTS/1": "-, /reports/{id}, /Reports/{id}",
		"/reports/1": "/reports/{id}, /Reports/{id}",
		"/a/b/c":     "-, /a/B/{x}, /A/{y}/c",
		"/a/b/d":     "-, /a/B/{x}",
		"/a/z/c":     "-, /A/{y}/c",
		"/q/":        "GET /q/",
	} {
		got := strings.Split(namesOf(t, m, "GET", "", target), ", ")
		wanted := strings.Split(want, ", ")
		if got[0] != wanted[0] {
			t.Errorf("GET %s as sent names %s, want %s", target, got[0], wanted[0])
		}
		slices.Sort(got)
		slices.Sort(wanted)
		if !slices.Equal(got, wanted) {
			t.Errorf("GET %s names %q, want %q", target, got, wanted)
		}
	}
}

func TestRequestsWithoutAPath(t *testing.T) {
	for _, c := range []struct {
		u     *url.URL
		named string // patterns that any reading names; the others none does
	}{
		// Sent on as /, as /*, and as nobody knows what.
		{&url.URL{}, "/ OPTIONS_/ h/ /{x...} /{$}"},
		{&url.URL{Path: "*"}, "/ OPTIONS_/ h/ /{x...} /{x}"},
		{&url.URL{Opaque: "x:y"}, "/ OPTIONS_/ h/ /{x...} /{$} /{x} /a/"},
	} {
		for _, pattern := range []string{"/", "OPTIONS /", "h/", "/{x...}", "/{$}", "/{x}", "GET /", "/a/"} {
			want := slices.Contains(strings.Fields(c.named), strings.ReplaceAll(pattern, " ", "_"))
			got := mustMatcher(t, pattern).match("OPTIONS", "h", c.u, nil)
			if slices.Contains(got, 0) != want {
				t.Errorf("%v named %v of %q, want it named: %v", c.u, got, pattern, want)
			}
		}
	}
	rootless := &url.URL{Path: "a/b"}
	if got := mustMatcher(t, "/a/").match("GET", "", rootless, nil); !slices.Equal(got, []int{0}) {
		t.Errorf("a path without its first slash named %v, want [0]", got)
	}
	if m := mustMatcher(t); !slices.Equal(m.match("GET", "h", &url.URL{Path: "/A;"}, nil), []int{-1}) {
		t.Errorf("a table without routes names something")
	}
}

// A path with too many readings to list is given every route that its method and
// host allow, and costs a bounded time.
func TestTooManyReadings(t *testing.T) {
	m := mustMatcher(t, "/a/", "GET /b/", "POST /c/", "h/d/", "g/e/", "/")
	target := "/z" + strings.Repeat(`/..;x/%2e%2e%252f%255c%5C;//.`, 2000)
	if got, want := namesOf(t, m, "GET", "h", target), "/, /a/, GET /b/, h/d/"; got != want {
		t.Errorf("named %s, want %s", got, want)
	}
	if got, want := namesOf(t, m, "GET", "h", "/"+strings.Repeat("%20", 10000)), "/"; got != want {
		t.Errorf("a long honest path named %s, want %s", got, want)
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	patterns := append(manyPatterns(20), "api.example/v1/", "[::1]/")
	m := mustMatcher(t, patterns...)
	for _, tt := range []struct{ host, target string }{
		{"www.example", "/service-7/items/42"},
		{"API.example.:8080", "/v1/things"},
		{"[0::1]:80", "/v1/things"},
		{"", "/nowhere/.well-known/a%20b"},
		{"", "/Service-7/Items/42"},
	} {
		u := mustURL(t, tt.target)
		into := make([]int, 0, 8)
		if n := testing.AllocsPerRun(100, func() { into = m.match("GET", tt.host, u, into[:0]) }); n != 0 {
			t.Errorf("%s%s: %v allocations, want 0", tt.host, tt.target, n)
		}
	}
	folding := mustMatcher(t, append(patterns, "/Reports/")...)
	u, into := mustURL(t, "/reports/x"), make([]int, 0, 8)
	if n := testing.AllocsPerRun(100, func() { into = folding.match("GET", "", u, into[:0]) }); n != 0 {
		t.Errorf("upper case in a pattern: %v allocations, want 0", n)
	}
}

// manyPatterns has n routes of a few shapes, most with a service of their own.
func manyPatterns(n int) []string {
	patterns := []string{"/"}
	for i := 1; i < n; i++ {
		shape := [...]string{"/service-%d/", "GET /service-%d/items/{id}", "POST /api/service-%d/orders", "/api/service-%d/{x}/y"}[i%4]
		patterns = append(patterns, fmt.Sprintf(shape, i-i%4/2))
	}
	return patterns
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{20, 1000} {
		m := mustMatcher(b, manyPatterns(n)...)
		hosted := mustMatcher(b, append(manyPatterns(n), "api.example/v1/")...)
		for _, bb := range []struct {
			name, host, target string
			m                  *matcher
		}{
			{"shallow", "", "/service-8/x", m},
			{"deep", "", "/api/service-2/a/y", m},
			{"root", "", "/nowhere/at/all", m},
			{"hosts", "www.example:8080", "/service-8/x", hosted},
			{"upper", "", "/Service-8/x", m},
			{"escaped", "", "/service-8/%2F/x", m},
			{"disguised", "", "/x/..//service-8%2Fx;v=1", m},
		} {
			b.Run(fmt.Sprintf("%s/routes=%d", bb.name, n), func(b *testing.B) {
				u, into := mustURL(b, bb.target), make([]int, 0, 16)
				b.ReportAllocs()
				for b.Loop() {
					into = bb.m.match("GET", bb.host, u, into[:0])
				}
			})
		}
	}
}

func BenchmarkNewMatcher(b *testing.B) {
	for _, n := range []int{20, 1000} {
		b.Run(fmt.Sprintf("routes=%d", n), func(b *testing.B) {
			patterns := manyPatterns(n)
			for b.Loop() {
				mustMatcher(b, patterns...)
			}
		})
	}
}

// The worst that one request target can cost, near the server's header limit and
// below the bound on readings.
func BenchmarkWorstPath(b *testing.B) {
	m := mustMatcher(b, manyPatterns(20)...)
	for _, n := range []int{1, 10, 1000, 30000} {
		u := mustURL(b, "/z"+strings.Repeat(`/..;x/%2e%2e%252f%255c%5C;//.`, n))
		b.Run(fmt.Sprintf("bytes=%d", len(u.RawPath)), func(b *testing.B) {
			for b.Loop() {
				m.match("GET", "", u, nil)
			}
		})
	}
}
