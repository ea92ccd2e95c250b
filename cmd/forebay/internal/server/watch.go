package server

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/fsnotify/fsnotify"
)

// quiet is how long a file must not change before it is read: editors write in
// several steps, and a file that is caught half written is a mistake that is told for
// nothing. Half of it catches slow editors, twice is felt.
const quiet = 250 * time.Millisecond

// watch reloads on SIGHUP and when the file has changed, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	file := newFileWatch(s.Config().Path)
	defer file.close()
	if file.err != nil {
		s.logger().Warn("the file is not watched; SIGHUP and POST /reload still reload it", "error", file.err.Error())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			s.reloadNoted(ctx)
			file.read()
		case <-file.events():
			file.settle.Reset(quiet)
		case <-file.settle.C:
			if file.read() {
				s.reloadNoted(ctx)
			}
		}
	}
}

// reloadNoted reloads and tells the service manager; a failure is logged by Reload.
func (s *Server) reloadNoted(ctx context.Context) {
	s.notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, monotonicMicros()))
	_ = s.Reload(ctx)
	s.notify(daemon.SdNotifyReady)
}

// fileWatch watches a file by its folder, so that it survives being renamed over and
// the swap of a symbolic link, and tells a change by the content.
type fileWatch struct {
	path    string
	watcher *fsnotify.Watcher // nil: nothing is watched
	settle  *time.Timer
	content []byte
	err     error
}

func newFileWatch(path string) *fileWatch {
	f := &fileWatch{path: path, settle: time.NewTimer(0)}
	if !f.settle.Stop() {
		<-f.settle.C
	}
	if path == "" {
		return f
	}
	f.content, _ = os.ReadFile(path)
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(filepath.Dir(path)); err == nil {
			f.watcher = watcher
			return f
		}
		_ = watcher.Close()
	}
	f.err = err
	return f
}

// events tells that something in the folder has changed.
func (f *fileWatch) events() <-chan fsnotify.Event {
	if f.watcher == nil {
		return nil
	}
	return f.watcher.Events
}

// read reports whether the content is another one than last time. A file that cannot
// be read just now, because it is being replaced, is left alone.
func (f *fileWatch) read() bool {
	now, err := os.ReadFile(f.path)
	if err != nil || bytes.Equal(now, f.content) {
		return false
	}
	f.content = now
	return true
}

func (f *fileWatch) close() {
	f.settle.Stop()
	if f.watcher != nil {
		_ = f.watcher.Close()
	}
}
