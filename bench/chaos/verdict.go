//go:build linux

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// verdict is what a run showed.
type verdict struct {
	play
	overlap              overlap
	limit                string
	before, first, hence float64       // holds that ended a second: before the fault, in the second after it, later
	regrant              time.Duration // until the victim's slots were granted again; NaN is never
	use                  [3]float64    // parts of the limit that were held meanwhile
	recovery             time.Duration // from the end of the fault until as much was in use as before
	recovered            bool
	struck               instant
	dip                  float64 // part of the limit that was held at the worst time, where a scenario knows one
	regranted, dead      bool
	watched              time.Duration // after the death
	forgotten, repeated  int
	overdue              []tardy
	outcomes             map[outcome]int
	ends                 map[outcome]int
	notes                []string // for the table
	faults               []string // what this scenario must not show
	skipped              string   // why it did not run
	err                  error
}

// verdict judges the run by what holds for every scenario, and then by what this one
// is about.
func (st *stage) verdict() *verdict {
	s := st.story
	v := &verdict{
		play: st.play, struck: st.struck,
		before: s.rate(st.before), first: s.rate(span{st.struck, st.struck.add(time.Second)}), hence: s.rate(st.later),
		forgotten: len(s.forgotten()), repeated: s.repeated, overdue: s.overdue(),
		outcomes: s.outcomes(), ends: s.ends(), notes: st.remarks,
	}
	for i, w := range []span{st.before, {st.struck, st.struck.add(time.Second)}, st.later} {
		v.use[i] = s.use(w, st.sheet.Limit)
	}
	v.recovery, v.recovered = s.recovered(st.healed, st.later.to, st.sheet.Limit, v.use[0])
	if st.victim >= 0 && st.members[st.victim].killed {
		v.dead, v.watched = true, st.later.to.since(st.members[st.victim].gone)
		v.regrant, v.regranted = fullAgain(s.holds, st.sheet.Limit, st.victim, st.members[st.victim].gone)
	}
	if st.judge != nil {
		st.judge(st, v)
	}
	most := st.bound
	for _, a := range st.allowed {
		most = most.raised(a.span, a.units)
	}
	v.overlap, v.limit = overlapOf(s.holds, most), st.bound.String()
	return v
}

// wrong says what of a verdict must not be, in words. Without a protection it must
// be wrong.
func (v *verdict) wrong() (all []string) {
	if v.err != nil {
		return []string{v.err.Error()}
	}
	if v.removal != nil && v.skipped == "" {
		if !v.removal.shows(v) {
			all = append(all, "nothing shows that the protection is missing: no "+v.removal.must)
		}
		return all
	}
	if n := v.overlap.violations; n > 0 {
		all = append(all, fmt.Sprintf("%d violations, %d units above the limit at most, for %v in all, %v to %v after the fault began", n, v.overlap.over,
			v.overlap.above.Round(time.Millisecond), v.overlap.first.since(v.struck).Round(time.Millisecond), v.overlap.last.since(v.struck).Round(time.Millisecond)))
	}
	if v.forgotten > 0 {
		all = append(all, fmt.Sprintf("%d calls were never decided", v.forgotten))
	}
	if v.repeated > 0 {
		all = append(all, fmt.Sprintf("%d calls were decided twice", v.repeated))
	}
	// What the scheduler of a busy machine adds is not all seen by timers.
	if w := worst(v.overdue); w.by > allowance {
		n := len(v.overdue)
		all = append(all, fmt.Sprintf("%d calls waited longer than their patience and %v: one of worker %d waited %v of %v, began %v after the fault, and was %v",
			n, allowance, w.worker, w.to.since(w.from), w.patience, w.from.since(v.struck), w.how))
	}
	if n := v.outcomes[broken]; n > 0 {
		all = append(all, fmt.Sprintf("%d calls failed in a way that none should", n))
	}
	return append(all, v.faults...)
}

func (v *verdict) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

func (v *verdict) note(format string, args ...any) {
	v.notes = append(v.notes, fmt.Sprintf(format, args...))
}

// rates writes the three rates.
func (v *verdict) rates() string {
	return fmt.Sprintf("%s → %s → %s", rate(v.before), rate(v.first), rate(v.hence))
}

func rate(r float64) string {
	if math.IsNaN(r) {
		return "–"
	}
	return fmt.Sprintf("%.0f", r)
}

// who says who played.
func (v *verdict) who() string {
	if v.waves {
		return v.contender.name + ", waves"
	}
	return v.contender.name
}

// line is the verdict on one line, for whoever watches.
func (v *verdict) line() string {
	if v.skipped != "" {
		return fmt.Sprintf("%-40s %-28s skipped: %s", v.scenario.name, v.who(), v.skipped)
	}
	text := fmt.Sprintf("%-40s %-28s %4d violations, at most %d of %s, %s /s", v.scenario.name, v.who(), v.overlap.violations, v.overlap.most, v.limit, v.rates())
	if v.dead {
		text += ", slots back " + v.back()
	}
	text += fmt.Sprintf(", in use %.0f → %.0f → %.0f %%", 100*v.use[0], 100*v.use[1], 100*v.use[2])
	if st := v.normal(); st != "" {
		text += ", as before " + st
	}
	if n := v.ends[lost]; n > 0 {
		text += fmt.Sprintf(", %d leases lost", n)
	}
	if n := v.outcomes[full] + v.outcomes[failed]; n > 0 {
		text += fmt.Sprintf(", %d+%d refused", v.outcomes[full], v.outcomes[failed])
	}
	if len(v.notes) > 0 {
		text += ", " + strings.Join(v.notes, ", ")
	}
	return text
}

// normal says how soon things were as before.
func (v *verdict) normal() string {
	switch {
	case v.play.fault == nil:
		return ""
	case !v.recovered:
		return "not again"
	case v.recovery < 100*time.Millisecond:
		return "at once"
	}
	return fmt.Sprintf("after %.1f s", v.recovery.Seconds())
}

// back says after how long a dead worker's slots were in use again.
func (v *verdict) back() string {
	if !v.regranted {
		return fmt.Sprintf("not within %v", v.watched.Round(time.Second))
	}
	return fmt.Sprintf("%.2f s", v.regrant.Seconds())
}
