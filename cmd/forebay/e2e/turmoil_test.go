//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/forebay/forebaytest/redistest"
)

var rounds = flag.Int("rounds", 1, "how often TestClusterInTurmoil goes through its faults")

const turmoil = `
upstream: %s
cluster: {redis: %s, lease: %v, when_store_is_away: closed, gates: [a]}
gates: {a: {max_in_flight: 5, max_wait: 10m, max_waiting: 1000}, other: {max_in_flight: %d}}
routes: [{match: /, gate: a}, {match: /other, gate: other}]
`

// turmoilLease is as short as a busy machine lets it be: for 1.6 of them and a second the
// slots of a program that was killed are missing.
const turmoilLease = time.Second

// trio is three programs with one limit, under load, and with limits and configurations that
// change all the time.
type trio struct {
	*testing.T
	redis    *redistest.Server
	backend  *backend
	programs [3]atomic.Pointer[program]
	killed   sync.Map // of *program to nothing
	served   atomic.Int64
	stop     chan struct{}
	all      sync.WaitGroup
}

func newTrio(t *testing.T) *trio {
	c := &trio{T: t, redis: redistest.Start(t, redistest.Config{}), backend: newBackend(t), stop: make(chan struct{})}
	c.backend.seen = func(*http.Request) { time.Sleep(time.Millisecond) } // some work, so that calls overlap
	c.backend.allowed.Store(5)
	for i := range c.programs {
		c.programs[i].Store(start(t, c.config(1)))
	}
	return c
}

func (c *trio) config(other int) string {
	return fmt.Sprintf(turmoil, c.backend.URL, c.redis.URL(), turmoilLease, other)
}

// until does something again and again until the faults are over.
func (c *trio) until(do func(n int)) {
	c.all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-c.stop:
				return
			default:
				do(n)
			}
		}
	})
}

// load asks each program, from so many clients. An answer is the upstream's or a refusal; only
// of a program that was killed there is none.
func (c *trio) load(clients int) {
	for i := range clients {
		c.until(func(int) {
			p := c.programs[i%len(c.programs)].Load()
			got := p.get("/x")
			switch {
			case got.status == http.StatusOK && got.body == "fine\n":
				c.served.Add(1)
			case got.status == http.StatusServiceUnavailable:
				time.Sleep(time.Millisecond) // as one does who is told to come back
			default:
				if _, killed := c.killed.Load(p); !killed {
					c.Errorf("answered %d %q, %v", got.status, got.body, got.err)
				}
			}
		})
	}
}

// change moves the limit of the cluster, down and back, and reloads. That the store may be away
// meanwhile, or the program, is no fault.
func (c *trio) change() {
	c.until(func(n int) {
		p := c.programs[n%len(c.programs)].Load()
		switch n % 4 {
		case 0:
			p.do(context.Background(), "PUT", p.admin+"/gates/a/max_in_flight", `{"max_in_flight":3}`, "Content-Type", "application/json")
		case 2:
			p.do(context.Background(), "DELETE", p.admin+"/gates/a/max_in_flight", "")
		default:
			p.write(c.config(2 + n%7))
			p.do(context.Background(), "POST", p.admin+"/reload", "")
		}
	})
}

// serves waits until so many more have been served: whatever is wrong, some are.
func (c *trio) serves(n int64) {
	c.Helper()
	from := c.served.Load()
	eventually(c, "some are served", func() bool { return c.served.Load() >= from+n })
}

// tell has Redis do something.
func (c *trio) tell(args ...string) {
	out, err := exec.Command("redis-cli", append([]string{"-u", c.redis.URL()}, args...)...).CombinedOutput()
	if err != nil || strings.HasPrefix(string(out), "ERR") {
		c.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// freeze stops a program for a moment. What it may do when it wakes is promised as long as its
// lease was not over meanwhile; else, as the page of clusters says, what it held comes on top.
func (c *trio) freeze(p *program) {
	began := time.Now()
	p.signal(syscall.SIGSTOP)
	c.serves(20)
	if time.Since(began) > turmoilLease/2 {
		c.backend.allowed.Store(10)
		defer func() {
			c.serves(100)
			c.backend.allowed.Store(5)
		}()
	}
	p.signal(syscall.SIGCONT)
}

// kill ends a program as the kernel does, and starts another in its stead.
func (c *trio) kill(i int) {
	p := c.programs[i].Load()
	c.killed.Store(p, nil)
	p.signal(syscall.SIGKILL)
	c.serves(20)
	c.programs[i].Store(start(c, c.config(1)))
	c.serves(20)
}

// TestClusterInTurmoil: three programs with one limit and one Redis, whose limit moves and whose
// configuration is read again all the time, while Redis forgets everything in a loop, cuts off
// everybody in a loop, and programs are frozen and killed. The upstream never sees more than
// the limit, some are always served, nobody waits for ever, and in the end all slots are there.
func TestClusterInTurmoil(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Skip("there is no redis-cli")
	}
	c := newTrio(t)
	c.load(24)
	c.change()
	for range *rounds {
		for range 10 {
			c.tell("FLUSHALL")
			c.serves(10)
		}
		for range 10 {
			c.tell("CLIENT", "KILL", "TYPE", "normal")
			c.tell("CLIENT", "KILL", "TYPE", "pubsub")
			c.serves(10)
		}
		for i := range c.programs {
			c.freeze(c.programs[i].Load())
		}
		c.kill(rand.IntN(len(c.programs)))
	}
	close(c.stop)
	c.all.Wait() // whoever waited has his answer
	for i := range c.programs {
		p := c.programs[i].Load() // which may know of no limit but its own
		p.do(t.Context(), "DELETE", p.admin+"/gates/a/max_in_flight", "")
	}
	for i := range c.programs {
		p := c.programs[i].Load()
		p.gateIs("a", 0, 0)
		p.fullSet(c.backend, "a", 5)()
	}
	if n := c.backend.tooMany.Load(); n > 0 {
		t.Errorf("%d times more ran than may, at most %d at once", n, c.backend.most.Load())
	}
	if most := c.backend.most.Load(); most < 5 {
		t.Errorf("at most %d ran at once; the test has no load", most)
	}
	for i := range c.programs {
		if st := c.programs[i].Load().stats("a"); st.Granted != st.Released || st.StaleReleases != 0 {
			t.Errorf("granted %d, released %d, stale %d", st.Granted, st.Released, st.StaleReleases)
		}
	}
}
