//go:build linux

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestOP04ThreeHundredSilentConnections: a program with 256 descriptors goes on, on both
// ports, and does not spin.
func TestOP04ThreeHundredSilentConnections(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	b := newBackend(t)
	p := prepare(t, "timeouts: {read_header: 10m}\ngates: {a: {max_in_flight: 20}}\nroutes: [{match: /, gate: a}]\nupstream: "+b.URL+"\n")
	p.cmd = exec.Command(shell, "-c", `ulimit -n 256; exec "$0" serve -c "$1"`, binary, p.config)
	p.cmd.Stderr = &p.stderr
	p.run()
	p.serving()
	for range 300 {
		conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	before := p.processorTicks()
	for i := range 20 {
		eventually(t, "one of them is not new any more, and goes", func() bool {
			conn, err := guarded(context.Background(), "tcp", strings.TrimPrefix(p.data, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", i)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || res.StatusCode != http.StatusOK {
				conn.Close()
				return false
			}
			_, _ = io.Copy(io.Discard, res.Body)
			t.Cleanup(func() { conn.Close() })
			return true
		})
		if got := p.ask("GET", "/health", ""); got.status != 200 {
			t.Errorf("health: %+v", got)
		}
	}
	if n := p.metrics()["forebay_connections"]; n < 20 || n > 78 {
		t.Errorf("%v connections are open, want at most 78 of 256 descriptors", n)
	}
	if ticks := p.processorTicks() - before; ticks > 100 { // of 10 ms each
		t.Errorf("it used %d ticks of the processor for 40 requests", ticks)
	}
	p.logged(`"msg":"serving"`)
	if text := p.stderr.String(); strings.Contains(text, "too many open files") {
		t.Error("it ran out of descriptors")
	}
}

// processorTicks returns how much of a processor the program has used.
func (p *program) processorTicks() int {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}
