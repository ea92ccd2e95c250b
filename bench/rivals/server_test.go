package rivals

import (
	"net"
	"os/exec"
	"testing"
)

// startServer starts a Redis server for the test.
func startServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	l.Close()
	cmd := exec.Command("redis-server", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := cmd.Start(); err != nil {
		t.Skip("no redis-server: ", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return address
		}
	}
}
