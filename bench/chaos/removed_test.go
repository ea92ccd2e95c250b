//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// What is to be taken out is there: a protection that was rewritten is not silently
// left in.
func TestRemovalsFitTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	fits := func(name string, edits []edit) {
		for _, e := range edits {
			if _, err := e.apply(filepath.Join(root, e.file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	known := map[string]bool{}
	for _, s := range scenarios() {
		if known[s.name] {
			t.Errorf("two scenarios are called %q", s.name)
		}
		known[s.name] = true
		fits(s.name, s.edits)
	}
	for _, r := range removals() {
		if !known[r.under] {
			t.Errorf("%s: there is no scenario %q", r.name, r.under)
		}
		fits(r.name, r.edits)
	}
}

func TestEdit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := (edit{"f", "one", "1"}).apply(filepath.Join(dir, "f")); err != nil || string(text) != "1 two two" {
		t.Errorf("%q, %v", text, err)
	}
	for _, old := range []string{"two", "three"} {
		if _, err := (edit{"f", old, ""}).apply(filepath.Join(dir, "f")); err == nil {
			t.Errorf("%q was replaced", old)
		}
	}
}
