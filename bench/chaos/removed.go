//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// removal takes one protection out of forebay, in a worker that is built for it: the
// sources are read with the edits laid over them, and stay as they are.
type removal struct {
	name  string
	edits []edit
	under string // the scenario that shows what it was good for
	// tune makes the scenario one in which it shows at once. Nil: as it is.
	tune func(*stage)
	// shows says whether the verdict shows that the protection is missing, and must be
	// what for.
	shows func(*verdict) bool
	must  string
	short bool // make test takes it out too
}

// edit replaces a text that stands in a file exactly once.
type edit struct{ file, old, new string }

// violated is how most protections are missed.
func violated(v *verdict) bool { return v.overlap.violations > 0 }

const violations = "violations"

// apply returns what is in a file, edited.
func (e edit) apply(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), e.old); n != 1 {
		return nil, fmt.Errorf("chaos: %s has the text that is to be taken out %d times, not once; bring removals.go up to date: %q", e.file, n, e.old)
	}
	return []byte(strings.Replace(string(text), e.old, e.new, 1)), nil
}

// build builds a worker of edited sources, and returns its path.
func build(edits []edit, root, dir string) (string, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, e := range edits {
		path := filepath.Join(root, e.file)
		read := path
		if before, ok := overlay.Replace[path]; ok {
			read = before // another edit of the same file
		}
		text, err := e.apply(read)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.file)))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		overlay.Replace[path] = changed
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		return "", err
	}
	program := filepath.Join(dir, "worker")
	command := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./chaos")
	command.Dir = filepath.Join(root, "bench")
	if said, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("chaos: building edited sources: %w: %s", err, said)
	}
	return program, nil
}

// repository returns the root of the repository that this program is run in.
func repository() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("chaos: go env GOMOD: %w", err)
	}
	bench := filepath.Dir(strings.TrimSpace(string(out)))
	if filepath.Base(bench) != "bench" {
		return "", errors.New("chaos: run it in the directory bench of the repository: it builds workers from there")
	}
	return filepath.Dir(bench), nil
}
