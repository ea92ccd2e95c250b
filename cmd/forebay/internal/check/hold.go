package check

import (
	"fmt"
	"slices"

	"example.com/forebay"
	"example.com/forebay/cmd/forebay/internal/config"
)

// heldShort: a slot that is given back while its work goes on counts nothing any more.
func (c *checker) heldShort() {
	for i := range c.Gates {
		g := &c.Gates[i]
		if g.Hold == forebay.HoldFirstByte && g.Pool != "" {
			c.find(Warning, "hold_short", gateKey(g.Name, "hold"),
				"hold is first_byte for gate %s, and pool %s is in use for as long as the backend makes its answer: more than %d may use it at once; write handler, unless the backend has let go of it when its answer begins", g.Name, g.Pool, g.MaxInFlight)
		}
		if g.Streams.Release {
			c.find(Warning, "streams_unbounded", c.streamsKey(g),
				"streams of gate %s give their slot back, and then nothing bounds how many there are: each has two connections, here and in the backend; name a gate that is for them, such as streams: sockets", g.Name)
		}
	}
}

// streamsKey is the key that says where streams have their slot.
func (c *checker) streamsKey(g *config.Gate) string {
	if key := gateKey(g.Name, "streams.slot"); c.At(key) != (config.Pos{}) {
		return key
	}
	return gateKey(g.Name, "streams")
}

// rules are what a gate says of the requests that have passed it, and only the first
// gate of a chain is asked.
type rules struct {
	hold    forebay.Hold
	streams forebay.Streams
	to      string
}

// chainRules: of two gates with rules one is not asked, which is hardly meant.
func (c *checker) chainRules() {
	for i, r := range c.Routes {
		first := ""
		var decides rules
		for _, name := range r.Gates {
			g := c.Gate(name)
			said := rules{g.Hold, g.Streams, g.StreamsGate}
			switch {
			case said == rules{}:
			case first == "":
				first, decides = name, said
			case said != decides:
				c.find(Warning, "rules_unused", fmt.Sprintf("routes[%d].match", i),
					"requests of the route %s pass gate %s, whose hold and streams decide, and gate %s with others, which are not asked; give both the same", r.Match, first, name)
			}
		}
	}
}

// takesStreams tells whether streams of another gate move to that one.
func (c *checker) takesStreams(gate string) bool {
	return slices.ContainsFunc(c.Gates, func(g config.Gate) bool { return g.StreamsGate == gate })
}
