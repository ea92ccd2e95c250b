//go:build unix

package telemetry

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in place of the log file is refused at the start: nobody may be reading it.
func TestLogFileIsNoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "forebay.log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that opening it could not hang this test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if _, err := openFile(Options{To: pipe}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("%v, want it to say that this is no regular file", err)
	}
}
