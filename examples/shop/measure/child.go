package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// child is this program, started again as something else.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
}

// startSelf starts this program with arguments and waits until it listens.
func startSelf(ctx context.Context, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		c.stop()
		return nil, fmt.Errorf("%s did not start: %q", args[0], line)
	}
	c.url = url
	return c, nil
}

func (c *child) stop() {
	_ = c.stdin.Close()
	_ = c.cmd.Process.Kill() // nothing in it is worth waiting for
	_ = c.cmd.Wait()
}
