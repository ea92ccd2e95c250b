package check

import (
	"slices"

	"example.com/forebay/cmd/forebay/internal/config"
)

// lanes: one that no route uses is a misspelt route, mostly; and what decides who waits
// needs somebody who waits, and somebody else.
func (c *checker) lanes() {
	for _, l := range c.Lanes {
		if !slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Lane == l.Name }) {
			c.find(Warning, "lane_unused", "lanes."+l.Name, "no route is of lane %s, so nobody goes by it; give routes lane: %s, or take it out", l.Name, l.Name)
		}
	}
	for i := range c.Gates {
		if g := &c.Gates[i]; len(g.Lanes) > 0 && !g.Closed {
			c.lanesOf(g)
		}
	}
}

func (c *checker) lanesOf(g *config.Gate) {
	reserved := 0
	for _, l := range g.Lanes {
		reserved += l.Reserved
	}
	isOfOne := !slices.ContainsFunc(c.Routes, func(r config.Route) bool {
		return slices.Contains(r.Gates, g.Name) && r.Lane != g.Lanes[0].Name
	})
	switch l := g.Lanes[0]; {
	case isOfOne:
		c.find(Warning, "lane_alone", "gates."+g.Name, "all routes that pass gate %s are of lane %s, which so goes before nobody there; give others lanes of higher rank or none, or send them through one gate", g.Name, l.Name)
	case g.MaxWait == 0 && reserved == 0:
		c.find(Warning, "lane_no_line", "gates."+g.Name, "gate %s has lanes, and no max_wait: nobody waits there, so ranks and shares decide nothing; write max_wait: 100ms, or reserve units for those who go first", g.Name)
	}
	if 2*reserved > g.MaxInFlight {
		c.find(Warning, "lane_reserves_most", "gates."+g.Name, "lanes reserve %d of the %d units of gate %s, which idle while they do not use them; write a share for what may wait for a moment", reserved, g.MaxInFlight, g.Name)
	}
}

// retries: who comes again steps back into another lane.
func (c *checker) retries() {
	if c.Retries != (config.Retries{}) && !slices.ContainsFunc(c.Gates, func(g config.Gate) bool { return len(g.Lanes) > 0 }) {
		c.find(Warning, "retries_unused", "retries", "retries is set, and no gate has lanes: a request that comes again has nowhere to step back to; give routes lanes, or take it out")
	}
}
