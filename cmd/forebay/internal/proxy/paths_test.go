package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/forebay"
)

// secret is what only the gated route has.
const secret = "THE REPORTS"

// reportsNginx runs a real nginx that has the reports below /reports, in any case, and
// says of everything what was asked for. It listens on a unix socket, so that no port is
// taken. Empty: there is no nginx.
func reportsNginx(t testing.TB) (upstream string) {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx = "/usr/sbin/nginx"; !isFile(nginx) {
			return ""
		}
	}
	dir, err := os.MkdirTemp("", "paths")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, `%s
daemon off;
master_process off;
pid %[2]s/pid;
error_log /dev/null crit;
events {}
http {
    access_log off;
    client_body_temp_path %[2]s;
    proxy_temp_path %[2]s;
    fastcgi_temp_path %[2]s;
    uwsgi_temp_path %[2]s;
    scgi_temp_path %[2]s;
    default_type text/plain;
    server {
        listen unix:%[3]s;
        add_header X-Asked-For $request_uri always;
        location ~* ^/reports(/|$) { return 200 %[4]q; }
        location / { return 200 "other"; }
    }
}
`, user, dir, socket, secret), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", file, "-e", "/dev/null")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has nothing to finish
		_ = cmd.Wait()
	})
	eventually(t, "nginx answers", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "unix:" + socket
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// reportsGo is an upstream of Go's that is as generous: it decodes and cleans what was
// asked for, and minds no case.
func reportsGo(t testing.TB) (upstream string) {
	return backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Asked-For"] = []string{r.RequestURI}
		clean := strings.ToLower(path.Clean("/" + r.URL.Path))
		if clean == "/reports" || strings.HasPrefix(clean, "/reports/") {
			_, _ = io.WriteString(w, secret)
			return
		}
		_, _ = io.WriteString(w, "other")
	})
}

// FuzzPaths: no spelling of a path gets to the reports past their gate, which is closed,
// whoever reads it, and every path that an upstream is asked for is the one that the
// client wrote, byte for byte.
func FuzzPaths(f *testing.F) {
	for _, target := range []string{
		"/reports/x", "/reports", "/Reports/x", "//reports/x", "/./reports/", "/x/../reports/x", "/x/%2e%2e/reports/x", "/%72eports/x",
		"/reports%2Fx", "/reports%2fx", `/\reports/x`, "/x/..%2freports/x", "/%2e/reports", "/x/..;/reports/x", "/reports;a=b/x", "/..//reports/./x",
		"http://h/reports/x", "http://h//reports/x", "/reports?x", "/reports#x", "/%252e%252e/reports/x", "/x/%5c..%5creports/x",
		"/free/%2F/y", "/free/https%3A%2F%2Fh%2F", "/free/a%20b", "/free/%E2%82%AC", "/free?a=1;b=2", "/free/\xff", "/free/%", "/free/a|b{}^`", "*",
	} {
		f.Add(target)
	}
	closed, err := forebay.New(forebay.Config{Name: "reports", MaxInFlight: 1})
	if err != nil {
		f.Fatal(err)
	}
	if err := closed.SetLimit(0); err != nil {
		f.Fatal(err)
	}
	groups, err := forebay.NewGroups(forebay.GroupsConfig{Routes: []forebay.Route{
		{Match: "/reports/", Gates: []*forebay.Gate{closed}}, {Match: "/reports", Gates: []*forebay.Gate{closed}}, {Match: "/", Exempt: true},
	}})
	if err != nil {
		f.Fatal(err)
	}
	fronts := map[string]*rig{}
	for name, upstream := range map[string]string{"nginx": reportsNginx(f), "Go": reportsGo(f)} {
		if upstream == "" {
			f.Log("there is no nginx (apt-get install nginx-light); only Go's upstream is asked")
			continue
		}
		fronts[name] = inFront(f, upstream, func(c *Config) { c.Done = nil }, groups.Wrap)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, "\r\n") || len(target) > 4096 {
			t.Skip() // it would be another request
		}
		for name, g := range fronts {
			head, body := askFor(t, g.addr, target)
			if strings.Contains(body, secret) {
				t.Fatalf("%s: %q got past the gate", name, target)
			}
			asked := field(head, "X-Asked-For")
			if asked == "" || strings.ContainsRune(target, '#') || !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") {
				continue // the exceptions that doc.go names
			}
			if asked != target {
				t.Errorf("%s: the client asked for %q, and the upstream was for %q", name, target, asked)
			}
		}
	})
}

// askFor sends a target as it is and returns the answer's head and body.
func askFor(t testing.TB, addr, target string) (head, body string) {
	t.Helper()
	c, err := guarded(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	all, _ := io.ReadAll(bufio.NewReader(c))
	head, body, _ = strings.Cut(string(all), "\r\n\r\n")
	return head, body
}
