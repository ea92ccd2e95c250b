//go:build unix

package redistest

import (
	"os"
	"syscall"
)

var (
	freeze, thaw os.Signal = syscall.SIGSTOP, syscall.SIGCONT
	terminate    os.Signal = syscall.SIGTERM
)
