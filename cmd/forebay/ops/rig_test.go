//go:build linux

// Package ops_test runs what docs/operations.md and deploy say: the snippets against
// the real nginx and HAProxy, the units through systemd's own tools, the program in a
// cgroup and as nobody. What a machine lacks is skipped, and said.
package ops_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	repository = "../../.."
	patience   = 20 * time.Second // for what takes a moment, on a busy machine
)

// program is the path of the binary, built once as deploy/Dockerfile does.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "forebay-ops-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nobody runs it too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "forebay")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is a program that runs until the test is over.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // of Wait, once ended is closed

	mu    sync.Mutex // guards lines
	lines []string   // of stderr
}

// start starts a command. The end of the test ends it with SIGTERM, by its id.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.mu.Unlock()
		}
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), strings.Join(p.said(), "\n"))
		}
	})
	return p
}

// stop ends the process and waits for it.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		t.Errorf("%s did not end within %v of SIGTERM", filepath.Base(p.cmd.Path), patience)
	}
}

// said returns the lines of stderr so far.
func (p *process) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// logged returns the first line of the log that fits, once it is there.
func (p *process) logged(t *testing.T, what string, fits func(map[string]any) bool) map[string]any {
	t.Helper()
	var found map[string]any
	until(t, "a line of the log: "+what, func() bool {
		for _, line := range p.said() {
			var fields map[string]any
			if json.Unmarshal([]byte(line), &fields) == nil && fits(fields) {
				found = fields
				return true
			}
		}
		select {
		case <-p.ended:
			t.Fatalf("it ended (%v) and said:\n%s", p.err, strings.Join(p.said(), "\n"))
		default:
		}
		return false
	})
	return found
}

// forebay is a running Forebay.
type forebay struct {
	*process
	listen, admin string // HOST:PORT
}

// serve runs Forebay with a configuration.
func serve(t *testing.T, config string) *forebay {
	t.Helper()
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	writeFile(t, file, config)
	return serving(t, exec.Command(program, "serve", "-c", file))
}

// serving starts a command that is Forebay and waits until it serves.
func serving(t *testing.T, cmd *exec.Cmd) *forebay {
	t.Helper()
	f := &forebay{process: start(t, cmd)}
	line := f.logged(t, "serving", func(l map[string]any) bool { return l["msg"] == "serving" })
	f.listen, f.admin = line["listen"].(string), line["admin"].(string)
	return f
}

// metrics returns the scrape.
func (f *forebay) metrics(t *testing.T) string { return get(t, "http://"+f.admin+"/metrics").body }

// answer is what a client saw.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks on a connection of its own.
func get(t *testing.T, url string) answer {
	t.Helper()
	a, err := try(&net.Dialer{Timeout: patience}, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func try(from *net.Dialer, url string, header http.Header) (answer, error) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}}
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	var body bytes.Buffer
	_, err = io.Copy(&body, res.Body)
	return answer{res.StatusCode, res.Header, body.String()}, err
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// program of another project, or the reason why the test is skipped.
func need(t *testing.T, name, debianPackage string) (path string) {
	t.Helper()
	for _, look := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(look); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed; on Debian: apt-get install %s", name, debianPackage)
	return ""
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{repository}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace replaces what must be there exactly once: a page that has changed must not
// silently be tested as it was.
func replace(t *testing.T, text, from, to string) string {
	t.Helper()
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("%q is there %d times, want once, in:\n%s", from, n, text)
	}
	return strings.Replace(text, from, to, 1)
}
