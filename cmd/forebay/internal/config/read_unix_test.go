//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in place of the file is an error at once, not a wait for somebody to write.
func TestReadWaitsForNobody(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "forebay.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"Read": func() error { _, err := Read(pipe); return err },
		"Load": func() error { _, err := Load(pipe); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v, want it to say that this is no regular file", name, err)
		}
	}
}

// What is too long is read no further than to know that.
func TestReadIsBounded(t *testing.T) {
	text, err := Read("/dev/zero")
	if err != nil || len(text) != maxSize+1 {
		t.Errorf("%d bytes, error %v; want %d", len(text), err, maxSize+1)
	}
}
