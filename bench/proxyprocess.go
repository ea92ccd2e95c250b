package main

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a server that was started here.
type process struct {
	cmd  *exec.Cmd
	exit chan struct{} // closed when it has ended
	said bytes.Buffer  // on both outputs; whole when exit is closed
}

// start starts a server and returns when it takes connections at the address.
func start(address string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exit: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process, for which stop waits
		_ = cmd.Wait()
		close(p.exit)
	}()
	bench.Cleanup(p.stop)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if c, err := net.Dial("tcp", address); err == nil {
			return p, c.Close()
		}
		select {
		case <-p.exit:
			return nil, fmt.Errorf("it has ended: %s", strings.TrimSpace(p.said.String()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("it does not listen at %s", address)
}

// stop asks it to end, and makes it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	select {
	case <-p.exit:
	case <-time.After(3 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exit
	}
}

// cpu returns the processor time, in nanoseconds, that the process and its children
// have used so far; NaN where the system does not say. Threads that have ended do not
// count: servers end none while they work.
func (p *process) cpu() float64 {
	total := 0.0
	for _, pid := range append(children(p.cmd.Process.Pid), p.cmd.Process.Pid) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(threads) == 0 {
			return math.NaN()
		}
		for _, t := range threads {
			ran, err := os.ReadFile(t)
			ns, _, _ := strings.Cut(string(ran), " ")
			v, bad := strconv.ParseFloat(ns, 64)
			if err != nil || bad != nil {
				return math.NaN()
			}
			total += v
		}
	}
	return total
}

// children lists the processes that a process has started.
func children(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is sound
	for _, s := range stats {
		text, err := os.ReadFile(s)
		if err != nil {
			continue // it has just ended
		}
		id, _, _ := strings.Cut(string(text), " ")
		_, rest, _ := strings.Cut(string(text), ") ") // the name may hold anything
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			if n, err := strconv.Atoi(id); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

// freeAddress returns an address on loopback at which nobody listens now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
