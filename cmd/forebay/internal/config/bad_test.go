package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/bad.txt and docs/config.md")

// A badCase is a configuration with mistakes, and what is said about each.
type badCase struct {
	name, text, want string
}

const badFile = "testdata/bad.txt"

// needed is appended where a case does not say it itself, so that each stays short;
// places in the case's own lines do not move. A case that is "alone" gets nothing.
var needed = []struct {
	key  *regexp.Regexp
	line string
}{
	{regexp.MustCompile(`(?m)^upst?re`), "upstream: http://127.0.0.1:8000\n"},
	{regexp.MustCompile(`(?m)^gates:`), "gates: {a: {max_in_flight: 4}}\n"},
	{regexp.MustCompile(`(?m)^routes:`), "routes: [{match: /, gate: a}]\n"},
}

func (c badCase) file() string {
	text := c.text
	if strings.Contains(c.name, " alone") {
		return text
	}
	for _, n := range needed {
		if !n.key.MatchString(text) {
			text += n.line
		}
	}
	return text
}

// problems are the lines that Parse gives for the case. The file stands in the
// directory of the test, so that token files are found.
func (c badCase) problems() (lines []string) {
	_, err := Parse("bad.yaml", []byte(c.file()))
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func readBad(t *testing.T) (cases []badCase) {
	text, err := os.ReadFile(badFile)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
		name, rest, _ := strings.Cut(part, "\n")
		body, want, _ := strings.Cut("\n"+rest, "\n-> ")
		body = strings.TrimPrefix(body, "\n")
		if body != "" && !strings.HasSuffix(body, "\n") {
			body += "\n"
		}
		want = strings.ReplaceAll(strings.TrimSpace(want), "\n-> ", "\n")
		cases = append(cases, badCase{name, body, want})
	}
	return cases
}

// TestBadConfigurations goes through testdata/bad.txt, a table of configurations and,
// after the arrows, every line that is said about them.
func TestBadConfigurations(t *testing.T) {
	cases := readBad(t)
	if len(cases) < 45 {
		t.Errorf("%d cases, want at least 45", len(cases))
	}
	var b strings.Builder
	for _, c := range cases {
		got := c.problems()
		fmt.Fprintf(&b, "== %s\n%s", c.name, c.text)
		for _, line := range got {
			fmt.Fprintf(&b, "-> %s\n", line)
		}
		t.Run(c.name, func(t *testing.T) {
			if len(got) == 0 {
				t.Fatal("it is accepted")
			}
			if got := strings.Join(got, "\n"); got != c.want && !*update {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
	if *update {
		if err := os.WriteFile(badFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var problemLine = regexp.MustCompile(`^bad\.yaml:[1-9][0-9]*:[1-9][0-9]*: [^;]+.*; .+$`)

// checkProblems finds problems without a place within the file, without a remedy, out
// of order, or twice.
func checkProblems(t *testing.T, err error, text string) {
	t.Helper()
	var ps Problems
	if !errors.As(err, &ps) || len(ps) == 0 {
		t.Fatalf("the error is %T: %v; want Problems", err, err)
	}
	if len(ps) > maxProblems {
		t.Errorf("%d problems, want at most %d", len(ps), maxProblems)
	}
	lines := strings.Count(text, "\n") + 1
	for i, p := range ps {
		if !problemLine.MatchString(p.String()) {
			t.Errorf("%q has not the form FILE:LINE:COL: what; remedy", p)
		}
		if p.Line > lines {
			t.Errorf("%q is below the last line, %d", p, lines)
		}
		if i > 0 && (p.Line < ps[i-1].Line || p == ps[i-1]) {
			t.Errorf("%q comes after %q", p, ps[i-1])
		}
	}
}

func TestEveryProblemHasAPlaceAndARemedy(t *testing.T) {
	for _, c := range readBad(t) {
		_, err := Parse("bad.yaml", []byte(c.file()))
		checkProblems(t, err, c.file())
	}
}
