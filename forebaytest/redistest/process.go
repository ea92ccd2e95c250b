package redistest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// process is one run of a program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// launch begins a process whose output is added to the log in dir.
func launch(t T, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, log, log
	p.cmd.Env = append(os.Environ(), env...)
	dieWithUs(p.cmd)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process at once, even a frozen one, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// logOf returns what the processes of a directory have written, at most the last
// lines of it if tail is set.
func logOf(dir string, tail int) string {
	b, _ := os.ReadFile(filepath.Join(dir, "log"))
	lines := strings.SplitAfter(string(b), "\n")
	if tail > 0 && len(lines) > tail {
		lines = lines[len(lines)-tail:]
	}
	return strings.Join(lines, "")
}
