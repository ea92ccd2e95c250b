//go:build unix

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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
	dir, err := os.MkdirTemp("", "forebay-clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "forebay")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir = ".." // the program's module
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building forebay: %w\n%s", err, out)
	}
	return m.Run(), nil
}

const patience = 60 * time.Second // for what should take milliseconds, on a machine that is busy

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

// tool returns the path of the first program of these names that is installed, or skips
// the test.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("no %s here; make setup installs it where it may", strings.Join(names, " or "))
	return ""
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
	stderr output
	data   string // address
	admin  string // URL
	before usage
}

// usage is what the process holds of what can leak.
type usage struct{ goroutines, descriptors int }

// start runs forebay with a configuration, to which listeners are added.
func start(t testing.TB, config string) *program {
	t.Helper()
	p := &program{TB: t}
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "-c", file)
	cmd.Stderr = &p.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			text := p.stderr.String()
			t.Logf("the last it said:\n%s", text[max(0, len(text)-4000):])
		}
	})
	eventually(t, "it serves", func() bool { return strings.Contains(p.stderr.String(), `"msg":"serving"`) })
	p.data, p.admin = p.said("listen"), "http://"+p.said("admin")
	for range 20 { // a scrape runs some goroutines of its own, and counts those that still do
		now := p.usage()
		p.before = usage{max(p.before.goroutines, now.goroutines), max(p.before.descriptors, now.descriptors)}
	}
	return p
}

// said returns a text of the line with which it began to serve.
func (p *program) said(name string) string {
	_, rest, _ := strings.Cut(p.stderr.String(), `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// ask does something on the admin port, which has to work.
func (p *program) ask(method, path, body string) string {
	p.Helper()
	req, err := http.NewRequest(method, p.admin+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		p.Fatalf("%s %s: %s %s %v", method, path, res.Status, text, err)
	}
	return string(text)
}

// limit puts a limit of a gate in force: a number, or "closed" in quotes.
func (p *program) limit(gate, n string) {
	p.Helper()
	p.ask("PUT", "/gates/"+gate+"/max_in_flight", `{"max_in_flight":`+n+`}`)
}

// stats are those of a gate that tests look at.
type stats struct {
	InUse        int    `json:"in_use"`
	Waiting      int    `json:"waiting"`
	Accepted     uint64 `json:"accepted"`
	RejectedBusy uint64 `json:"rejected_busy"`
}

func (p *program) stats(gate string) (st stats) {
	p.Helper()
	if err := json.Unmarshal([]byte(p.ask("GET", "/stats/"+gate, "")), &st); err != nil {
		p.Fatal(err)
	}
	return st
}

// inUse waits until so many slots of a gate are.
func (p *program) inUse(gate string, n int) {
	p.Helper()
	eventually(p, fmt.Sprintf("%d slots of %s are in use", n, gate), func() bool {
		st := p.stats(gate)
		return st.InUse == n && st.Waiting == 0
	})
}

func (p *program) usage() (u usage) {
	p.Helper()
	for line := range strings.Lines(p.ask("GET", "/metrics", "")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			u.goroutines = int(n)
		case "process_open_fds":
			u.descriptors = int(n)
		}
	}
	return u
}

// nothingLeft checks that no slot, goroutine or descriptor of the program's is, once the
// clients have gone.
func (p *program) nothingLeft(gates ...string) {
	p.Helper()
	for _, g := range gates {
		p.inUse(g, 0)
	}
	eventually(p, fmt.Sprintf("back to %+v", p.before), func() bool {
		http.DefaultClient.CloseIdleConnections()
		now := p.usage()
		return now.goroutines <= p.before.goroutines && now.descriptors <= p.before.descriptors
	})
}

// serve runs a server that ends with the test, whatever its handlers wait for: their
// context ends.
func serve(t testing.TB, h http.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// within bounds what a test waits for.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
