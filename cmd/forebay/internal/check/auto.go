package check

import (
	"fmt"

	"example.com/forebay/cmd/forebay/internal/config"
)

// limitText is a gate's limit in a sum.
func limitText(g *config.Gate) string {
	if g.Auto != nil {
		return fmt.Sprintf("%s up to %d", g.Name, g.Auto.Max)
	}
	return fmt.Sprintf("%s %d", g.Name, g.MaxInFlight)
}

// autos: a limit that finds itself goes by the deadline, which has to fit what else is
// known about time.
func (c *checker) autos() {
	for _, g := range c.Gates {
		if g.Auto == nil {
			continue
		}
		key := gateKey(g.Name, "max_in_flight.auto.deadline")
		if c.At(key).Line == 0 {
			key = gateKey(g.Name, "max_in_flight")
		}
		switch d := g.Auto.Deadline; {
		case c.FrontTimeout > 0 && d >= c.FrontTimeout:
			c.find(Warning, "auto_deadline", key, "deadline %v of gate %s is not below front_timeout %v: answers that late are for nobody; write how long callers really want to wait, such as 1s", d, g.Name, c.FrontTimeout)
		case d >= c.Timeouts.UpstreamResponse:
			c.find(Warning, "auto_deadline", key, "deadline %v of gate %s is not below timeouts.upstream_response %v: what takes so long is answered 504; write how long callers really want to wait, such as 1s", d, g.Name, c.Timeouts.UpstreamResponse)
		case g.MaxWait >= d:
			c.find(Warning, "auto_wait", gateKey(g.Name, "max_wait"), "max_wait %v of gate %s is not below the deadline %v by which its limit goes: whoever waits to the end has no time left; write %v", g.MaxWait, g.Name, d, d/10)
		}
	}
}

// poolSize says whether the gates of a pool fit into it.
func (c *checker) poolSize(key, text, pool string, sum int, finds bool) {
	size := c.Pools[pool]
	room := max(1, size*wellFilled/100)
	lower := fmt.Sprintf("lower the limits to %d together", room)
	if finds {
		lower = fmt.Sprintf("give max_in_flight.auto a max, of %d together", room)
	}
	switch {
	case sum > size && finds: // it finds its limit within the pool, but tries what is beyond
		c.find(Warning, "pool_size", key, "%s: what is tried beyond the pool queues inside the backend, where nobody sees it; %s", text, lower)
	case sum > size:
		c.find(Error, "pool_size", key, "%s: calls queue inside the backend, where nobody sees them; %s", text, lower)
	case sum*100 > size*wellFilled:
		c.find(Warning, "pool_size", key, "%s is more than %d %%: nothing is left for what passes no gate; %s", text, wellFilled, lower)
	default:
		c.find(OK, "pool_size", key, "%s, at most %d %%", text, wellFilled)
	}
}
