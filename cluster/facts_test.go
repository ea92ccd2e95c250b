package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/forebay/cluster"
)

// facts are what the ledger learns of its server, as a test wants it.
type facts struct {
	wall       time.Duration // since 1970
	identity   string
	uptime     time.Duration // below 0: not known
	subscribed []string      // instances
	blind      bool          // who is subscribed is not known
}

func (f facts) server(key string) cluster.Server {
	s := cluster.Server{Wall: time.Unix(0, 0).Add(f.wall), Identity: f.identity, Uptime: f.uptime}
	if !f.blind {
		s.Subscribers = func(channel string) int {
			if channel == key {
				return len(f.subscribed)
			}
			_, name, _ := strings.Cut(channel, key+":")
			if slices.Contains(f.subscribed, name) {
				return 1
			}
			return 0
		}
	}
	return s
}

// String returns the facts as the script takes them in place of the server's.
func (f facts) String() string {
	subscribed := strings.Join(f.subscribed, " ")
	if f.blind {
		subscribed = "?"
	}
	return fmt.Sprintf("%d|%s|%d|%s", f.wall.Milliseconds(), f.identity, max(-1, f.uptime.Milliseconds()), subscribed)
}
