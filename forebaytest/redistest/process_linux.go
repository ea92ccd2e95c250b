package redistest

import (
	"os/exec"
	"syscall"
)

// dieWithUs makes the kernel end the server with the test process, which has no
// chance to do so when it panics or runs out of time.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
