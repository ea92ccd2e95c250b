package forebay

import (
	"fmt"
	"strings"
	"testing"
)

func TestPatternMistakes(t *testing.T) {
	for _, tt := range []struct{ pattern, want string }{
		{``, `the pattern is empty; write a path such as "/reports/", or "/" for every path`},
		{` /x`, `the pattern begins or ends with a space; write "/x"`},
		{"/x\n", `the pattern begins or ends with a space; write "/x"`},
		{"/x\x01", `the pattern holds a control character; write it percent-encoded, as %0A`},
		{`http://api.example/x`, `the pattern has a scheme, which no request names; write "api.example/x"`},
		{`GET https://api.example/x`, `the pattern has a scheme, which no request names; write "GET api.example/x"`},
		{`/to/http://x`, `the path has an empty segment; write "/to/http:/x"`},
		{`reports`, `the pattern has no path; write "/reports"`},
		{`GET reports`, `the pattern has no path; write "GET /reports"`},
		{`GET`, `the pattern has no path; write "GET /"`},

		{`get /x`, `the method get is not in upper case, and methods are compared letter by letter; write "GET /x"`},
		{`purge /x`, `the method purge is not in upper case, and methods are compared letter by letter; write "PURGE /x"`},
		{`GE T /x`, `the method "GE T" holds a space; write "GET /x"`},
		{`GET POST /x`, `the method "GET POST" holds a space; write one method, in upper case, then one space`},
		{`GTE /x`, `there is no method GTE; did you mean GET? then write "GET /x"`},
		{`POTS a.example/x`, `there is no method POTS; did you mean POST? then write "POST a.example/x"`},
		{`gte /x`, `there is no method gte; did you mean GET? then write "GET /x"`},
		{`DELET /x`, `there is no method DELET; did you mean DELETE? then write "DELETE /x"`},
		{`GET,POST /x`, `the method "GET,POST" holds a character that no method has; write upper-case letters only, such as GET`},
		{`GET  /x`, `what stands after the method is not one space; write "GET /x"`},
		{"GET\t/x", `what stands after the method is not one space; write "GET /x"`},

		{`API.example/x`, `the host "API.example" is compared in lower case, without port and final dot, an IPv6 address in brackets; write "api.example/x"`},
		{`GET api.example:8080/x`, `the host "api.example:8080" is compared in lower case, without port and final dot, an IPv6 address in brackets; write "GET api.example/x"`},
		{`api.example./x`, `the host "api.example." is compared in lower case, without port and final dot, an IPv6 address in brackets; write "api.example/x"`},
		{`::1/x`, `the host "::1" is compared in lower case, without port and final dot, an IPv6 address in brackets; write "[::1]/x"`},
		{`[0:0::1]:80/x`, `the host "[0:0::1]:80" is compared in lower case, without port and final dot, an IPv6 address in brackets; write "[::1]/x"`},
		{`*.example/x`, `the host "*.example" has a wildcard, and hosts have none; write one pattern for each host, or none for every host`},
		{`{id}/x`, `a wildcard stands before the first slash; write "/{id}/x"`},
		{`bücher.example/x`, `the host "bücher.example" is not ASCII, and requests are; write it as requests name it, in its "xn--" form`},
		{`a..b/x`, `there is no host "a..b"; write a name such as "api.example/path", or begin the path with a slash`},
		{`[::1/x`, `there is no host "[::1"; write a name such as "api.example/path", or begin the path with a slash`},

		{`/x?y=1`, `the pattern has a query or a fragment, and routes see only the path; write "/x", or %3F and %23 for the characters themselves`},
		{`/x#y`, `the pattern has a query or a fragment, and routes see only the path; write "/x", or %3F and %23 for the characters themselves`},
		{`/a b`, `the path holds a space; write "/a%20b"`},
		{`/a\b`, `the path holds a backslash; write "/a/b", or %5C for the character itself`},
		{`//x`, `the path has an empty segment; write "/x"`},
		{`GET /a//b//`, `the path has an empty segment; write "GET /a/b/"`},
		{`/a/../b`, `the path has a segment "." or ".."; write "/b"`},
		{`/a/%2E`, `the path has a segment "." or ".."; write "/a/"`},
		{`/a/..`, `the path has a segment "." or ".."; write "/"`},
		{`/a%zz`, `"%zz" is not a percent escape; write two hexadecimal digits after %, or %25 for the character itself`},
		{`/100%`, `"%" is not a percent escape; write two hexadecimal digits after %, or %25 for the character itself`},

		{`/a{x}`, `the braces in "a{x}" are not around a whole segment; write a wildcard as "/{name}/", and %7B and %7D for the characters themselves`},
		{`/{x`, `the braces in "{x" are not around a whole segment; write a wildcard as "/{name}/", and %7B and %7D for the characters themselves`},
		{`/x}`, `the braces in "x}" are not around a whole segment; write a wildcard as "/{name}/", and %7B and %7D for the characters themselves`},
		{`/{$}/a`, `{$} is not at the end of the path; take it out, or end the pattern with it`},
		{`/{x...}/a`, `the wildcard {x...} is not at the end of the path; write {x}, or end the pattern with it`},
		{`/{}`, `the wildcard name "" is not a Go identifier; write "{x}"`},
		{`/{order-id}`, `the wildcard name "order-id" is not a Go identifier; write "{order_id}"`},
		{`/{1st...}`, `the wildcard name "1st" is not a Go identifier; write "{x1st...}"`},
		{`/{id?}`, `the wildcard name "id?" is not a Go identifier; write "{id_}"`},
		{`/{x}/{x...}`, `two wildcards are named x; give each a name of its own`},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			wantErrors(t, []string{tt.pattern}, `Routes[0] (`+quotedPattern(tt.pattern)+`): `+tt.want)
		})
	}
}

func TestPatternsAccepted(t *testing.T) {
	for _, pattern := range []string{
		`/`, `/{$}`, `/a`, `/a/`, `/a/{$}`, `/{x}`, `/{x...}`, `/{x}/b/{y...}`, `GET /`, `PURGE /x`, `VERSION-CONTROL /x`,
		`M-SEARCH /x`, `api.example/`, `GET my_service/x`, `10.0.0.1/`, `[::1]/x`, `/a%20b`, `/a%2Fb`, `/%7Bx%7D`, `/über`,
		`/a;v=1`, `/.well-known/x`, `/a.b`, `/...`, `/a:b@c`,
	} {
		if _, err := newMatcher([]string{pattern}); err != nil {
			t.Errorf("newMatcher(%q): %v", pattern, err)
		}
	}
}

func TestEveryMistakeAtOnce(t *testing.T) {
	wantErrors(t, []string{`/fine`, `get api.example:80/{x}/{x}?q`, `nowhere`, `/fine`},
		`Routes[1] ("get api.example:80/{x}/{x}?q"): the method get is not in upper case, and methods are compared letter by letter; write "GET api.example:80/{x}/{x}?q"`,
		`Routes[1] ("get api.example:80/{x}/{x}?q"): the host "api.example:80" is compared in lower case, without port and final dot, an IPv6 address in brackets; write "get api.example/{x}/{x}?q"`,
		`Routes[1] ("get api.example:80/{x}/{x}?q"): the pattern has a query or a fragment, and routes see only the path; write "get api.example:80/{x}/{x}", or %3F and %23 for the characters themselves`,
		`Routes[1] ("get api.example:80/{x}/{x}?q"): two wildcards are named x; give each a name of its own`,
		`Routes[2] ("nowhere"): the pattern has no path; write "/nowhere"`,
		`Routes[3] ("/fine"): it matches the same requests as Routes[0] ("/fine"), and both match /fine; take one of them out`,
	)
}

func TestConflicts(t *testing.T) {
	const (
		same  = `): it matches the same requests as Routes[0] (`
		cross = `): neither is more specific than the other, it or Routes[0] (`
	)
	for _, tt := range []struct{ first, second, what, example string }{
		{`/a/{x}`, `/a/{y}`, same, `/a/x`},
		{`/a/`, `/a/{x...}`, same, `/a/`},
		{`GET h/%61`, `GET h/a`, same, `GET h/a`},
		{`/a/{x}`, `/{y}/b`, cross, `/a/b`},
		{`[::1]/`, `[::1]/{x...}`, same, `[::1]/`},
		{`GET /`, `/a`, cross, `GET /a`},
		{`HEAD /`, `GET /a`, cross, `HEAD /a`},
		{`GET /a`, `HEAD /`, cross, `HEAD /a`},
		{`/a/{x}/`, `/{y}/b/{$}`, cross, `/a/b/`},
		{`/a/{x}/`, `/{y}/b/c/`, cross, `/a/b/c/`},
		{`/{x}/%2F`, `/a/{y}`, cross, `/a/%2F`},
	} {
		t.Run(tt.first+" "+tt.second, func(t *testing.T) {
			_, err := newMatcher([]string{tt.first, tt.second})
			start := `forebay: Routes[1] (` + quotedPattern(tt.second) + tt.what + quotedPattern(tt.first) + `), and both match ` + tt.example + `; `
			if err == nil || !strings.HasPrefix(err.Error(), start) {
				t.Errorf("got  %v\nwant %s…", err, start)
			}
		})
	}
	for _, apart := range [][]string{
		{`/a`, `/a/`, `/a/{$}`, `/{x}`, `/`, `/{$}`},
		{`GET /a`, `HEAD /a`, `POST /a`, `/a`, `PURGE /a`},
		{`/a/{x}`, `h/{x}/b`, `g/a/{x}`},
		{`/a/{x}`, `/a/{$}`, `/a/{x...}`},
		{`/Reports/{x}`, `/reports/{x}`},
	} {
		if _, err := newMatcher(apart); err != nil {
			t.Errorf("newMatcher(%q): %v", apart, err)
		}
	}
}

func TestOneSlip(t *testing.T) {
	for method, want := range map[string]string{
		"GET": "", "PURGE": "", "LOCK": "", "MOVE": "", "COPY": "", "REPORT": "", "SEARCH": "", "MERGE": "", "LINK": "",
		"PROPFIND": "", "BIND": "", "ACL": "", "QUERY": "", "PRI": "", "UPDATE": "", "LABEL": "", "": "", "G": "",
		"GE": "GET", "GETT": "GET", "GTE": "GET", "EGT": "GET", "PSOT": "POST", "POSTS": "POST", "HAED": "HEAD", "PACTH": "PATCH",
		"OPTION": "OPTIONS", "DELTE": "DELETE",
	} {
		if got := nearMethod(method); got != want {
			t.Errorf("nearMethod(%q) = %q, want %q", method, got, want)
		}
	}
}

func quotedPattern(s string) string { return fmt.Sprintf("%q", s) }

func wantErrors(t *testing.T, patterns []string, want ...string) {
	t.Helper()
	_, err := newMatcher(patterns)
	if err == nil {
		t.Fatalf("newMatcher(%q) has no error", patterns)
	}
	wanted := "forebay: " + strings.Join(want, "\nforebay: ")
	if err.Error() != wanted {
		t.Errorf("newMatcher(%q)\n got %s\nwant %s", patterns, err, wanted)
	}
}
