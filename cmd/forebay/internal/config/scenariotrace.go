package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/forebay/internal/simulate"
)

const (
	maxTrace   = 512 << 20  // bytes; it is read as a whole
	maxTraceIn = 50_000_000 // times: 400 MB of them
)

// trace reads when calls came: a path, or a path and the route whose calls are meant.
func (r *scenarioReader) trace(v value, a *simulate.Arrivals) {
	path, route := "", ""
	if v.Kind == yaml.ScalarNode {
		path, _ = r.text(v, "the path of a file")
	} else {
		r.mapping(v, "clients.NAME.trace", []key{
			{"file", func(v value) { path, _ = r.text(v, "the path of a file") }},
			{"route", func(v value) { route, _ = r.text(v, "a route as the log has it, such as GET /reports/") }},
		})
	}
	if path == "" {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	times, err := readTrace(path, route)
	if err != nil {
		r.wrongValue(v, "name a file with one time a line, in seconds, or a log of decisions", "cannot be read: %v", err)
		return
	}
	a.Times = times
}

// readTrace reads when calls came: one time a line, in order, in seconds or with a unit;
// or a log of decisions, whose first call came at 0.
func readTrace(path, route string) ([]time.Duration, error) {
	if info, err := os.Stat(path); err == nil && (!info.Mode().IsRegular() || info.Size() > maxTrace) {
		return nil, fmt.Errorf("%s is no regular file of at most %d MiB", path, maxTrace>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := trace{route: route}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if err := t.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return t.whole()
}

// trace is what was read of one so far.
type trace struct {
	route  string // whose calls count in a log; empty: all
	times  []time.Duration
	logged []time.Time
}

func (t *trace) line(text string) error {
	line, _, _ := strings.Cut(text, "#")
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return nil
	case strings.HasPrefix(line, "{"):
		if came, route, ok := cameOf(text); ok && (t.route == "" || t.route == route) {
			t.logged = append(t.logged, came)
		}
	default:
		at, err := timeOf(line)
		if err != nil {
			return err
		}
		if k := len(t.times); at < 0 || k > 0 && at < t.times[k-1] {
			return errors.New("it is earlier than the one before")
		}
		t.times = append(t.times, at)
	}
	if len(t.times)+len(t.logged) > maxTraceIn {
		return fmt.Errorf("there are more than %d times", maxTraceIn)
	}
	return nil
}

// whole returns all times in order. A log has its lines in the order of the decisions,
// and calls that waited came earlier than others that were decided before them.
func (t *trace) whole() ([]time.Duration, error) {
	switch {
	case len(t.times) > 0 && len(t.logged) > 0:
		return nil, errors.New("some lines are times and some are decisions")
	case len(t.times)+len(t.logged) == 0:
		return nil, errors.New("there is no time in it")
	}
	slices.SortFunc(t.logged, time.Time.Compare)
	for _, came := range t.logged {
		t.times = append(t.times, came.Sub(t.logged[0]))
	}
	return t.times, nil
}

// cameOf reads when a call came of which a line has the decision.
func cameOf(line string) (came time.Time, route string, ok bool) {
	var l struct {
		Time     time.Time `json:"time"`
		Decision string    `json:"decision"`
		Route    string    `json:"route"`
		WaitedMS int64     `json:"waited_ms"`
	}
	if json.Unmarshal([]byte(line), &l) != nil || l.Decision == "" || l.Time.IsZero() {
		return came, "", false
	}
	return l.Time.Add(-time.Duration(l.WaitedMS) * time.Millisecond), l.Route, true
}

func timeOf(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * 1e9), nil
	}
	if t, err := time.ParseDuration(s); err == nil {
		return t, nil
	}
	return 0, fmt.Errorf("%s is no time", shorten(s))
}
