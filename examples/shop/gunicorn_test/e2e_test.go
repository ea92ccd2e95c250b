// Package gunicorn_test puts the real program before a real gunicorn, with the
// application and the configuration of examples/gunicorn.
package gunicorn_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/forebay/examples/shop/burst"
)

const (
	example = "../../gunicorn"
	runs    = 3
	workers = "4" // as in the README of the example
)

// TestGunicorn sends the same burst three times to four sync workers and three
// times through Forebay. Without it most of the cheap pages miss a deadline of one
// second, because all workers are busy with reports; with it none does.
func TestGunicorn(t *testing.T) {
	forebay := os.Getenv("FOREBAY_BIN")
	switch {
	case testing.Short():
		t.Skip("takes most of a minute; run it without -short")
	case forebay == "":
		t.Skip("FOREBAY_BIN is empty; set it to the absolute path of the forebay program")
	}
	gunicorn, err := exec.LookPath("gunicorn")
	if err != nil {
		t.Skip("gunicorn is not installed; on Debian: apt-get install gunicorn")
	}
	for seed := range uint64(runs) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			// Each way has a gunicorn of its own, which ends with the subtest: the
			// backlog of the one is no load for the other.
			var bare, gated burst.Result
			t.Run("without", func(t *testing.T) { bare = send(t, start(t, gunicorn), seed) })
			t.Run("with", func(t *testing.T) { gated = send(t, protect(t, forebay, start(t, gunicorn)), seed) })
			if !t.Failed() {
				show(t, bare, gated)
				check(t, bare, gated)
			}
		})
	}
}

// check fails if the gap closes.
func check(t *testing.T, bare, gated burst.Result) {
	t.Helper()
	if o := bare.Class("pages"); o.InTime*2 >= o.Arrived() {
		t.Errorf("without Forebay: %d of %d pages in time; the burst should make most of them fail", o.InTime, o.Arrived())
	}
	o := gated.Class("pages")
	if o.InTime != o.Arrived() {
		t.Errorf("with Forebay: %d of %d pages in time; all should be (late %d, refused %d, failed %d: %s)",
			o.InTime, o.Arrived(), o.Late, o.Refused, o.Failed, o.Failure)
	}
	r := gated.Class("reports")
	if r.InTime == 0 || r.Refused == 0 || r.Late+r.Failed+r.Unsent > 0 {
		t.Errorf("with Forebay: reports %+v; each should be answered in time or refused, and some of both", r)
	}
}

// send sends the burst: reports for three times what four workers can do, and a
// few pages that cost nothing.
func send(t *testing.T, url string, seed uint64) burst.Result {
	t.Helper()
	get := func(path string) func(*rand.Rand) burst.Request {
		return func(*rand.Rand) burst.Request { return burst.Request{Path: path} }
	}
	result, err := burst.Run(t.Context(), burst.Plan{
		URL: url, Seed: seed, Duration: 5 * time.Second, Deadline: time.Second,
		Classes: []burst.Class{
			{Name: "pages", Rate: 20, Next: get("/")},
			{Name: "reports", Rate: 12, Next: get("/report"), Deadline: 5 * time.Second},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func show(t *testing.T, bare, gated burst.Result) {
	t.Helper()
	var b strings.Builder
	if err := burst.Table(&b, burst.Column{Title: "without", Result: bare}, burst.Column{Title: "with Forebay", Result: gated}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
}

// start runs gunicorn with the example's application and returns its URL once it
// answers. The socket is opened here and handed over, so that no other process can
// take the port in between.
func start(t *testing.T, gunicorn string) (url string) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	cmd := exec.Command(gunicorn, "--workers", workers, "--bind", "fd://3", "--graceful-timeout", "1", "--log-level", "warning", "app:app")
	cmd.Dir = example
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	cmd.ExtraFiles = []*os.File{socket} // descriptor 3
	keep(t, cmd)
	url = "http://" + l.Addr().String()
	untilAnswered(t, url)
	return url
}

// protect runs Forebay with the example's configuration, moved to free ports.
func protect(t *testing.T, forebay, upstream string) (url string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, "forebay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	config := string(text)
	for from, to := range map[string]string{
		"listen: 127.0.0.1:8080":          "listen: " + listen,
		"admin: 127.0.0.1:8081":           "admin: " + freeAddress(t),
		"upstream: http://127.0.0.1:8000": "upstream: " + upstream,
	} {
		if strings.Count(config, from) != 1 {
			t.Fatalf("forebay.yaml has %q %d times; this test moves it once", from, strings.Count(config, from))
		}
		config = strings.Replace(config, from, to, 1)
	}
	file := filepath.Join(t.TempDir(), "forebay.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	keep(t, exec.Command(forebay, "serve", "-c", file))
	url = "http://" + listen
	untilAnswered(t, url)
	return url
}

// keep runs a command until the test is over, and then ends it as an operator would.
func keep(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(15 * time.Second):
			_ = cmd.Process.Kill()
			t.Errorf("%s did not end within 15 s of an interrupt", filepath.Base(cmd.Path))
			<-ended
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), out.String())
		}
	})
}

// untilAnswered waits until the health page is there.
func untilAnswered(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	last := fmt.Errorf("not asked")
	for begin := time.Now(); time.Since(begin) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		answer, err := client.Get(url + "/health")
		if last = err; err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
		last = fmt.Errorf("status %d", answer.StatusCode)
	}
	t.Fatalf("%s does not answer: %v", url, last)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
