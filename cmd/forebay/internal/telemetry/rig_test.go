package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"example.com/forebay"
)

// memory is a destination that keeps lines, and fails or blocks when told to.
type memory struct {
	mu     sync.Mutex // guards what follows
	lines  []string
	levels []slog.Level
	err    error
	closed bool

	gate chan struct{} // nil: open; else every line takes one
}

func (m *memory) writeLine(level slog.Level, line []byte) error {
	if m.gate != nil {
		<-m.gate
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.lines = append(m.lines, string(line))
	m.levels = append(m.levels, level)
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.New("closed twice")
	}
	m.closed = true
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// logLine is one line as a reader sees it.
type logLine struct {
	Time      time.Time `json:"time"`
	Level     string    `json:"level"`
	Msg       string    `json:"msg"`
	Decision  string    `json:"decision"`
	Gate      string    `json:"gate"`
	Message   string    `json:"message"`
	Route     string    `json:"route"`
	Lane      string    `json:"lane"`
	RequestID string    `json:"request_id"`
	RemoteIP  string    `json:"remote_ip"`
	WaitedMS  int64     `json:"waited_ms"`
	HeldMS    int64     `json:"held_ms"`
	InFlight  int       `json:"in_flight"`
	Limit     int       `json:"limit"`
	LeftOut   uint64    `json:"left_out"`
}

// parsed returns the lines, each of which must be one JSON object.
func (m *memory) parsed(t *testing.T) []logLine {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []logLine
	for _, text := range m.lines {
		if n := bytes.Count([]byte(text), []byte("\n")); n != 1 || text[len(text)-1] != '\n' {
			t.Fatalf("%q has %d newlines, want one, at the end", text, n)
		}
		var line logLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%q is no JSON: %v", text, err)
		}
		all = append(all, line)
	}
	return all
}

// open returns a log into memory.
func open(t *testing.T, o Options) (*Log, *memory) {
	t.Helper()
	o, err := o.checked()
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	l := start(o, m)
	t.Cleanup(func() { _ = l.Close() })
	return l, m
}

func refusal(gate string) forebay.Event {
	return forebay.Event{
		Gate: gate, Route: "GET /reports/", Lane: "fast", RequestID: "4bf92f35", RemoteIP: "192.0.2.77", Cost: 1,
		Decision: forebay.RejectedTimeout, Waited: 100 * time.Millisecond, InFlight: 4, Waiting: 7, Limit: 4,
	}
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}
