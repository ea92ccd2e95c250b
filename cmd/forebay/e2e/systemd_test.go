//go:build unix

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// notifySocket is what systemd listens on.
func notifySocket(t *testing.T) (path string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // a test's own is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path = filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return path, func() string {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		var buf [4096]byte
		n, err := conn.Read(buf[:])
		if err != nil {
			t.Fatalf("the service manager is told nothing: %v", err)
		}
		return string(buf[:n])
	}
}

// TestNotify: what a unit of Type=notify-reload is told, in order, a reload that fails
// included.
func TestNotify(t *testing.T) {
	path, next := notifySocket(t)
	p := prepare(t, "upstream: http://127.0.0.1:1\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
	p.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	p.run()
	if got := next(); got != "READY=1" {
		t.Errorf("at the start: %q", got)
	}
	p.serving()
	reloads := func() {
		t.Helper()
		fields := strings.Split(strings.TrimSpace(next()), "\n")
		if len(fields) != 2 || fields[0] != "RELOADING=1" || !strings.HasPrefix(fields[1], "MONOTONIC_USEC=") {
			t.Errorf("as a reload begins: %q", fields)
		} else if n, err := strconv.ParseInt(strings.TrimPrefix(fields[1], "MONOTONIC_USEC="), 10, 64); err != nil || n <= 0 {
			t.Errorf("as a reload begins: %q", fields)
		}
		if got := next(); got != "READY=1" {
			t.Errorf("after a reload: %q", got)
		}
	}
	p.signal(syscall.SIGHUP)
	reloads()
	p.write("gates: {\n")
	p.signal(syscall.SIGHUP)
	reloads()
	p.signal(syscall.SIGTERM)
	for got := next(); got != "STOPPING=1"; got = next() { // the file's own reload may come first
		if !strings.HasPrefix(got, "RELOADING=1") && got != "READY=1" {
			t.Errorf("at the end: %q", got)
		}
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestSocketActivation: the sockets of a service manager are used in place of those of
// the configuration, with names and without.
func TestSocketActivation(t *testing.T) {
	for _, names := range []string{"listen:admin", "admin:listen", "", "forebay.socket:forebay.socket"} {
		t.Run(names, func(t *testing.T) {
			b := newBackend(t)
			p := prepare(t, "upstream: "+b.URL+"\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
			first, firstFile := socket(t)
			second, secondFile := socket(t)
			// LISTEN_PID has to be the program's, which is not known before it runs.
			p.cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, binary, "serve", "-c", p.config)
			p.cmd.Stderr = &p.stderr
			p.cmd.ExtraFiles = []*os.File{firstFile, secondFile}
			p.cmd.Env = append(os.Environ(), "LISTEN_FDS=2")
			if names != "" {
				p.cmd.Env = append(p.cmd.Env, "LISTEN_FDNAMES="+names)
			}
			p.run()
			p.serving()
			data, admin := first, second
			if strings.HasPrefix(names, "admin") {
				data, admin = second, first
			}
			if p.data != "http://"+data || p.admin != "http://"+admin {
				t.Errorf("it serves on %s and %s, want %s and %s", p.data, p.admin, data, admin)
			}
			if got := p.get("/x"); got.status != http.StatusOK {
				t.Errorf("%+v", got)
			}
			p.ask("GET", "/stats", "")
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
		})
	}
}

// socket returns a listening socket to hand over, and its address.
func socket(t *testing.T) (addr string, file *os.File) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the file is another descriptor of the same socket
	file, err = l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return l.Addr().String(), file
}

// TestSystemdSocketActivate is TestSocketActivation with systemd's own tool, which
// starts the program on the first connection.
func TestSystemdSocketActivate(t *testing.T) {
	tool, err := exec.LookPath("systemd-socket-activate")
	if err != nil {
		t.Skip("systemd-socket-activate is not installed; Debian has it in systemd")
	}
	b := newBackend(t)
	p := prepare(t, "upstream: "+b.URL+"\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
	data, f := socket(t)
	f.Close() // the port is free again
	admin, f := socket(t)
	f.Close()
	p.cmd = exec.Command(tool, "-l", data, "-l", admin, "--fdname=listen:admin", binary, "serve", "-c", p.config)
	p.cmd.Stderr = &p.stderr
	p.run()
	var got reply
	eventually(t, "an answer", func() bool {
		got = p.do(context.Background(), http.MethodGet, "http://"+data+"/x", "")
		return got.err == nil
	})
	if got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
	p.serving()
	if p.data != "http://"+data || p.admin != "http://"+admin {
		t.Errorf("it serves on %s and %s, want %s and %s", p.data, p.admin, data, admin)
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestUnixSockets: listeners and upstream can be sockets; that of a program that was
// killed is replaced, and one that is in use is not.
func TestUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "sockets")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "data")
	b := newBackend(t)
	config := fmt.Sprintf("listen: unix:%s\nadmin: 127.0.0.1:0\nupstream: %s\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n", path, b.URL)
	begin := func() *program {
		p := prepare(t, "")
		if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		p.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}
		t.Cleanup(p.client.CloseIdleConnections)
		p.run()
		return p
	}
	first := begin()
	first.logged(`"msg":"serving"`)
	second := begin()
	if code := second.exit(); code != 2 || !strings.Contains(second.stderr.String(), "another program listens there") {
		t.Errorf("exit code %d, want 2: %s", code, second.stderr.String())
	}
	first.signal(syscall.SIGKILL)
	first.exit()
	third := begin()
	third.logged(`"msg":"serving"`)
	if got := third.do(t.Context(), http.MethodGet, "http://x/x", ""); got.status != http.StatusOK {
		t.Errorf("%+v", got)
	}
}

// TestStatus: 0 with room, 3 when a gate is full, closed or draining, 1 when nobody
// answers.
func TestStatus(t *testing.T) {
	b := newBackend(t)
	p := start(t, "upstream: "+b.URL+"\ngates: {a: {max_in_flight: 1}}\nroutes: [{match: /, gate: a}]\n")
	status := func(want int, words ...string) {
		t.Helper()
		cmd := exec.Command(binary, "status", "--admin", strings.TrimPrefix(p.admin, "http://"))
		out, _ := cmd.CombinedOutput() // the exit code is looked at
		if code := cmd.ProcessState.ExitCode(); code != want || !hasAll(string(out), words) {
			t.Errorf("exit code %d, want %d, and %q:\n%s", code, want, words, out)
		}
	}
	status(0, "gate", "in flight", "limit")
	c := p.call(1, "/hold")
	p.gateIs("a", 1, 0)
	status(3)
	b.free(t, 1)
	c.all(1)
	p.gateIs("a", 0, 0) // a moment after the reply
	status(0)
	p.ask("PUT", "/gates/a/max_in_flight", `{"max_in_flight":"closed"}`)
	status(3, "closed")
	p.ask("DELETE", "/gates/a/max_in_flight", "")
	p.ask("POST", "/drain", "")
	status(3, "draining")
	p.signal(syscall.SIGTERM)
	p.exit()
	status(1, "forebay: error:", "forebay: hint:")
}
