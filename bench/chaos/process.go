//go:build linux

package main

import (
	"os/exec"
	"syscall"
)

// process is a helper of a scene, such as a Sentinel.
type process struct {
	cmd  *exec.Cmd
	exit chan struct{}
}

func startProcess(name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), exit: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process, for which kill waits
		p.cmd.Wait()
		close(p.exit)
	}()
	return p, nil
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exit
}
