//go:build linux

package main

import (
	"fmt"
	"slices"
)

// accepted is the work that a resource let through, as holds of numbered slots.
type accepted struct {
	holds  []hold
	faults []string
}

// fenced looks at holds with the resource's eyes: each lasts from the first write that
// was accepted to the last. refusals counts writes that came with an old fence, and
// alive the holders that met one although their lease was not lost and their worker was
// not the one that was frozen.
func fenced(holds []hold, limit, victim int) (a accepted, refusals, alive int) {
	owner := map[[2]uint64]uint64{} // number and fence, to the lease that shows them
	for _, h := range holds {
		seen := map[uint64]span{}
		for _, r := range h.touches {
			if r.kind == rejected {
				refusals++
				continue
			}
			if r.number < 1 || r.number > uint64(limit) {
				a.faults = append(a.faults, fmt.Sprintf("a slot has the number %d, of %d", r.number, limit))
			}
			who := uint64(h.worker)<<48 | h.lease
			if other, ok := owner[[2]uint64{r.number, r.value}]; ok && other != who {
				a.faults = append(a.faults, fmt.Sprintf("slot %d was granted twice with the fence %d", r.number, r.value))
			}
			owner[[2]uint64{r.number, r.value}] = who
			s, ok := seen[r.number]
			if !ok {
				s.from = r.at
			}
			s.to = r.at
			seen[r.number] = s
		}
		if h.how == done && h.worker != victim && slices.ContainsFunc(h.touches, func(r record) bool { return r.kind == rejected }) {
			alive++
		}
		for _, s := range seen {
			a.holds = append(a.holds, hold{worker: h.worker, caller: h.caller, lease: h.lease, cost: 1, span: s, how: h.how})
		}
	}
	return a, refusals, alive
}
