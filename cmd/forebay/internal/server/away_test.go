package server

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
	"example.com/forebay/forebaytest"
)

// patiences are how long calls of the gates may wait; 0 is those that only ask.
var patiences = map[string]time.Duration{"w0": 0, "w1": time.Millisecond, "w500": 500 * time.Millisecond, "w999": 999 * time.Millisecond}

// askPatience is what a call without patience may wait for the cluster's answer, and
// what every other may wait besides.
const askPatience = 50 * time.Millisecond

// cut is two programs in a bubble whose way to the store is bad, and what became of the
// calls there.
type cut struct {
	*testing.T
	programs [2]*Server
	ways     [2]path

	stop    chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex // guards what follows
	running map[string]int
	most    map[string]int
	decided map[string]map[forebay.Decision]int // by program and gate
	late    []string
}

// newCut makes the programs, with the store away from the start or not.
func newCut(t *testing.T, policy string, away bool) *cut {
	text := "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstream: http://127.0.0.1:1\n" +
		"log: {to: " + filepath.Join(t.TempDir(), "log.json") + ", decisions: off}\n" +
		"cluster: {redis: redis://127.0.0.1, gates: [w0, w1, w500, w999], when_store_is_away: " + policy + "}\ngates:\n"
	if policy == "share" {
		text = strings.Replace(text, "share}", "share, min_share: 1}", 1)
	}
	for name, d := range patiences {
		text += fmt.Sprintf("  %s: {max_in_flight: 4, max_wait: %s}\n", name, d)
	}
	text += "routes: [{match: /, gates: [w0]}]\n"
	cfg, err := config.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c := &cut{T: t, stop: make(chan struct{}), running: map[string]int{}, most: map[string]int{}}
	c.forget()
	l := newLedger()
	for i := range c.programs {
		c.ways[i] = path{l.Path(), l}
		if away {
			c.ways[i].SetFaults(gone)
		}
		c.programs[i], err = New(Options{
			Load:      func() (*config.Config, error) { return cfg, nil },
			OpenStore: func(config.Cluster) (Store, error) { return c.ways[i], nil },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

var gone = forebaytest.Faults{Err: errors.New("connection refused")}

// end stops the calls and the programs.
func (c *cut) end() {
	close(c.stop)
	c.workers.Wait()
	for _, p := range c.programs {
		p.close()
		if err := p.log.Close(); err != nil {
			c.Error(err)
		}
	}
}

// faults puts these in force at both programs.
func (c *cut) faults(f forebaytest.Faults) {
	for _, way := range c.ways {
		way.SetFaults(f)
	}
}

// forget begins to count afresh.
func (c *cut) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided, c.most = map[string]map[forebay.Decision]int{}, map[string]int{}
}

// load has three workers at each program and gate call, again and again: together more
// than the limit of four, and one program alone more than its share.
func (c *cut) load() {
	for i, p := range c.programs {
		for _, g := range p.Gates() {
			for range 3 {
				c.workers.Go(func() {
					for c.goesOn() {
						c.call(i, g)
					}
				})
			}
		}
	}
}

func (c *cut) goesOn() bool {
	select {
	case <-c.stop:
		return false
	case <-time.After(21 * time.Millisecond):
		return true
	}
}

// call makes one call, which holds its slot for 70 ms.
func (c *cut) call(program int, g *forebay.Gate) {
	began := time.Now()
	lease, err := g.Acquire(context.Background(), forebay.Call{})
	waited := time.Since(began)
	decision := forebay.Accepted
	var refused *forebay.RejectedError
	if errors.As(err, &refused) {
		decision = refused.Decision()
	}
	c.mu.Lock()
	key := fmt.Sprint(g.Name(), "@", program)
	if c.decided[key] == nil {
		c.decided[key] = map[forebay.Decision]int{}
	}
	c.decided[key][decision]++
	if waited > patiences[g.Name()]+askPatience {
		c.late = append(c.late, fmt.Sprintf("%s: %v after %v", key, decision, waited))
	}
	if err == nil {
		c.running[g.Name()]++
		c.most[g.Name()] = max(c.most[g.Name()], c.running[g.Name()])
	}
	c.mu.Unlock()
	if err != nil {
		return
	}
	time.Sleep(70 * time.Millisecond)
	c.mu.Lock()
	c.running[g.Name()]--
	c.mu.Unlock()
	lease.Release()
}

// atMost checks how many ran at once over both programs since forget.
func (c *cut) atMost(n int) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for gate, most := range c.most {
		if most > n {
			c.Errorf("%s: %d ran at once, want at most %d", gate, most, n)
		}
	}
}

// only checks that every gate at every program has decided so, since forget, and not
// otherwise. Refusals for want of a slot are as the patience is: busy at once, or a
// timeout, or busy because there is hardly a chance.
func (c *cut) only(decisions ...forebay.Decision) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.decided) != len(patiences)*len(c.programs) {
		c.Errorf("decided was %v", c.decided)
	}
	for key, counts := range c.decided {
		for d := range counts {
			found := false
			for _, want := range decisions {
				found = found || d == want
			}
			if !found {
				c.Errorf("%s: %v", key, counts)
			}
		}
		if counts[decisions[0]] == 0 {
			c.Errorf("%s: nobody was decided %v: %v", key, decisions[0], counts)
		}
	}
}

// says checks health and metrics of both programs: with the store away they are
// degraded and say why, and all gates are in that mode.
func (c *cut) says(mode string) {
	c.Helper()
	for i, p := range c.programs {
		away := mode != "normal"
		rep := p.health.Report()
		for _, g := range rep.Gates {
			if (g.Why != "") != away || away && (g.Status != "degraded" || !strings.Contains(g.Why, "the cluster's store is away")) {
				c.Errorf("program %d, mode %s: health %+v", i, mode, g)
			}
		}
		if away && rep.Status != "degraded" {
			c.Errorf("program %d, mode %s: health is %s", i, mode, rep.Status)
		}
		scrape := httptest.NewRecorder()
		p.metrics.Handler().ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
		for gate := range patiences {
			if want := fmt.Sprintf("forebay_cluster_mode{gate=%q,mode=%q} 1\n", gate, mode); !strings.Contains(scrape.Body.String(), want) {
				c.Errorf("program %d: the scrape lacks %s", i, want)
			}
		}
	}
}

// TestClusterAwayPolicies is acceptance 5 of the cluster: each policy with the store away
// from the start, away in between, slow, and coming and going; decisions, health and
// metrics are as documented, and nobody waits for longer than its patience and 50 ms.
func TestClusterAwayPolicies(t *testing.T) {
	fresh := map[string]int{"share": 2, "closed": 0, "open": 8} // min_share 1 each
	known := map[string]int{"share": 4, "closed": 0, "open": 8}
	slow := forebaytest.Faults{Takes: 200 * time.Millisecond}
	for _, policy := range config.Policies {
		for name, trouble := range map[string]func(c *cut){
			"down at start": func(c *cut) { c.down(policy, fresh[policy], gone) },
			"down midway":   func(c *cut) { c.down(policy, known[policy], gone) },
			"slow":          func(c *cut) { c.down(policy, known[policy], slow) },
			"flapping":      func(c *cut) { c.flaps(policy) },
		} {
			t.Run(policy+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCut(t, policy, name == "down at start")
					c.load()
					if name != "down at start" {
						time.Sleep(3 * time.Second) // they know each other
						c.only(forebay.Accepted, forebay.RejectedBusy, forebay.RejectedTimeout)
						c.atMost(4)
						c.says("normal")
					}
					trouble(c)
					c.back()
					c.end()
					for _, late := range c.late[:min(len(c.late), 5)] {
						t.Error(late)
					}
				})
			})
		}
	}
}

// down has the store away for a while; both programs together let in so many then.
func (c *cut) down(policy string, both int, f forebaytest.Faults) {
	c.Helper()
	c.faults(f)
	time.Sleep(5 * time.Second)
	c.forget()
	time.Sleep(3 * time.Second)
	c.says(policy)
	c.atMost(both)
	if both == 0 {
		c.only(forebay.RejectedStore)
	} else {
		c.only(forebay.Accepted, forebay.RejectedBusy, forebay.RejectedTimeout)
	}
}

// flaps has the store come and go. Only open lets in more than the limit.
func (c *cut) flaps(policy string) {
	c.Helper()
	c.forget()
	for i := range 24 {
		c.faults(map[bool]forebaytest.Faults{true: gone}[i%2 == 0])
		time.Sleep(time.Duration(100+37*(i%11)) * time.Millisecond)
	}
	c.faults(forebaytest.Faults{})
	if policy != "open" {
		c.atMost(4)
	}
}

// back has the store there again: soon everything is as if it had never been away.
func (c *cut) back() {
	c.Helper()
	c.faults(forebaytest.Faults{})
	time.Sleep(6 * time.Second)
	c.forget()
	time.Sleep(3 * time.Second)
	c.says("normal")
	c.atMost(4)
	c.only(forebay.Accepted, forebay.RejectedBusy, forebay.RejectedTimeout)
	for i, p := range c.programs {
		if why := p.Away("w0"); why != "" {
			c.Errorf("program %d is still without the store: %s", i, why)
		}
	}
}
