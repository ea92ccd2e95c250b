//go:build unix

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSIGHUP reloads the file, also when nothing in it has changed.
func TestSIGHUP(t *testing.T) {
	r := startFile(t, filepath.Join(t.TempDir(), "forebay.yaml"), fmt.Sprintf(twoGates, 1))
	before := r.Info().LastReload
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is reloaded", func() bool { return r.Info().LastReload.After(before) })
}
