package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/forebay/cmd/forebay/internal/config"
)

// margin is what the front must have left after the slowest answer: connections are
// made and bytes are sent as well.
const margin = time.Second

// A patience is how long the requests of a route wait in line at most.
type patience struct {
	route *config.Route
	wait  time.Duration
	gate  string // whose max_wait that is; empty: there is no gate
	asks  bool   // for an answer of the cluster, since nobody waits in line
}

// sharesAny tells whether one of the gates has its slots from the cluster.
func sharesAny(c *config.Config, gates []string) bool {
	return slices.ContainsFunc(gates, func(name string) bool {
		g := c.Gate(name)
		return g != nil && g.Terms != nil
	})
}

// patienceOf returns the patience of a chain: the smallest max_wait in it. Where nobody
// waits in line, a call waits for the cluster's answer.
func patienceOf(c *config.Config, r *config.Route) patience {
	p := patience{route: r}
	for _, name := range r.Gates {
		if g := c.Gate(name); g != nil && (p.gate == "" || g.MaxWait < p.wait) {
			p.wait, p.gate = g.MaxWait, name
		}
	}
	if p.gate != "" && p.wait == 0 && sharesAny(c, r.Gates) {
		p.wait, p.asks = askPatience, true
	}
	return p
}

// link names the part of the chain that the line is.
func (p patience) link() string {
	switch {
	case p.gate == "":
		return "no line"
	case p.asks:
		return fmt.Sprintf("the cluster's answer %v (gate %s)", Duration(p.wait), p.gate)
	case len(p.route.Gates) > 1:
		return fmt.Sprintf("gates.%s.max_wait %v (the smallest of %s)", p.gate, Duration(p.wait), strings.Join(p.route.Gates, ", "))
	}
	return fmt.Sprintf("gates.%s.max_wait %v", p.gate, Duration(p.wait))
}

// timeoutChain: whoever stands in front must wait for longer than a request can take
// here, or callers get its 504 instead of our 503 and the work is for nobody.
func (c *checker) timeoutChain() {
	const rule = "timeout_chain"
	longest := patience{}
	for i := range c.Routes {
		r := &c.Routes[i]
		if r.Answer != "" {
			continue
		}
		if p := patienceOf(c.Config, r); longest.route == nil || p.wait > longest.wait {
			longest = p
		}
	}
	if longest.route == nil {
		return
	}
	total := longest.wait + c.Timeouts.UpstreamResponse
	chain := fmt.Sprintf("%s + timeouts.upstream_response %v = %v, route %s", longest.link(), Duration(c.Timeouts.UpstreamResponse), Duration(total), longest.route.Match)
	switch {
	case c.FrontTimeout == 0:
		c.find(Unknown, rule, "front_timeout", "front_timeout is not given; what stands in front must wait for more than %s", chain)
	case c.FrontTimeout <= total:
		c.find(Error, rule, "front_timeout", "front_timeout %v is not above %s: the front gives up first; lower upstream_response, or raise both the front's timeout and front_timeout to at least %v", c.FrontTimeout, chain, total+margin)
	case c.FrontTimeout < total+margin:
		c.find(Warning, rule, "front_timeout", "front_timeout %v is hardly above %s; leave at least %v for the network", c.FrontTimeout, chain, margin)
	default:
		c.find(OK, rule, "front_timeout", "front_timeout %v > %s", c.FrontTimeout, chain)
	}
}

// applicationTimeout: the next link of the chain is in nobody's file that we read.
func (c *checker) applicationTimeout() {
	c.find(Unknown, "application_timeout", "timeouts.upstream_response",
		"timeouts.upstream_response %v should be above the application's own timeout (gunicorn --timeout, max_execution_time), and that above its database's; neither is written here", c.Timeouts.UpstreamResponse)
}

// drain: who began just before SIGTERM should be answered.
func (c *checker) drain() {
	if c.DrainTimeout < c.Timeouts.UpstreamResponse {
		c.find(Warning, "drain_timeout", "drain_timeout", "drain_timeout %v is below timeouts.upstream_response %v: slow answers are cut at every restart; raise it to at least %v",
			c.DrainTimeout, c.Timeouts.UpstreamResponse, c.Timeouts.UpstreamResponse)
	}
}

// waits: a line is for bursts. What waits for seconds is answered to nobody.
func (c *checker) waits() {
	for _, g := range c.Gates {
		key := gateKey(g.Name, "max_wait")
		switch {
		case g.MaxWait == 0:
		case c.FrontTimeout > 0 && g.MaxWait >= c.FrontTimeout:
			c.find(Error, "wait_beyond_timeout", key, "max_wait %v of gate %s is not below front_timeout %v: whoever waits to the end is gone; write 100ms", g.MaxWait, g.Name, c.FrontTimeout)
		case g.MaxWait >= c.Timeouts.UpstreamResponse:
			c.find(Warning, "wait_beyond_timeout", key, "max_wait %v of gate %s is not below timeouts.upstream_response %v: callers would wait in line for longer than for the answer; write 100ms", g.MaxWait, g.Name, c.Timeouts.UpstreamResponse)
		case g.MaxWait >= time.Second:
			c.find(Warning, "wait_long", key, "max_wait %v of gate %s makes refusals late; tens of milliseconds smooth bursts as well", g.MaxWait, g.Name)
		case g.MaxWait < time.Millisecond:
			c.find(Warning, "wait_short", key, "max_wait %v of gate %s is over before a slot can come free; write 0 to refuse at once, or some milliseconds", g.MaxWait, g.Name)
		}
	}
}

// lines: a line of many times the limit cannot be served within any short patience.
func (c *checker) lines() {
	const most = 4
	for _, g := range c.Gates {
		if !g.Closed && g.Auto == nil && g.MaxWaiting > most*g.MaxInFlight {
			c.find(Warning, "line_long", gateKey(g.Name, "max_waiting"), "max_waiting %d of gate %s is more than %d times max_in_flight %d: the line fills with calls that time out; leave it out for %d",
				g.MaxWaiting, g.Name, most, g.MaxInFlight, 2*g.MaxInFlight)
		}
	}
}

// retryAfter: who is told to come back sooner than the line takes comes back into it.
func (c *checker) retryAfter() {
	for _, g := range c.Gates {
		ra, key := g.Refusal.RetryAfter, gateKey(g.Name, "refuse.retry_after")
		most := max(ra.Fixed, ra.Max)
		if most > 0 && most < g.MaxWait {
			c.find(Warning, "retry_after", key, "gate %s sends callers back after at most %v, but its line takes up to %v; raise the one or lower the other", g.Name, most, g.MaxWait)
		}
	}
}
