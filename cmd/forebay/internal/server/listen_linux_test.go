package server

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The socket of a program that is gone is replaced; that of one that listens is left
// to it, also when its backlog is so full that a caller is turned away.
func TestSocketBelongsToWhoeverListens(t *testing.T) {
	t.Run("gone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		_ = old.Close() // the file stays
		l, err := openListener("listen", "unix:"+path)
		if err != nil {
			t.Fatalf("a dead socket is in the way: %v", err)
		}
		_ = l.Close()
	})
	t.Run("busy", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		fill(t, path)
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := openListener("listen", "unix:"+path)
		if err == nil {
			_ = l.Close()
			t.Fatal("the socket of a busy program was taken")
		}
		if !strings.Contains(err.Error(), "another program listens there") {
			t.Errorf("%v, want it to say that another program listens there", err)
		}
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("the socket of the busy program is gone (%v)", err)
		}
	})
}

// fill listens at path with the smallest backlog and calls until a caller is turned away.
func fill(t *testing.T, path string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatal("the backlog never fills")
}
