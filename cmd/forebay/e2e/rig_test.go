//go:build unix

// Package e2e tests the program as it is shipped: the real binary, in a process of
// its own, over loopback.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/forebay"
)

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	code, err := build(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func build(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "forebay-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "forebay")
	if out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building forebay: %w\n%s", err, out)
	}
	return m.Run(), nil
}

const patience = 60 * time.Second // for everything, on a machine that is busy

// guard is how long a connection of a test lasts. No test takes as long on the busiest
// machine, and one that waits for what never comes fails by it and does not hang.
const guard = 5 * patience

// guarded dials for every client of a test.
func guarded(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(guard))
	}
	return conn, err
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
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

// output is what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// program is forebay, running.
type program struct {
	testing.TB
	cmd         *exec.Cmd
	config      string // its file
	stderr      output
	data, admin string // URLs
	client      *http.Client
	ended       chan struct{}
}

// start runs forebay with a configuration, to which listeners are added.
func start(t testing.TB, config string) *program {
	t.Helper()
	p := prepare(t, config)
	p.run()
	p.serving()
	return p
}

// prepare writes the configuration and makes the command.
func prepare(t testing.TB, config string) *program {
	t.Helper()
	p := &program{
		TB: t, config: filepath.Join(t.TempDir(), "forebay.yaml"), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{DialContext: guarded, MaxIdleConnsPerHost: 1000}},
	}
	t.Cleanup(p.client.CloseIdleConnections)
	p.write(config)
	p.cmd = exec.Command(binary, "serve", "-c", p.config)
	p.cmd.Stderr = &p.stderr
	return p
}

func (p *program) run() {
	p.Helper()
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the state is looked at
	}()
	p.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		if p.Failed() {
			text := p.stderr.String()
			p.Logf("the last it said:\n%s", text[max(0, len(text)-4000):])
		}
	})
}

// serving waits until it says where it listens.
func (p *program) serving() {
	p.Helper()
	line := p.logged(`"msg":"serving"`)
	p.data, p.admin = "http://"+field(line, "listen"), "http://"+field(line, "admin")
}

// logged waits for a line with all of the words.
func (p *program) logged(words ...string) (found string) {
	p.Helper()
	eventually(p, fmt.Sprintf("a line with %q", words), func() bool {
		for line := range strings.Lines(p.stderr.String()) {
			if hasAll(line, words) {
				found = line
				return true
			}
		}
		select {
		case <-p.ended:
			p.Fatalf("it ended: %v", p.cmd.ProcessState)
		default:
		}
		return false
	})
	return found
}

func hasAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// field returns a text in a line of JSON.
func field(line, name string) string {
	_, rest, _ := strings.Cut(line, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// write replaces the configuration file in one step.
func (p *program) write(config string) {
	p.Helper()
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + config
	if err := os.WriteFile(p.config+".new", []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	if err := os.Rename(p.config+".new", p.config); err != nil {
		p.Fatal(err)
	}
}

func (p *program) signal(sig syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (p *program) exit() int {
	p.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.Fatalf("it does not end within %v", patience)
	}
	return p.cmd.ProcessState.ExitCode()
}

// reply is what a client got; status 0: not a whole answer.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (p *program) do(ctx context.Context, method, url, body string, headers ...string) reply {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{body: string(text), err: err}
	}
	return reply{res.StatusCode, res.Header, string(text), nil}
}

func (p *program) get(path string, headers ...string) reply {
	return p.do(context.Background(), http.MethodGet, p.data+path, "", headers...)
}

// ask does something on the admin port, which has to work.
func (p *program) ask(method, path, body string) reply {
	p.Helper()
	got := p.do(context.Background(), method, p.admin+path, body, "Content-Type", "application/json")
	if got.status != http.StatusOK {
		p.Errorf("%s %s: %d %s %v", method, path, got.status, got.body, got.err)
	}
	return got
}

func (p *program) stats(gate string) (st forebay.Stats) {
	p.Helper()
	if err := json.Unmarshal([]byte(p.ask("GET", "/stats/"+gate, "").body), &st); err != nil {
		p.Fatal(err)
	}
	return st
}

// gateIs waits until a gate has so many calls in flight and in line.
func (p *program) gateIs(gate string, inFlight, waiting int) {
	p.Helper()
	eventually(p, fmt.Sprintf("%s has %d in flight and %d in line", gate, inFlight, waiting), func() bool {
		st := p.stats(gate)
		return st.Calls == inFlight && st.Waiting == waiting
	})
}

// metrics are the values of a scrape by name with labels.
func (p *program) metrics() map[string]float64 {
	p.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(p.ask("GET", "/metrics", "").body) {
		name, value, ok := cutLast(strings.TrimSpace(line))
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			all[name] = n
		}
	}
	return all
}

func cutLast(line string) (name, value string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 || line[0] == '#' {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// usage is what the process holds of what can leak.
type usage struct{ goroutines, descriptors int }

func (p *program) usage() usage {
	p.Helper()
	m := p.metrics()
	return usage{int(m["go_goroutines"]), int(m["process_open_fds"])}
}

// idleUsage is the usage of a program that has served once and has nothing to do: what
// it was before the first request, when connections to the upstream have timed out.
func (p *program) idleUsage() usage {
	p.Helper()
	var before usage
	for range 20 { // a scrape runs some goroutines of its own, and counts those that still do
		now := p.usage()
		before = usage{max(before.goroutines, now.goroutines), max(before.descriptors, now.descriptors)}
	}
	p.get("/")
	p.client.CloseIdleConnections()
	eventually(p, "idle again", func() bool {
		now := p.usage()
		return now.goroutines <= before.goroutines && now.descriptors <= before.descriptors
	})
	return before
}

// backTo checks that nothing of what went wrong is left: nobody in flight or in line,
// no goroutine, no descriptor, and the gate admits a full set.
func (p *program) backTo(before usage, gate string, fullSet func()) {
	p.Helper()
	p.gateIs(gate, 0, 0)
	if fullSet != nil {
		fullSet()
		p.gateIs(gate, 0, 0)
	}
	p.client.CloseIdleConnections()
	var now usage
	eventually(p, fmt.Sprintf("back to %+v", before), func() bool {
		now = p.usage()
		return now.goroutines <= before.goroutines && now.descriptors <= before.descriptors
	})
}

// raiseFiles makes room for so many descriptors, or skips the test.
func raiseFiles(t *testing.T, n uint64) {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Skipf("the limit of descriptors is not known: %v", err)
	}
	if l.Max < n {
		t.Skipf("the hard limit of descriptors is %d, and %d are needed; raise it with ulimit -Hn", l.Max, n)
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil && !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
}
