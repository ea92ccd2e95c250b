package forebay

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// What is known of servers and connections ends with them.
func TestStoppingForgets(t *testing.T) {
	in, err := NewIntake(IntakeConfig{})
	must(err)
	g := httpGate(t, Config{MaxInFlight: 1, Intake: in})
	occupy(t, g)
	func() {
		srv, _ := listen(t, 1, g.Wrap(http.NotFoundHandler()))
		for range 3 {
			r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, strings.NewReader("body"))
			must(err)
			fetch(t, srv, r)
		}
		stop := in.servers.of(srv.Config)
		waitUntil(t, "no connection is kept in mind", func() bool {
			stop.mu.Lock()
			defer stop.mu.Unlock()
			return len(stop.rests) == 0
		})
	}()
	for range 10 { // servers that nobody stops, as the one above is only when the test ends
		in.servers.of(&http.Server{})
	}
	waitUntil(t, "the servers are forgotten", func() bool {
		runtime.GC()
		in.servers.mu.Lock()
		defer in.servers.mu.Unlock()
		return len(in.servers.servers) == 1
	})
}
