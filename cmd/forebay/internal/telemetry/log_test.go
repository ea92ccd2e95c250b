package telemetry

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
)

func TestLineHasExactlyTheKeysOfTheContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{Decisions: DecisionsAll})
		o := l.Observer()
		o.Observe(refusal("reports"))
		o.Observe(forebay.Event{Kind: forebay.EventReleased, Gate: "reports", Held: 1500 * time.Millisecond, InFlight: 3, Limit: 4})
		o.Observe(forebay.Event{Kind: forebay.EventOverdue, Gate: "reports", Held: time.Minute, InFlight: 3, Limit: 4})
		mustClose(t, l)
		want := []string{"decision", "gate", "held_ms", "in_flight", "lane", "level", "limit", "msg", "remote_ip", "request_id", "route", "time", "waited_ms"}
		for _, text := range m.lines {
			var line map[string]any
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(line)); !slices.Equal(got, want) {
				t.Errorf("keys = %v\nwant   %v", got, want)
			}
		}
		lines := m.parsed(t)
		now := time.Now().UTC() // of the bubble, where it stands still
		wantLines := []logLine{
			{Time: now, Level: "WARN", Msg: "decided", Decision: "rejected_timeout", Gate: "reports", Route: "GET /reports/", Lane: "fast", RequestID: "4bf92f35", RemoteIP: "192.0.2.0", WaitedMS: 100, InFlight: 4, Limit: 4},
			{Time: now, Level: "INFO", Msg: "released", Gate: "reports", HeldMS: 1500, InFlight: 3, Limit: 4},
			{Time: now, Level: "WARN", Msg: "overdue", Gate: "reports", HeldMS: 60_000, InFlight: 3, Limit: 4},
		}
		if !slices.Equal(lines, wantLines) {
			t.Errorf("lines = %+v\nwant    %+v", lines, wantLines)
		}
	})
}

func TestDecisionsSaysWhatIsLogged(t *testing.T) {
	events := map[string]forebay.Event{
		"accepted": {Decision: forebay.Accepted}, "exempt": {Decision: forebay.Exempted},
		"rejected_busy": {Decision: forebay.RejectedBusy}, "rejected_draining": {Decision: forebay.RejectedDraining},
		"rejected_too_large": {Decision: forebay.RejectedTooLarge}, "canceled": {Decision: forebay.Canceled},
		"released": {Kind: forebay.EventReleased}, "overdue": {Kind: forebay.EventOverdue},
	}
	for mode, want := range map[string][]string{
		"":               {"overdue", "rejected_busy", "rejected_draining", "rejected_too_large"},
		DecisionsRefused: {"overdue", "rejected_busy", "rejected_draining", "rejected_too_large"},
		DecisionsAll:     slices.Sorted(maps.Keys(events)),
		DecisionsOff:     nil,
	} {
		l, m := open(t, Options{Decisions: mode})
		for _, e := range events {
			l.Observer().Observe(e)
		}
		mustClose(t, l)
		var got []string
		for _, line := range m.parsed(t) {
			if line.Msg == "decided" {
				got = append(got, line.Decision)
			} else {
				got = append(got, line.Msg)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("decisions %q logs %v, want %v", mode, got, want)
		}
	}
}

func TestWhatAClientSendsBreaksNoLine(t *testing.T) {
	evil := "a\nb\r\n{\"msg\":\"forged\"}\x00\x1b[2J\x7f\u009b31m\u202eabc\u2066\xff\xfe\u2028é" + strings.Repeat("x", 1<<20)
	l, m := open(t, Options{RemoteIP: RemoteIPFull})
	e := refusal("reports")
	e.Route, e.RequestID, e.RemoteIP = evil, evil, evil
	l.Observer().Observe(e)
	l.Logger().Warn("upstream failed", "path", evil[:40])
	mustClose(t, l)
	lines := m.parsed(t)
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	if got := lines[0]; got.RemoteIP != "" || len(got.RequestID) > 2*maxValueBytes || !strings.HasPrefix(got.RequestID, "a\nb\r\n{") {
		t.Errorf("remote_ip = %q, request_id = %.60q… of %d bytes", got.RemoteIP, got.RequestID, len(got.RequestID))
	}
	for _, text := range m.lines {
		if i := strings.IndexFunc(strings.TrimSuffix(text, "\n"), func(r rune) bool { return r < ' ' || obeyed(r) }); i >= 0 {
			t.Errorf("line has the character %q that a terminal obeys", text[i:i+4])
		}
		if len(text) > 4*maxValueBytes {
			t.Errorf("line has %d bytes", len(text))
		}
	}
	if !strings.Contains(m.lines[0], "é") {
		t.Error("an ordinary letter was escaped")
	}
}

func TestProgramLinesKeepAttributesAndGroups(t *testing.T) {
	l, m := open(t, Options{})
	l.Logger().With("version", "v1").WithGroup("upstream").Error("broke", "status", 502)
	l.Logger().Debug("not shown")
	mustClose(t, l)
	if len(m.lines) != 1 || !strings.Contains(m.lines[0], `"version":"v1","upstream":{"status":502}`) || m.levels[0] != slog.LevelError {
		t.Errorf("lines = %q at %v", m.lines, m.levels)
	}
}

func TestReconfigureMovesToAnotherFile(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.log"), filepath.Join(dir, "second.log")
	l, err := Open(Options{To: first})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.Logger().Info("one")
	waitFor(t, func() bool { return strings.Contains(read(t, first), `"one"`) })
	if err := l.Reconfigure(Options{To: filepath.Join(dir, "none", "x.log")}); err == nil {
		t.Error("a file in no directory was taken")
	}
	if err := l.Reconfigure(Options{Decisions: "some"}); err == nil {
		t.Error("an unknown word was taken")
	}
	l.Logger().Info("two")
	waitFor(t, func() bool { return strings.Contains(read(t, first), `"two"`) })
	if err := l.Reconfigure(Options{To: second, RemoteIP: RemoteIPFull}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(l.reopen) == 0 })
	l.Logger().Info("three")
	l.Observer().Observe(refusal("reports"))
	mustClose(t, l)
	if got := read(t, second); !strings.Contains(got, `"three"`) || !strings.Contains(got, "192.0.2.77") || strings.Contains(read(t, first), `"three"`) {
		t.Errorf("second file has %q", got)
	}
	if err := l.Reconfigure(Options{}); err == nil {
		t.Error("a closed log was reconfigured")
	}
}

func TestReconfigureWhileStuckOpensNoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, m := open(t, Options{})
		m.gate = make(chan struct{})
		l.Logger().Info("stuck")
		synctest.Wait()
		unused, last := &memory{}, &memory{}
		l.mu.Lock()
		l.switchLocked(unused)
		l.switchLocked(last)
		l.mu.Unlock()
		close(m.gate)
		l.Logger().Info("moved")
		mustClose(t, l)
		if !unused.closed || !last.closed || !m.closed || len(unused.lines) > 0 {
			t.Errorf("closed: old %v, unused %v, last %v", m.closed, unused.closed, last.closed)
		}
	})
}

func TestOpenNamesEveryMistake(t *testing.T) {
	_, err := Open(Options{Decisions: "some", RemoteIP: "half", MaxSize: -1, Keep: -1})
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Fatalf("error = %v, want four lines", err)
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "telemetry: ") || !strings.Contains(line, "; it must be ") {
			t.Errorf("%q does not say what would be right", line)
		}
	}
	_, err = Open(Options{To: filepath.Join(t.TempDir(), "none", "x.log")})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "; name a file in a directory that exists") {
		t.Errorf("error = %v", err)
	}
}

func TestFileRotates(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "forebay.log")
	l, err := Open(Options{To: file, MaxSize: 1, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // 1 KiB each: five MiB make four rotations, of which two are kept
		for len(l.queue) > queueLength/2 {
			runtime.Gosched()
		}
		l.Logger().Info("filler", "text", strings.Repeat("x", 1000))
	}
	mustClose(t, l)
	if n := l.LeftOut(""); n != 0 {
		t.Errorf("%d lines left out", n)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "forebay*.log"))
	if len(files) != 3 {
		t.Errorf("files = %v, want the current one and two that were kept", files)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", f, info.Size(), err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
			t.Errorf("%s can be read by everybody: %v", f, info.Mode())
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}
