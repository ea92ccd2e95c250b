//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// killTogether makes the end of a command the end of its children too: a test
// binary that hangs would outlive the go command that started it.
func killTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
