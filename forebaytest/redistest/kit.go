package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// T is what the kit needs of a test, a testing.TB for example. A program that
// starts servers without a test brings its own.
type T interface {
	// Helper leaves the caller out of the places that are named.
	Helper()
	// Logf says something that helps after a failure.
	Logf(format string, args ...any)
	// Fatalf fails the test and does not return.
	Fatalf(format string, args ...any)
	// Skipf ends the test because something is not installed, and does not return.
	Skipf(format string, args ...any)
	// Cleanup keeps what is to be called when the test ends, last first.
	Cleanup(f func())
	// Failed reports whether the test has failed.
	Failed() bool
}

// patience bounds every wait, on a machine that is busy with other things.
const patience = 60 * time.Second

// until waits for a condition.
func until(t T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("redistest: not within %v: %s", patience, what)
		}
	}
}

// debianPackages are what a machine needs, by program.
var debianPackages = map[string]string{
	"redis-server":   "redis-server",
	"redis-sentinel": "redis-sentinel",
}

// need returns the path of a program, or skips the test.
func need(t T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed; on Debian: apt-get install %s (without its service: scripts/servers)", program, debianPackages[program])
	}
	return path
}

// needFaketime returns the path of the library that moves a process's clock, or
// skips the test.
func needFaketime(t T) string {
	t.Helper()
	for _, pattern := range []string{
		"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Skipf("libfaketime is not installed; on Debian: apt-get install faketime")
	return ""
}

// newDir returns a directory that goes with the test. Its name is short: a socket
// lies in it.
func newDir(t T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redistest")
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
