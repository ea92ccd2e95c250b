package redistest

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// host is where every server listens.
const host = "127.0.0.1"

// freePort returns a port that nobody listens on. It is below those that the kernel
// gives to outgoing connections, so that a server that was killed gets its port back.
func freePort(t T) int {
	t.Helper()
	const first, last = 10000, 30000
	for range 1000 {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", address(port))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("redistest: no free port from %d to %d", first, last)
	return 0
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
