package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/forebay/cmd/forebay/internal/config"
)

// wellFilled is the share of a pool, in percent, that gates may take: logins, jobs and
// whoever goes past the gate need the rest.
const wellFilled = 80

// poolSizes: the gates that share a pool must fit into it together.
func (c *checker) poolSizes() {
	for _, pool := range slices.Sorted(maps.Keys(c.Pools)) {
		size, sum := c.Pools[pool], 0
		var parts []string
		for _, g := range c.Gates {
			if g.Pool != pool || g.Closed {
				continue
			}
			sum += g.MaxInFlight
			parts = append(parts, fmt.Sprintf("%s %d", g.Name, g.MaxInFlight))
		}
		key := "pools." + pool
		text := fmt.Sprintf("%s = %d of %d in pool %s", strings.Join(parts, " + "), sum, size, pool)
		switch {
		case !slices.ContainsFunc(c.Gates, func(g config.Gate) bool { return g.Pool == pool }):
			c.find(Warning, "pool_unused", key, "no gate takes from pool %s; give gates pool: %s, or take it out", pool, pool)
		case len(parts) == 0:
		case sum > size:
			c.find(Error, "pool_size", key, "%s: calls queue inside the backend, where nobody sees them; lower the limits to %d together", text, max(1, size*wellFilled/100))
		case sum*100 > size*wellFilled:
			c.find(Warning, "pool_size", key, "%s is more than %d %%: nothing is left for what passes no gate; lower the limits to %d together", text, wellFilled, max(1, size*wellFilled/100))
		default:
			c.find(OK, "pool_size", key, "%s, at most %d %%", text, wellFilled)
		}
	}
}

// poolUnknown: a limit that nothing is known about may be too high.
func (c *checker) poolUnknown() {
	var without []string
	for _, g := range c.Gates {
		if g.Pool == "" && !g.Closed {
			without = append(without, fmt.Sprintf("%s %d", g.Name, g.MaxInFlight))
		}
	}
	if len(without) > 0 {
		c.find(Unknown, "pool_unknown", "pools", "whether the backend carries %s is not written here; declare what it has under pools, and what the gates take with pool", strings.Join(without, " + "))
	}
}

// unused: a gate without a route limits nothing.
func (c *checker) unused() {
	for _, g := range c.Gates {
		routed := slices.ContainsFunc(c.Routes, func(r config.Route) bool { return slices.Contains(r.Gates, g.Name) })
		if !routed && !c.takesStreams(g.Name) {
			c.find(Warning, "gate_unused", "gates."+g.Name, "no route leads to gate %s, so it limits nothing; add a route, or take it out", g.Name)
		}
	}
}
