package forebay

import (
	"fmt"
	"slices"

	"example.com/forebay/internal/admit"
)

// Lane is one business process of several that share a gate: order intake, reporting.
// Calls of it wait in a line of their own within the gate's.
//
// Whose turn it is: first comes a lane that was passed over by 50 units while it wanted
// to run, so that everybody gets 2 % in the end; then one that has less than its Share;
// then the one with the lowest Rank; then who came first. Who is next and does not fit
// keeps the others from passing, except those for whom enough is Reserved.
//
// If the line is full a call takes the place of the newest call of the lowest lane below
// its own, which is refused as [RejectedShed].
type Lane struct {
	// Name stands in events, metrics and logs, like a gate's.
	Name string
	// Rank says who goes first, from 1 to 1000; lanes of one rank are equal, and calls
	// without a lane come after all.
	Rank int
	// Reserved is how many units nobody else may use, so that a call of this lane need not
	// wait for one of another. They idle while the lane does not use them: keep few, for
	// those who must not wait at all. Under a limit below [Config.MaxInFlight] it is less
	// in proportion. 0: none. All lanes together leave at least one unit.
	Reserved int
	// Share is the part of the limit that the lane gets before lanes of any rank, once it
	// has calls in line: 0.3 is 30 %. Others borrow what it does not use, and give it back
	// as their calls end. 0: none. All lanes together have at most 1.
	Share float64
	// MaxShare is the most that the lane may use of the limit, what it borrows from others
	// included, and always one unit. 0: all that is not reserved. Not below Share.
	MaxShare float64
}

const maxRank = 1000

func (c *Config) validateLanes() (errs []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("forebay: "+format, args...))
		}
	}
	wrong(len(c.Lanes) >= admit.MaxLanes, "there are %d Lanes; at most %d", len(c.Lanes), admit.MaxLanes-1)
	reserved, shares := 0, 0.0
	for i, l := range c.Lanes {
		at := fmt.Sprintf("Lanes[%d] (%q)", i, l.Name)
		wrong(!validName(l.Name), "Lanes[%d].Name is %q; it must be 1 to %d %s", i, l.Name, maxName, nameAlphabet)
		wrong(slices.ContainsFunc(c.Lanes[:i], func(o Lane) bool { return o.Name == l.Name }), "%s is there twice; give each lane one name", at)
		wrong(l.Rank < 1 || l.Rank > maxRank, "%s: Rank is %d; it must be 1 (goes first) to %d", at, l.Rank, maxRank)
		wrong(l.Reserved < 0, "%s: Reserved is %d; it must be 0 (none) or more", at, l.Reserved)
		wrong(l.Reserved > 0 && c.Cluster != nil, "%s: Reserved is %d in a cluster, where each process has a part of the limit that changes; give the lane a Share", at, l.Reserved)
		wrong(!(l.Share >= 0 && l.Share <= 1), "%s: Share is %v; it must be 0 (none) to 1", at, l.Share)
		wrong(!(l.MaxShare >= 0 && l.MaxShare <= 1), "%s: MaxShare is %v; it must be 0 (all) to 1", at, l.MaxShare)
		wrong(l.MaxShare > 0 && l.MaxShare < l.Share, "%s: MaxShare is %v, below its Share of %v", at, l.MaxShare, l.Share)
		wrong(l.MaxShare > 0 && l.Reserved > int(l.MaxShare*float64(c.MaxInFlight)),
			"%s: Reserved is %d, more than its MaxShare of %v lets it use of %d", at, l.Reserved, l.MaxShare, c.MaxInFlight)
		reserved += max(0, l.Reserved)
		shares += l.Share
	}
	wrong(reserved > 0 && reserved >= c.MaxInFlight, "Lanes reserve %d units of %d; at least one must be left for the others", reserved, c.MaxInFlight)
	wrong(shares > 1+1e-9, "Lanes have shares of %.4g; together they must be at most 1", shares)
	return errs
}

// hasLane reports whether a gate has a lane of that name.
func (g *Gate) hasLane(name string) bool { return g.settings.Load().hasLane(name) }

func (s *settings) hasLane(name string) bool {
	return slices.ContainsFunc(s.Lanes, func(l Lane) bool { return l.Name == name })
}

// laneOf returns the lane of a call at this gate.
func (s *settings) laneOf(call *Call) string {
	if call.Lane == "" || !s.hasLane(call.Lane) {
		return ""
	}
	return call.Lane
}

// LaneStats is one lane in [Stats].
type LaneStats struct {
	Name    string `json:"name"`    // empty: that of calls without a lane
	InUse   int    `json:"in_use"`  // units that run
	Waiting int    `json:"waiting"` // calls in line
	Granted uint64 `json:"granted"` // leases given
	Refused uint64 `json:"refused"` // calls turned away, or gone out of the line, whatever the decision
}

func laneStats(m *admit.Machine) []LaneStats {
	lanes := m.Lanes()
	if len(lanes) == 1 {
		return nil
	}
	all := make([]LaneStats, len(lanes))
	for i, l := range lanes {
		all[i] = LaneStats{l.Name, l.InFlight, l.Waiting, l.Granted, l.Refused}
	}
	return all
}
