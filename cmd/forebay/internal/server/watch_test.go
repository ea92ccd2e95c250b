package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/forebay/cmd/forebay/internal/admin"
)

func (r *rig) put(text string) {
	r.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// TestCF09Watch is the file half of CF-09: however a file is changed, what is in force is
// the old or the new one, and in the end the new one.
func TestCF09Watch(t *testing.T) {
	r := startFile(t, filepath.Join(t.TempDir(), "forebay.yaml"), fmt.Sprintf(twoGates, 1))
	r.limitIs("b", 1)
	t.Run("rename over", func(t *testing.T) {
		r.write(fmt.Sprintf(twoGates, 2))
		r.limitIs("b", 2)
		r.write(fmt.Sprintf(twoGates, 3)) // the watch survives it
		r.limitIs("b", 3)
	})
	t.Run("in place", func(t *testing.T) {
		r.put(r.head() + fmt.Sprintf(twoGates, 4))
		r.limitIs("b", 4)
	})
	t.Run("two halves", func(t *testing.T) {
		text := r.head() + fmt.Sprintf(twoGates, 5)
		r.put(text[:len(text)/2])
		time.Sleep(200 * time.Millisecond) // of the case; whatever is read meanwhile is no configuration
		if g, err := r.gate("b"); err != nil || g.Stats().Capacity != 4 {
			t.Errorf("half a file is in force")
		}
		r.put(text)
		r.limitIs("b", 5)
	})
	t.Run("broken", func(t *testing.T) {
		r.put("gates: {\n")
		eventually(t, "the gauge says so", func() bool { return r.scrape("forebay_config_last_reload_successful") == "0" })
		r.limitIs("b", 5)
		r.put(r.head() + fmt.Sprintf(twoGates, 5))
		eventually(t, "the gauge says so", func() bool { return r.scrape("forebay_config_last_reload_successful") == "1" })
	})
	t.Run("away for a second", func(t *testing.T) {
		if err := os.Remove(r.path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // of the case
		r.limitIs("b", 5)
		if got := r.scrape("forebay_config_last_reload_successful"); got != "1" {
			t.Errorf("last reload successful = %q: a file that is away is no mistake yet", got)
		}
		r.write(fmt.Sprintf(twoGates, 6))
		r.limitIs("b", 6)
	})
	t.Run("50 changes in a second", func(t *testing.T) {
		for i := range 50 {
			r.write(fmt.Sprintf(twoGates, 50+i))
			time.Sleep(20 * time.Millisecond) // of the case
		}
		r.limitIs("b", 99)
		if err := r.Server.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchOfABusyFolder: changes are seen although something else in the folder is
// never quiet.
func TestWatchOfABusyFolder(t *testing.T) {
	dir := t.TempDir()
	r := startFile(t, filepath.Join(dir, "forebay.yaml"), fmt.Sprintf(twoGates, 1))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			_ = os.WriteFile(filepath.Join(dir, "noise.log"), []byte(fmt.Sprint(i)), 0o600)
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprint("noise", i%10)), nil, 0o600)
			_ = os.Remove(filepath.Join(dir, fmt.Sprint("noise", i%10)))
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	r.write(fmt.Sprintf(twoGates, 2))
	r.limitIs("b", 2)
}

// TestCF09WatchOfAConfigMap: Kubernetes exchanges a link to a folder, and the file, a link
// into it, is never touched.
func TestCF09WatchOfAConfigMap(t *testing.T) {
	dir := t.TempDir()
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(folder, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "forebay.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	swap := func(folder string) {
		t.Helper()
		link(folder, "..data_tmp")
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	head := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n"
	fill("..2026_1", head+fmt.Sprintf(twoGates, 1))
	swap("..2026_1")
	link(filepath.Join("..data", "forebay.yaml"), "forebay.yaml")
	r := startLinked(t, filepath.Join(dir, "forebay.yaml"))
	for i := range 3 {
		name := fmt.Sprint("..2026_", i+2)
		fill(name, head+fmt.Sprintf(twoGates, i+2))
		swap(name)
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint("..2026_", i+1))); err != nil {
			t.Fatal(err)
		}
		r.limitIs("b", i+2)
	}
}

// TestWatchSeesWhatChangedBeforeIt: a change between the first reading and the watch
// is not lost.
func TestWatchSeesWhatChangedBeforeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.yaml")
	r := &rig{TB: t, path: path}
	r.put("new")
	f := newFileWatch(path, "the hash of something old")
	defer f.close()
	select {
	case <-f.settle.C:
	case <-time.After(patience):
		t.Fatal("nobody looks")
	}
	if !f.read() || f.read() {
		t.Error("the change is not seen, or seen twice")
	}
}

// TestWatchOfNothing: without a file there is nothing to watch, and a folder that is
// not there is said once.
func TestWatchOfNothing(t *testing.T) {
	f := newFileWatch("", "")
	f.close()
	if f.err != nil || f.events != nil {
		t.Errorf("without a file: %+v", f)
	}
	f = newFileWatch(filepath.Join(t.TempDir(), "none", "forebay.yaml"), "")
	f.close()
	if f.err == nil || !strings.Contains(f.err.Error(), "no such file") {
		t.Errorf("without a folder: %v", f.err)
	}
}

// TestWatchAndReload: who reloads by hand what was just written is not reloaded a
// second time, which would end the override set in between.
func TestWatchAndReload(t *testing.T) {
	r := startFile(t, filepath.Join(t.TempDir(), "forebay.yaml"), fmt.Sprintf(twoGates, 1))
	s := r.Server
	r.reload(fmt.Sprintf(twoGates, 2))
	if err := s.SetOverride("b", 9, 0, admin.Reason{}); err != nil {
		t.Fatal(err)
	}
	file := &fileWatch{path: r.path, hash: "before", settle: stopped(), latest: stopped()}
	s.reloadChanged(file)
	r.limitIs("b", 9)
}
