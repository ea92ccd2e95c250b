package config

import (
	"os"
	"strings"
	"testing"
)

// FuzzParse: nothing panics; every mistake has a place within the file and a remedy;
// what is accepted can be built, and written out and read again as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{contract, small, full, Example, "", "\ufeff" + small, "a: &x [*x]", "{{},<<}", "? [a]\n: b", "0::"} {
		f.Add(s)
	}
	bad, err := os.ReadFile(badFile)
	if err != nil {
		f.Fatal(err)
	}
	for part := range strings.SplitSeq(string(bad), "\n== ") {
		_, rest, _ := strings.Cut(part, "\n")
		text, _, _ := strings.Cut(rest, "\n-> ")
		f.Add(text + "\n" + small)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("bad.yaml", []byte(text))
		if err != nil {
			checkProblems(t, err, strings.ReplaceAll(text, "\r", "\n"))
			return
		}
		if _, _, err := c.Build(); err != nil {
			t.Fatalf("accepted, but not to be built: %v", err)
		}
		again, err := Parse("again.yaml", []byte(c.YAML()))
		if err != nil {
			t.Fatalf("accepted, but what it means is not:\n%s\n%v", c.YAML(), err)
		}
		if again.YAML() != c.YAML() {
			t.Fatalf("%s\nbecame\n%s", c.YAML(), again.YAML())
		}
	})
}
