//go:build linux

package main

import (
	"fmt"
	"slices"
)

// accepted is the work that a resource let through, as holds of numbered slots.
type accepted struct {
	holds    []hold
	refusals int // writes that came with an old fence
	// alive holders met a refusal although their lease was not lost and they were not
	// frozen meanwhile.
	alive  int
	faults []string
}

// grant is one slot as it was granted once.
type grant struct{ number, fence uint64 }

// fenced looks at holds with the resource's eyes: each lasts from the first write that
// was accepted to the last.
func fenced(holds []hold, limit int, frozen func(hold) bool) (a accepted) {
	owner := map[grant]int{} // the worker that shows it
	byNumber := map[uint64][]hold{}
	for _, h := range holds {
		seen := map[uint64]span{}
		for _, r := range h.touches {
			if r.kind == rejected {
				a.refusals++
				continue
			}
			g := grant{r.number, r.value}
			if other, ok := owner[g]; ok && other != h.worker {
				a.faults = append(a.faults, fmt.Sprintf("slot %d was granted to two workers with the fence %d", g.number, g.fence))
			}
			owner[g] = h.worker
			s, ok := seen[r.number]
			if !ok {
				s.from = r.at
			}
			s.to = r.at
			seen[r.number] = s
		}
		if h.how == done && !frozen(h) && slices.ContainsFunc(h.touches, func(r record) bool { return r.kind == rejected }) {
			a.alive++
		}
		for n, s := range seen {
			h := hold{worker: h.worker, caller: h.caller, lease: h.lease, cost: 1, span: s, how: h.how}
			a.holds = append(a.holds, h)
			byNumber[n] = append(byNumber[n], h)
		}
	}
	for n, holds := range byNumber {
		if n < 1 || n > uint64(limit) {
			a.faults = append(a.faults, fmt.Sprintf("a slot has the number %d, of %d", n, limit))
		}
		if o := overlapOf(holds, always(1)); o.violations > 0 {
			a.faults = append(a.faults, fmt.Sprintf("%d times two held slot %d at the same time", o.violations, n))
		}
	}
	return a
}
