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
		size, sum, finds := c.Pools[pool], 0, false
		var parts []string
		for i := range c.Gates {
			g := &c.Gates[i]
			if g.Pool != pool || g.Closed {
				continue
			}
			sum += g.Most()
			finds = finds || g.Auto != nil
			parts = append(parts, limitText(g))
		}
		key := "pools." + pool
		switch {
		case !slices.ContainsFunc(c.Gates, func(g config.Gate) bool { return g.Pool == pool }):
			c.find(Warning, "pool_unused", key, "no gate takes from pool %s; give gates pool: %s, or take it out", pool, pool)
		case len(parts) > 0:
			c.poolSize(key, fmt.Sprintf("%s = %d of %d in pool %s", strings.Join(parts, " + "), sum, size, pool), pool, sum, finds)
		}
	}
}

// poolUnknown: a limit that nothing is known about may be too high.
func (c *checker) poolUnknown() {
	var without []string
	for _, g := range c.Gates {
		if g.Pool == "" && !g.Closed && g.Auto == nil { // that finds out
			without = append(without, limitText(&g))
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
