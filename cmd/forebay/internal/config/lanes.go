package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"example.com/forebay"
)

const (
	maxRank  = 1000 // as the library has it
	maxLanes = 15   // of one gate, as the library has it
)

// lanesReader reads the lanes and remembers every name, also of lanes that are wrong,
// so that a route of one of them is not called a mistake as well.
type lanesReader struct {
	*decoder
	names []string
}

func (r *lanesReader) read(v value) {
	r.entries(v, "lanes", func(name string, k, child *yaml.Node) {
		r.names = append(r.names, name)
		c := v.child(name, child)
		r.config.at[c.path] = posOf(k)
		if r.name(k, "lane") && r.given(c) {
			r.lane(c, posOf(k), forebay.Lane{Name: name})
		}
	})
}

func (r *lanesReader) lane(v value, at Pos, l forebay.Lane) {
	share := func(to *float64) func(v value) {
		return func(v value) {
			n, _ := r.percent(v)
			*to = float64(n) / 100
		}
	}
	there := r.mapping(v, "lanes.NAME", []key{
		{"rank", func(v value) { l.Rank, _ = r.number(v, 1, maxRank) }},
		{"reserved", func(v value) { l.Reserved, _ = r.number(v, 0, maxUnits) }},
		{"share", share(&l.Share)},
		{"max_share", share(&l.MaxShare)},
	})
	if _, ok := there["rank"]; !ok && v.Kind == yaml.MappingNode && !r.partial {
		r.wrongAt(at, fmt.Sprintf("the lane %s has no rank, and who goes first is for you to say", shorten(l.Name)), "write rank: NUMBER; 1 goes first, and calls without a lane come after all")
	}
	if l.MaxShare > 0 && l.MaxShare < l.Share {
		r.wrongAt(r.config.at[v.path+".max_share"], fmt.Sprintf("max_share is %s, below share, which is %s", percentText(l.MaxShare), percentText(l.Share)), "write a max_share of at least "+percentText(l.Share))
		l.MaxShare = 0
	}
	r.config.Lanes = append(r.config.Lanes, l)
}

// give gives each gate the lanes whose routes pass it, and finds those that it cannot
// have.
func (r *lanesReader) give() {
	for i := range r.config.Gates {
		g := &r.config.Gates[i]
		g.Lanes = r.config.lanesOf(g.Name)
		if len(g.Lanes) > maxLanes {
			r.wrongAt(g.Pos, fmt.Sprintf("routes of %d lanes pass gate %s, which can have %d", len(g.Lanes), shorten(g.Name), maxLanes), "let several routes share a lane")
			g.Lanes = nil
		}
		if !r.fits(g) {
			g.Lanes = nil
		}
		if g.Closed { // room for what is reserved, once it is opened by hand
			_, reserved := g.reserves()
			g.MaxInFlight = 1 + reserved
		}
	}
}

// lanesOf returns the lanes of the routes that pass a gate, in the order of the file.
func (c *Config) lanesOf(gate string) (lanes []forebay.Lane) {
	for _, l := range c.Lanes {
		if slices.ContainsFunc(c.Routes, func(r Route) bool { return r.Lane == l.Name && slices.Contains(r.Gates, gate) }) {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// fits tells whether a gate has room for what its lanes are to have of it.
func (r *lanesReader) fits(g *Gate) bool {
	before, name := len(r.problems), shorten(g.Name)
	text, reserved := g.reserves()
	if reserved > 0 && g.Terms != nil {
		r.wrongAt(r.lastWith(g, "reserved", func(l forebay.Lane) bool { return l.Reserved > 0 }),
			fmt.Sprintf("gate %s is of the cluster, where each program has a part of the limit that changes, and lanes reserve units of it: %s", name, text), "give them a share instead, or take the gate out of cluster.gates")
	} else if reserved >= g.MaxInFlight && reserved > 0 && !g.Closed {
		r.wrongAt(r.lastWith(g, "reserved", func(l forebay.Lane) bool { return l.Reserved > 0 }),
			fmt.Sprintf("the lanes of gate %s reserve %s = %d units, and its max_in_flight is %d: at least one must be left for the others", name, text, reserved, g.MaxInFlight), "lower reserved, or raise max_in_flight")
	}
	if text, shares := g.shares(); shares > 1+1e-9 {
		r.wrongAt(r.lastWith(g, "share", func(l forebay.Lane) bool { return l.Share > 0 }),
			fmt.Sprintf("the lanes of gate %s have shares of %s = %s", name, text, percentText(shares)), "lower them to 100% together")
	}
	for _, l := range g.Lanes {
		if most := int(l.MaxShare * float64(g.MaxInFlight)); l.MaxShare > 0 && l.Reserved > most && !g.Closed {
			r.wrongAt(r.config.at["lanes."+l.Name+".max_share"],
				fmt.Sprintf("the lane %s may use %s of the %d units of gate %s, which is %d, and reserves %d: nobody may use what is left of those", shorten(l.Name), percentText(l.MaxShare), g.MaxInFlight, name, most, l.Reserved), "raise max_share, or lower reserved")
		}
	}
	return len(r.problems) == before
}

// lastWith is where a key of the last lane of a gate that has it stands.
func (r *lanesReader) lastWith(g *Gate, key string, has func(forebay.Lane) bool) (at Pos) {
	for _, l := range g.Lanes {
		if has(l) {
			at = r.config.at["lanes."+l.Name+"."+key]
		}
	}
	return at
}

// reserves is the sum of what lanes of the gate have reserved, and how it comes about.
func (g *Gate) reserves() (text string, sum int) {
	var parts []string
	for _, l := range g.Lanes {
		if l.Reserved > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", l.Name, l.Reserved))
			sum += l.Reserved
		}
	}
	return strings.Join(parts, " + "), sum
}

func (g *Gate) shares() (text string, sum float64) {
	var parts []string
	for _, l := range g.Lanes {
		if l.Share > 0 {
			parts = append(parts, l.Name+" "+percentText(l.Share))
			sum += l.Share
		}
	}
	return strings.Join(parts, " + "), sum
}

func percentText(share float64) string { return fmt.Sprintf("%.0f%%", share*100) }

// lanesYAML is lanes as a file says them, line by line.
func (c *Config) lanesYAML() (lines []string) {
	if len(c.Lanes) > 0 {
		lines = append(lines, "lanes:")
	}
	for _, l := range c.Lanes {
		lines = append(lines, fmt.Sprintf("  %s: {%s}", quote(l.Name), laneYAML(l)))
	}
	return lines
}

func laneYAML(l forebay.Lane) string {
	s := fmt.Sprintf("rank: %d", l.Rank)
	if l.Reserved > 0 {
		s += fmt.Sprintf(", reserved: %d", l.Reserved)
	}
	if l.Share > 0 {
		s += ", share: " + percentText(l.Share)
	}
	if l.MaxShare > 0 {
		s += ", max_share: " + percentText(l.MaxShare)
	}
	return s
}

// laneKeys say who goes first.
var laneKeys = []Key{
	{"lanes.NAME.rank", "a whole number from 1, which goes first, to 1000; lanes of one rank are equal, and requests without a lane come after all. It decides who of those in line runs next: a gate needs a max_wait", "required",
		"who goes first is for you to say. Whoever comes last still gets 2 %", "", "1"},
	{"lanes.NAME.reserved", "a whole number from 0: the units that nobody else may use, at each gate that its routes pass; all lanes together leave at least one. Under a limit that is lower for a while it is less in proportion. Not where the limit is of a cluster", "0",
		"they idle while the lane does not use them. It is for those who must not wait for a request of another lane to end: operators, health",
		"Half: more of them wait for one to end. Twice: more of the backend idles.", "2"},
	{"lanes.NAME.share", "1% to 100% of the limit, which the lane gets before lanes of any rank once it has requests in line; all of a gate have 100% together", "none: its rank alone decides",
		"a rank is enough where all lanes below can wait. Others borrow what it does not use, and give it back as their requests end",
		"Half: the lane gets half as much while those above it want everything. Twice: they get less by as much.", "50%"},
	{"lanes.NAME.max_share", "1% to 100% of the limit, and at least one unit: the most that the lane may use, what it borrows included; not below share", "none: all that is not reserved",
		"what nobody else wants need not idle. It is for requests that hurt the backend or run so long that borrowed units come back late",
		"Half: it idles sooner. Twice: more of the gate is with requests that end late.", "75%"},
}
