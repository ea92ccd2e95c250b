package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// child is this program, started again with other arguments.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	word  string // what it said when it was ready
}

// startSelf starts this program and, unless ready is empty, waits for a line that
// begins with it. What the child complains about goes to out.
func startSelf(ctx context.Context, out io.Writer, ready string, args ...string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
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
	if ready == "" {
		return c, nil
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	word, ok := strings.CutPrefix(strings.TrimSpace(line), ready)
	if err != nil || !ok {
		c.stop()
		return nil, fmt.Errorf("it said %q", line)
	}
	c.word = word
	return c, nil
}

// stop ends the child: first by closing its input, then by force.
func (c *child) stop() {
	_ = c.stdin.Close()
	_ = c.cmd.Process.Kill() // nothing in it is worth waiting for
	_ = c.cmd.Wait()
}

// freePorts returns ports of the loopback that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after the last, so that no two are the same
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// startPatience is how long a child may take to answer. It has nothing to load.
const startPatience = 10 * time.Second

// waitFor returns when the address answers 200.
func waitFor(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for tick := time.Tick(20 * time.Millisecond); ; {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return errors.New(url + " does not answer")
		}
	}
}
