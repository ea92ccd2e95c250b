package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A verdict is what the tests said about a mutant.
type verdict struct {
	kind verdictKind
	by   string // the test that caught it, or why it did not build

	slowest time.Duration // package, of those that passed
}

type verdictKind int

const (
	survived verdictKind = iota // every test passed
	caught                      // some test failed, crashed or hung
	unbuilt                     // the compiler refused it
)

func (v verdict) String() string {
	switch v.kind {
	case caught:
		return "caught by " + v.by
	case unbuilt:
		return "could not be built: " + v.by
	}
	return "SURVIVED"
}

// testedPackages lists those of the packages that have tests; none: of the whole module.
// It leaves out the lint, which reads the files on disk and not the mutant.
func testedPackages(ctx context.Context, root string, of []string) ([]string, error) {
	if len(of) == 0 {
		of = []string{"./..."}
	}
	args := []string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}
	cmd := exec.CommandContext(ctx, "go", append(args, of...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	packages := slices.DeleteFunc(strings.Fields(string(out)), func(p string) bool {
		return strings.Contains(p+"/", "/internal/lint/")
	})
	if len(packages) == 0 {
		return nil, errors.New("no package has tests")
	}
	return packages, nil
}

// testMutant runs the tests against one changed file. The tests beside the
// change run first: they are the likeliest to notice.
func (r *runner) testMutant(ctx context.Context, m mutant, text []byte) (verdict, error) {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(dir)
	changed := filepath.Join(dir, "changed.go")
	overlay := filepath.Join(dir, "overlay.json")
	original := filepath.Join(r.root, filepath.FromSlash(m.file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return verdict{}, err
	}
	if err := errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return verdict{}, err
	}
	packages := slices.Clone(r.packages)
	beside := strings.TrimSuffix("/"+filepath.ToSlash(filepath.Dir(m.file)), "/.")
	slices.SortStableFunc(packages, func(a, b string) int {
		return rank(a, beside) - rank(b, beside)
	})
	return r.test(ctx, packages, overlay)
}

// rank sorts the package with the given suffix first.
func rank(pkg, suffix string) int {
	if suffix != "" && strings.HasSuffix(pkg, suffix) {
		return 0
	}
	return 1
}

// test runs the tests of the packages and stops at the first failure.
func (r *runner) test(ctx context.Context, packages []string, overlay string) (verdict, error) {
	// Killing the go command leaves its work directory behind, so it gets one
	// that is ours to remove.
	tmp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return verdict{}, err
	}
	defer os.RemoveAll(tmp)
	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := r.command(running, packages, overlay)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTMPDIR="+tmp)
	killTogether(cmd)
	cmd.WaitDelay = 10 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return verdict{}, err
	}
	if err := cmd.Start(); err != nil {
		return verdict{}, err
	}
	v := readEvents(stdout)
	if v.kind == caught {
		stop()
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return verdict{}, ctx.Err()
	case v.kind == survived && err != nil:
		return verdict{kind: unbuilt, by: lastLine(stderr.String(), err.Error())}, nil
	}
	return v, nil
}

// command makes the go test command, with bounded memory where a shell can
// bound it: a mutant that never stops appending must not take the machine down.
func (r *runner) command(ctx context.Context, packages []string, overlay string) *exec.Cmd {
	args := []string{"go", "test", "-json", "-failfast", "-count=1", "-vet=off", "-p=1"}
	if r.cfg.timeout > 0 {
		args = append(args, "-timeout="+r.cfg.timeout.String())
	}
	if r.cfg.short {
		args = append(args, "-short")
	}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	args = append(args, packages...)
	if r.cfg.memoryMB > 0 && runtime.GOOS == "linux" {
		bound := `ulimit -v "$0" && exec "$@"`
		args = append([]string{"sh", "-c", bound, strconv.Itoa(r.cfg.memoryMB * 1024)}, args...)
	}
	return exec.CommandContext(ctx, args[0], args[1:]...)
}

// An event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// readEvents reads the output of go test up to the first failure.
func readEvents(stdout io.Reader) verdict {
	lines := json.NewDecoder(stdout)
	crash, build := "", ""
	var passed verdict
	for {
		var e event
		if err := lines.Decode(&e); err != nil {
			return passed // no failure seen; the exit code says whether it is a pass
		}
		switch e.Action {
		case "build-output":
			if build == "" && !strings.HasPrefix(e.Output, "#") {
				build = strings.TrimSpace(e.Output)
			}
		case "build-fail":
			return verdict{kind: unbuilt, by: build}
		case "pass":
			passed.slowest = max(passed.slowest, time.Duration(e.Elapsed*float64(time.Second)))
		case "output":
			if crash == "" && (strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ")) {
				crash = strings.TrimSpace(e.Output)
			}
		case "fail":
			by := e.Test
			if by == "" {
				by = "package " + e.Package
			}
			if crash != "" {
				by += " (" + brief(crash) + ")"
			}
			return verdict{kind: caught, by: by}
		}
	}
}

// lastLine returns the last line of a text that has one, or else the other.
func lastLine(text, other string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return other
}
