//go:build windows || plan9

package telemetry

import (
	"errors"
	"runtime"
)

func openSyslog() (sink, error) {
	return nil, errors.New("telemetry: there is no syslog on " + runtime.GOOS + "; log to stderr or to a file")
}
