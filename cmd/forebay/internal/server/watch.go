package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/fsnotify/fsnotify"

	"example.com/forebay/cmd/forebay/internal/config"
)

const (
	// quiet is how long a file must not change before it is read: editors write in
	// several steps, and a file that is caught half written is a mistake that is told
	// for nothing. Half of it catches slow editors, twice is felt.
	quiet = 250 * time.Millisecond
	// longest is how long a change waits for quiet when the folder never is.
	longest = 2 * time.Second
)

// watch reloads on SIGHUP and when the file has changed, until ctx ends.
func (s *Server) watch(ctx context.Context, hup <-chan os.Signal, file *fileWatch) {
	defer file.close()
	if file.err != nil {
		s.logger().Warn("the file is not watched; SIGHUP and POST /reload still reload it", "error", file.err.Error())
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			file.read()
			s.reloading.Lock()
			s.reloadNotedLocked()
			s.reloading.Unlock()
		case e, open := <-file.events:
			file.note(e, open)
		case <-file.errors: // some events were lost
			file.noticed()
		case <-file.settle.C:
			s.reloadChanged(file)
		case <-file.latest.C:
			s.reloadChanged(file)
		}
	}
}

// reloadChanged reloads unless somebody else has meanwhile: a second time would end
// the overrides that were set in between.
func (s *Server) reloadChanged(file *fileWatch) {
	if !file.read() {
		return
	}
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.Config().Hash == file.hash && s.Info().LastReloadOK {
		return
	}
	s.reloadNotedLocked()
}

// reloadNotedLocked reloads and tells the service manager; a failure is logged by
// reloadLocked.
func (s *Server) reloadNotedLocked() {
	s.notify(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, monotonicMicros()))
	_ = s.reloadLocked()
	s.notify(daemon.SdNotifyReady)
}

// fileWatch watches a file by its folder, so that it survives being renamed over and
// the swap of a symbolic link, and tells a change by the content.
type fileWatch struct {
	path    string
	hash    string // of the content that was tried last
	watcher *fsnotify.Watcher
	events  chan fsnotify.Event // nil: nothing is watched
	errors  chan error
	settle  *time.Timer // after the last event
	latest  *time.Timer // after the first one
	pending bool        // both run
	err     error
}

// newFileWatch watches a file whose content was read before, with the given hash. It
// looks once whether that has changed since.
func newFileWatch(path, hash string) *fileWatch {
	f := &fileWatch{path: path, hash: hash, settle: stopped(), latest: stopped()}
	if path == "" {
		return f
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.err = err
		return f
	}
	if f.err = watcher.Add(filepath.Dir(path)); f.err != nil {
		//mutate:equivalent no test has a directory that can be read from and not be watched
		_ = watcher.Close() // it watches nothing
		return f
	}
	f.watcher, f.events, f.errors = watcher, watcher.Events, watcher.Errors
	f.noticed()
	return f
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// note looks at an event in the folder. What is written to other files there, a log
// for instance, is not ours; what is renamed may be a link on the way to our file.
func (f *fileWatch) note(e fsnotify.Event, open bool) {
	if !open {
		f.events, f.errors = nil, nil
		return
	}
	const moved = fsnotify.Create | fsnotify.Rename | fsnotify.Remove
	if filepath.Base(e.Name) == filepath.Base(f.path) || e.Op&moved != 0 {
		f.noticed()
	}
}

func (f *fileWatch) noticed() {
	f.settle.Reset(quiet)
	if !f.pending {
		f.pending = true
		f.latest.Reset(longest)
	}
}

// read reports whether the content is another one than last time. A file that cannot
// be read just now, because it is being replaced, is left alone.
func (f *fileWatch) read() bool {
	f.settle.Stop()
	f.latest.Stop()
	f.pending = false
	now, err := config.Read(f.path)
	if err != nil || config.HashOf(now) == f.hash {
		return false
	}
	f.hash = config.HashOf(now)
	return true
}

func (f *fileWatch) close() {
	f.settle.Stop()
	f.latest.Stop()
	if f.watcher != nil {
		_ = f.watcher.Close() // nothing more is asked of it
	}
}
