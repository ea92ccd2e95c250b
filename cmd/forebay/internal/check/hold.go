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
				"hold is first_byte for gate %s, and pool %s is in use for as long as the backend makes its answer: more than %d may use it at once; write handler, unless the backend has let go of it when its answer begins", g.Name, g.Pool, g.Most())
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

// bodies: a body that comes before its slot has to fit into what is held of all.
func (c *checker) bodies() {
	for _, g := range c.Gates {
		if g.Upload.BodyFirst > c.Intake.MaxBytes {
			key := gateKey(g.Name, "acquire.body")
			if c.At(key) == (config.Pos{}) {
				key = gateKey(g.Name, "acquire")
			}
			c.find(Warning, "body_never_first", key, "bodies of gate %s up to %d bytes are to come before their slot, and intake.max_bytes holds %d of all: the largest never do; raise the one or lower the other", g.Name, g.Upload.BodyFirst, c.Intake.MaxBytes)
		}
	}
}

// rules are what a gate says of the requests that have passed it.
type rules struct {
	hold    forebay.Hold
	streams forebay.Streams
	to      string
}

// chainRules: of two gates with rules one is not asked, which is hardly meant.
func (c *checker) chainRules() {
	for i := range c.Routes {
		decides(c, i, "hold and streams", func(g *config.Gate) rules { return rules{g.Hold, g.Streams, g.StreamsGate} })
		decides(c, i, "acquire and upload", func(g *config.Gate) forebay.Upload { return g.Upload })
	}
}

// decides finds a gate of a route that has other rules than the first one with any, which
// decides.
func decides[T comparable](c *checker, route int, keys string, rulesOf func(*config.Gate) T) {
	var none, inForce T
	first := ""
	for _, name := range c.Routes[route].Gates {
		switch said := rulesOf(c.Gate(name)); {
		case said == none:
		case first == "":
			first, inForce = name, said
		case said != inForce:
			c.find(Warning, "rules_unused", fmt.Sprintf("routes[%d].match", route),
				"requests of the route %s pass gate %s, whose %s decide, and gate %s with others, which are not asked; give both the same", c.Routes[route].Match, first, keys, name)
		}
	}
}

// takesStreams tells whether streams of another gate move to that one.
func (c *checker) takesStreams(gate string) bool {
	return slices.ContainsFunc(c.Gates, func(g config.Gate) bool { return g.StreamsGate == gate })
}
