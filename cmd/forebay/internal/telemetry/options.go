package telemetry

import (
	"errors"
	"fmt"
)

// Where a log can go besides a file, and which decisions it has; see [Options].
const (
	ToStderr = "stderr" // the default
	ToSyslog = "syslog" // of this machine

	DecisionsRefused = "refused" // refusals and overdue leases; the default
	DecisionsAll     = "all"     // every decision and release
	DecisionsOff     = "off"     // nothing about single calls
)

// Options say what is logged and where to. The zero value is the safe default that
// each comment names.
type Options struct {
	// To is "stderr" (the default), "syslog" (not on Windows), or the path of a file
	// that is rotated. The file belongs to one process, and to no other rotation.
	To string

	// Decisions is "refused" (the default): refusals and overdue leases; "all":
	// every decision and every release; "off": nothing about single calls. Refusals
	// and overdue leases make at most ten lines a second and gate in any case.
	Decisions string

	// RemoteIP is how addresses are shown: "truncated" (the default), "full",
	// "hashed" with a key that is drawn anew at each start, or "off".
	RemoteIP string

	// MaxSize is how many bytes a file may have before it is rotated, counted in
	// whole MiB, rounded up. 0: 100 MiB.
	MaxSize int64

	// Keep is how many rotated files are kept besides the current one. 0: 5.
	Keep int
}

const (
	defaultMaxSize = 100 << 20
	defaultKeep    = 5
)

// checked returns the options with defaults filled in, or every mistake.
func (o Options) checked() (Options, error) {
	o.To = orDefault(o.To, ToStderr)
	o.Decisions = orDefault(o.Decisions, DecisionsRefused)
	o.RemoteIP = orDefault(o.RemoteIP, RemoteIPTruncated)
	var errs []error
	switch o.Decisions {
	case DecisionsRefused, DecisionsAll, DecisionsOff:
	default:
		errs = append(errs, fmt.Errorf("telemetry: decisions is %q; it must be refused, all or off", o.Decisions))
	}
	switch o.RemoteIP {
	case RemoteIPTruncated, RemoteIPFull, RemoteIPHashed, RemoteIPOff:
	default:
		errs = append(errs, fmt.Errorf("telemetry: remote_ip is %q; it must be truncated, full, hashed or off", o.RemoteIP))
	}
	if o.MaxSize < 0 {
		errs = append(errs, fmt.Errorf("telemetry: the largest size of a log file is %d bytes; it must be above 0, or 0 for 100 MiB", o.MaxSize))
	}
	if o.Keep < 0 {
		errs = append(errs, fmt.Errorf("telemetry: %d rotated files to keep; it must be above 0, or 0 for 5", o.Keep))
	}
	if o.MaxSize == 0 {
		o.MaxSize = defaultMaxSize
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	return o, errors.Join(errs...)
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// sameSink reports whether a change of options keeps the destination.
func (o Options) sameSink(old Options) bool {
	return o.To == old.To && o.MaxSize == old.MaxSize && o.Keep == old.Keep
}
