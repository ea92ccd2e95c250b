package admit

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata; read the diff as if it were code")

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := Play(bytes.NewReader(script), &out); err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compareLines(t, string(script), out.String())
		})
	}
}

func compareLines(t *testing.T, want, got string) {
	t.Helper()
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = strings.TrimRight(w[i], " ")
		}
		if i < len(g) {
			b = g[i]
		}
		if strings.Join(strings.Fields(a), " ") != strings.Join(strings.Fields(b), " ") {
			t.Errorf("line %d:\n  script  %s\n  machine %s", i+1, a, b)
		}
	}
}

func TestPlayNamesTheLine(t *testing.T) {
	for script, want := range map[string]string{
		"0s arrive a":                     "first event must be new",
		"soon new limit=1":                "TIME VERB",
		"0s new limit=1\n1s dance":        `line 2: "1s dance": unknown verb`,
		"0s new limit=1\n1s leave nobody": "nobody of that name",
		"0s new limit=x":                  "invalid syntax",
		"0s new limit=1 wait=soon":        "invalid duration",
		"0s new limit=1\n0s limit":        "argument is missing",
		"0s new limit=1\n0s count luck":   `unknown verdict "luck"`,
	} {
		err := Play(strings.NewReader(script), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Play(%q) = %v, want an error with %q", script, err, want)
		}
	}
}
