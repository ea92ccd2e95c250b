//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// bound is the limit over time: each step is in force from its instant to the next.
type bound []step

type step struct {
	from  instant
	units int
}

// always is a limit that does not change.
func always(units int) bound { return bound{{math.MinInt64, units}} }

// String returns the limit, or from which to which it went.
func (b bound) String() string {
	least, most := b[0].units, b[0].units
	for _, s := range b {
		least, most = min(least, s.units), max(most, s.units)
	}
	if least == most {
		return strconv.Itoa(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// then adds a change. A limit that rises counts from the moment at which the change
// was begun, one that falls from the moment at which everybody must have heard of it;
// which that is, the caller says.
func (b bound) then(from instant, units int) bound { return append(slices.Clone(b), step{from, units}) }

// raised adds so many units within a span.
func (b bound) raised(within span, units int) (c bound) {
	for i, s := range b {
		next := instant(math.MaxInt64)
		if i+1 < len(b) {
			next = b[i+1].from
		}
		cuts := []instant{s.from}
		for _, cut := range []instant{within.from, within.to} {
			if s.from < cut && cut < next {
				cuts = append(cuts, cut)
			}
		}
		for _, cut := range cuts {
			add := 0
			if within.holds(cut) {
				add = units
			}
			c = append(c, step{cut, s.units + add})
		}
	}
	return c
}

// overlap is how many units were held at the same time.
type overlap struct {
	most       int           // at any moment
	violations int           // holds that began above the limit, and falls of the limit that were not followed
	above      time.Duration // in all
	first      instant       // of the violations
	last       instant       // moment above the limit
	over       int           // the most units above the limit in force
}

// edge is a moment at which something changes.
type edge struct {
	at    instant
	order int // at the same instant: what ends, then the limit, then what begins
	units int
}

const (
	leaves = iota
	changes
	enters
)

// overlapOf walks through all edges in order of time. Of an exit and an entry at the
// same instant the exit came first: both are within the time that the slot was held,
// never outside, so whatever this finds did happen.
func overlapOf(holds []hold, b bound) (o overlap) {
	edges := make([]edge, 0, 2*len(holds)+len(b))
	for _, s := range b {
		edges = append(edges, edge{s.from, changes, s.units})
	}
	for _, h := range holds {
		if h.to > h.from {
			edges = append(edges, edge{h.from, enters, h.cost}, edge{h.to, leaves, -h.cost})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order)) })
	held, limit := 0, 0
	for i, e := range edges {
		if e.order == changes {
			limit = e.units
		} else {
			held += e.units
		}
		o.most = max(o.most, held)
		if held <= limit {
			continue
		}
		o.over = max(o.over, held-limit)
		if e.order != leaves {
			o.violations++
			if o.violations == 1 {
				o.first = e.at
			}
		}
		if i+1 < len(edges) {
			o.last = edges[i+1].at
			o.above += edges[i+1].at.since(e.at)
		}
	}
	return o
}

// fullAgain returns how long after an instant all units of the limit were held, by
// others than the given worker; false if that was not seen.
func fullAgain(holds []hold, limit, without int, after instant) (time.Duration, bool) {
	var edges []edge
	for _, h := range holds {
		if h.worker != without && h.to > h.from {
			edges = append(edges, edge{h.from, enters, h.cost}, edge{h.to, leaves, -h.cost})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order)) })
	held := 0
	for _, e := range edges {
		held += e.units
		if e.at >= after && held >= limit {
			return e.at.since(after), true
		}
	}
	return 0, false
}

// heldBy returns how many units a worker held at an instant.
func heldBy(holds []hold, worker int, at instant) (units int) {
	for _, h := range holds {
		if h.worker == worker && h.holds(at) {
			units += h.cost
		}
	}
	return units
}
