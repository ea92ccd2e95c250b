//go:build unix

package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
)

// TestReaderOfTheLogGoesAway: whoever reads standard error ends, as a log collector that
// crashes does. That costs lines, and nothing else.
func TestReaderOfTheLogGoesAway(t *testing.T) {
	cmd := exec.Command(binary, "serve", "--upstream", "http://127.0.0.1:1",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--max-in-flight", "1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	first, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	listen := field(first, "listen")
	if err := stderr.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 { // each makes a line: nobody is upstream
		res, err := http.Get(fmt.Sprintf("http://%s/", listen))
		if err != nil {
			t.Fatalf("the program has gone with its reader: %v", err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusBadGateway {
			t.Errorf("status %d, want 502", res.StatusCode)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v, want 0", err)
	}
}
