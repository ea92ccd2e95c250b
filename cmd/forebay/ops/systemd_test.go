//go:build linux

package ops_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const installedAt = "/usr/local/bin/forebay" // in the units

// systemd-analyze finds nothing to say about the units, and thinks well of the sandbox.
func TestUnits(t *testing.T) {
	analyze := need(t, "systemd-analyze", "systemd")
	units, err := filepath.Glob(filepath.Join(repository, "deploy", "systemd", "*"))
	if err != nil || len(units) != 3 {
		t.Fatalf("%v, %v; want the service and its two sockets", units, err)
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for _, u := range units {
		text := readFile(t, "deploy", "systemd", filepath.Base(u))
		copied := filepath.Join(dir, filepath.Base(u))
		writeFile(t, copied, strings.ReplaceAll(text, installedAt, program)) // it must exist
		args = append(args, copied)
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", filepath.Join(dir, "forebay.service")).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: exposure above 2.0: %v\n%s", err, out)
	}
}

// What the unit says agrees with the program.
func TestUnitAgreesWithProgram(t *testing.T) {
	unit := readFile(t, "deploy", "systemd", "forebay.service")
	value := func(key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			t.Fatalf("forebay.service has no %s", key)
		}
		return m[1]
	}
	const drainTimeout, lastLines = 30 * time.Second, 6 * time.Second // the default; what handlers and the log get
	if d, err := time.ParseDuration(value("TimeoutStopSec")); err != nil || d <= drainTimeout+lastLines {
		t.Errorf("TimeoutStopSec is %v; it must be above drain_timeout", d)
	}
	if value("RestartPreventExitStatus") != "2" {
		t.Error("a wrong configuration, exit code 2, must not be tried again and again")
	}
	help, err := exec.Command(program, "serve", "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(help), "-c, --config=") {
		t.Errorf("forebay serve --help: %v; ExecStart uses -c", err)
	}
	for name, port := range map[string]string{"forebay.socket": "8080", "forebay-admin.socket": "8081"} {
		if !strings.Contains(readFile(t, "deploy", "systemd", name), "ListenStream=127.0.0.1:"+port+"\n") {
			t.Errorf("%s does not listen where forebay.yaml does by default", name)
		}
	}
}

// A service manager is told when requests are answered, when a reload begins and ends,
// and when the end begins.
func TestNotify(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	dir := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	told := func(want string) string {
		t.Helper()
		text := make([]byte, 4096)
		_ = manager.SetReadDeadline(time.Now().Add(patience))
		n, err := manager.Read(text)
		if err != nil || !strings.HasPrefix(string(text[:n]), want) {
			t.Fatalf("told %q, %v; want %s", text[:n], err, want)
		}
		return string(text[:n])
	}
	file := filepath.Join(dir, "forebay.yaml")
	writeFile(t, file, behindProxy(t, upstream.URL))
	cmd := exec.Command(program, "serve", "-c", file)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	f := serving(t, cmd)
	told("READY=1")
	_ = cmd.Process.Signal(syscall.SIGHUP) // ExecReload
	if state := told("RELOADING=1"); !regexp.MustCompile(`\nMONOTONIC_USEC=\d+`).MatchString(state) {
		t.Errorf("%q has no MONOTONIC_USEC, which Type=notify-reload needs", state)
	}
	told("READY=1")
	writeFile(t, file, "gates: none\n")
	told("RELOADING=1")
	told("READY=1") // a failed reload is not a failed service
	if a := get(t, "http://"+f.listen+"/"); a.status != http.StatusNotFound {
		t.Errorf("after a failed reload: status %d", a.status)
	}
	f.stop(t)
	told("STOPPING=1")
	if f.err != nil {
		t.Errorf("after SIGTERM: %v", f.err)
	}
}

// ExecReload fails for a file that serve would refuse.
func TestReloadCommandChecks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	writeFile(t, file, "gates: none\n")
	unit := readFile(t, "deploy", "systemd", "forebay.service")
	check := regexp.MustCompile(`(?m)^ExecReload=(.*forebay.*)$`).FindStringSubmatch(unit)
	if check == nil {
		t.Fatal("forebay.service does not check before it reloads")
	}
	args := strings.Fields(replace(t, replace(t, check[1], installedAt, program), "/etc/forebay/forebay.yaml", file))
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "forebay.yaml:1:") {
		t.Errorf("%v: %v, %s; want it to fail and to say where", args[1:], err, out)
	}
}

// systemd's own tool hands over the sockets under the names of the socket units. They
// win over listen and admin of the file, which nobody opens then.
func TestSocketActivation(t *testing.T) {
	activate := need(t, "systemd-socket-activate", "systemd")
	var names []string
	for _, unit := range []string{"forebay.socket", "forebay-admin.socket"} {
		m := regexp.MustCompile(`(?m)^FileDescriptorName=(.*)$`).FindStringSubmatch(readFile(t, "deploy", "systemd", unit))
		if m == nil {
			t.Fatalf("%s has no FileDescriptorName", unit)
		}
		names = append(names, m[1])
	}
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "forebay.yaml")
	writeFile(t, file, behindProxy(t, upstream.URL))
	// Sockets with a path: unlike a port, it is certain to be free.
	listen, admin := filepath.Join(dir, "listen.sock"), filepath.Join(dir, "admin.sock")
	p := start(t, exec.Command(activate, "--fdname="+strings.Join(names, ":"), "-l", listen, "-l", admin, program, "serve", "-c", file))
	until(t, "systemd-socket-activate listens", func() bool {
		return slices.ContainsFunc(p.said(), func(l string) bool { return strings.HasPrefix(l, "Listening on "+admin) })
	})
	ask := func(socket, path string) int {
		t.Helper()
		client := &http.Client{Timeout: patience, Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       (&unixDialer{socket}).dial,
		}}
		res, err := client.Get("http://localhost" + path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	// The first request comes before the program runs, and waits for it.
	if status := ask(listen, "/"); status != http.StatusNotFound {
		t.Errorf("requests: status %d, want the upstream's 404", status)
	}
	if status := ask(admin, "/ready"); status != http.StatusOK {
		t.Errorf("/ready on the admin socket: status %d", status)
	}
	line := p.logged(t, "serving", func(l map[string]any) bool { return l["msg"] == "serving" })
	if line["listen"] != listen || line["admin"] != admin {
		t.Errorf("serving on %v and %v; want the sockets it was given", line["listen"], line["admin"])
	}
}

// A socket of systemd stays open while one process ends and the next begins: who comes
// in between is answered by the next.
func TestSocketOutlivesRestart(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	writeFile(t, file, behindProxy(t, upstream.URL))
	socket, address := bound(t)
	begin := func() *forebay {
		t.Helper()
		// LISTEN_PID is the id that the shell has, and keeps when it becomes the program.
		cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=listen exec "$1" serve -c "$2"`, "sh", program, file)
		cmd.ExtraFiles = []*os.File{socket}
		return serving(t, cmd)
	}
	first := begin()
	if first.listen != address {
		t.Fatalf("serving on %s, not on the socket it was given, %s", first.listen, address)
	}
	first.stop(t)
	between := make(chan error, 1)
	status := 0
	connected := make(chan struct{})
	go func() {
		c, err := net.Dial("tcp", address)
		close(connected)
		if err == nil {
			defer c.Close()
			if _, err = c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err == nil {
				var res *http.Response
				if res, err = http.ReadResponse(bufio.NewReader(c), nil); err == nil {
					status = res.StatusCode
					res.Body.Close()
				}
			}
		}
		between <- err
	}()
	<-connected
	begin()
	select {
	case err := <-between:
		if err != nil || status != http.StatusNotFound {
			t.Errorf("who came between two processes got status %d, %v; want the upstream's 404", status, err)
		}
	case <-time.After(patience):
		t.Error("who came between two processes was not answered")
	}
}
