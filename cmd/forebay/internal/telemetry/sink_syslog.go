//go:build !windows && !plan9

package telemetry

import (
	"fmt"
	"log/slog"
	"log/syslog"
)

// syslogSink gives each line the severity of its level. The local syslog is asked
// for again, once a line, when it has gone away.
type syslogSink struct{ w *syslog.Writer }

func openSyslog() (sink, error) {
	w, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_INFO, "forebay")
	if err != nil {
		return nil, fmt.Errorf("telemetry: no syslog on this machine: %w; log to stderr or to a file", err)
	}
	return syslogSink{w}, nil
}

func (s syslogSink) writeLine(level slog.Level, line []byte) error {
	text := string(line)
	switch {
	case level >= slog.LevelError:
		return s.w.Err(text)
	case level >= slog.LevelWarn:
		return s.w.Warning(text)
	}
	return s.w.Info(text)
}

func (s syslogSink) Close() error { return s.w.Close() }
