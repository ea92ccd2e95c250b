package telemetry

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/DeRuina/timberjack"
)

// sink is where lines go. Only the writer's goroutine uses it.
type sink interface {
	writeLine(level slog.Level, line []byte) error
	Close() error
}

// openSink opens the destination that checked options name.
func openSink(o Options) (sink, error) {
	switch o.To {
	case ToStderr:
		return streamSink{os.Stderr}, nil
	case ToSyslog:
		return openSyslog()
	}
	return openFile(o)
}

// streamSink is a stream that outlives the log.
type streamSink struct{ w io.Writer }

func (s streamSink) writeLine(_ slog.Level, line []byte) error {
	_, err := s.w.Write(line)
	return err
}

func (streamSink) Close() error { return nil }

// fileSink is a file that is rotated. Timberjack is the maintained successor of
// lumberjack, whose last release is of 2023 and leaves a goroutine behind when it
// is closed.
type fileSink struct{ file *timberjack.Logger }

const (
	mebibyte = 1 << 20
	// fileMode lets the group read, for whoever collects logs, and nobody else:
	// request ids and addresses are in it.
	fileMode = 0o640
)

// openFile opens the file once to learn now what would else fail with the first
// line, hours later.
func openFile(o Options) (sink, error) {
	if info, err := os.Stat(o.To); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
		return nil, fmt.Errorf("telemetry: %s is no regular file, and writing to it could wait for ever; name a file", o.To)
	}
	f, err := os.OpenFile(o.To, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("telemetry: the log file cannot be written: %w; name a file in a directory that exists and that this user may write to", err)
	}
	return fileSink{&timberjack.Logger{
		Filename: o.To, FileMode: fileMode,
		MaxSize: int((o.MaxSize + mebibyte - 1) / mebibyte), MaxBackups: o.Keep,
	}}, nil
}

func (s fileSink) writeLine(_ slog.Level, line []byte) error {
	_, err := s.file.Write(line)
	return err
}

func (s fileSink) Close() error { return s.file.Close() }
