//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is everything that was played.
type report struct {
	began    time.Time
	took     time.Duration
	verdicts []*verdict
}

// wrong counts the runs of forebay that showed what they must not, or did not show
// what they must.
func (r *report) wrong() (n int) {
	for _, v := range r.verdicts {
		if v.ours() && len(v.wrong()) > 0 {
			n++
		}
	}
	return n
}

// save writes the document.
func (r *report) save(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	p := &printer{out: f}
	r.write(p)
	if err := f.Close(); p.err == nil {
		p.err = err
	}
	return p.err
}

// printer writes lines, and keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) lines(lines ...string) {
	for _, l := range lines {
		if _, err := fmt.Fprintln(p.out, l); p.err == nil {
			p.err = err
		}
	}
}

func (p *printer) row(cells ...string) { p.lines("| " + strings.Join(cells, " | ") + " |") }

func (p *printer) head(cells ...string) {
	p.lines("")
	p.row(cells...)
	p.row(slices.Repeat([]string{"---"}, len(cells))...)
}

func (r *report) write(p *printer) {
	p.lines("# What becomes of the limit when things go wrong", "",
		"Written by `make chaos`; do not edit. Several real processes share one limit through a real Redis while something",
		"goes wrong. Each writes down, in memory that outlives it and by the clock that all processes of a machine share,",
		"when it got a slot and when its work on it ended. What was held at the same time is counted afterwards.")
	r.writeHost(p)
	r.writeOurs(p)
	r.writeRivals(p)
	r.writeRemovals(p)
	p.lines("", "## How it is counted", "")
	for _, text := range explanations {
		p.lines("- " + text)
	}
}

var explanations = []string{
	"A hold is from just after the slot was granted to just before it is given back, so two that overlap did overlap. Of a worker that is killed it lasts until the process is gone; of one whose lease is lost until its context has ended and the work has noticed.",
	"A violation is a hold that begins above the limit, or a fall of the limit that is not followed. `most` is the most units that were held at any moment.",
	"`before`, `first second` and `later` are holds that ended a second, before the fault, in the second after it struck, and at the end of the run. Callers keep every slot in use and hold it for some milliseconds, every tenth for 120 ms; so the rate tells how many slots are in use, not how fast anything is.",
	"`slots back` is from the death of the process until all units of the limit were in use by the others.",
	"In every run of forebay each call must be decided exactly once, and no later than its patience and 50 ms, apart from what the timers of its own process ring late by at that moment.",
	"Every scenario is run twice with forebay: once with callers that always want more than there is, once with a load that comes in waves; what is printed is the sum of the violations, the worst of what has a worst, and the rates of the first.",
	"Rivals are told to wait as long as forebay's callers do, and otherwise run at their usual settings; the token list begins with its tokens in place, because what happens when several workers make them is a row of its own.",
}

func (r *report) writeHost(p *printer) {
	p.head("", "")
	p.row("date", r.began.UTC().Format(time.DateOnly))
	p.row("took", fmt.Sprintf("%.0f min, %d runs", r.took.Minutes(), len(r.verdicts)))
	p.row("machine", fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH))
	p.row("Go", runtime.Version())
	p.row("server", serverVersion())
	p.row("scene", fmt.Sprintf("%d workers of 8 callers each, a limit of %d, a lease of %v, a patience of %v; `closed` while the store is away, unless it is said otherwise", usualCrew, usualLimit, usualLease, usualPatience))
}

func serverVersion() string {
	said, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "unknown"
	}
	words := strings.Fields(string(said))
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "v="); ok {
			return "Redis " + v
		}
	}
	return "unknown"
}

// group is the runs of one contender in one scenario.
type group []*verdict

// of returns the runs of a contender in a scenario.
func (r *report) of(scenario, contender string) (g group) {
	for _, v := range r.verdicts {
		if v.scenario.name == scenario && v.contender.name == contender {
			g = append(g, v)
		}
	}
	return g
}

// names returns what was played of something, in order.
func (r *report) names(want func(*verdict) bool, name func(*verdict) string) (all []string) {
	for _, v := range r.verdicts {
		if n := name(v); want(v) && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

func scenarioName(v *verdict) string { return v.scenario.name }

func contenderName(v *verdict) string { return v.contender.name }

func (r *report) writeOurs(p *printer) {
	p.lines("", "## forebay")
	p.head("what goes wrong", "violations", "most, of the limit", "before → first second → later", "slots back", "remarks")
	plain := func(v *verdict) bool { return v.ours() && v.removal == nil }
	for _, name := range r.names(plain, scenarioName) {
		g := r.of(name, ourselves)
		p.row(name, g.violations(), g.most(), g.rates(), g.back(), g.remarks())
	}
}

func (r *report) writeRivals(p *printer) {
	rival := func(v *verdict) bool { return !v.ours() }
	others := r.names(rival, contenderName)
	if len(others) == 0 {
		return
	}
	p.lines("", "## Beside what others use", "", "Violations, the most that was held at once, and the rate before → later.")
	p.head(append([]string{"what goes wrong", ourselves}, others...)...)
	for _, name := range r.names(rival, scenarioName) {
		cells := []string{name}
		for _, c := range append([]string{ourselves}, others...) {
			cells = append(cells, r.of(name, c).cell())
		}
		p.row(cells...)
	}
}

func (r *report) writeRemovals(p *printer) {
	p.lines("", "## With a protection taken out", "", "The same with forebay, built without one of its protections: the run must show it.")
	p.head("without", "what goes wrong", "must show", "violations", "most, of the limit", "before → first second → later")
	for _, v := range r.verdicts {
		if v.removal != nil {
			g := group{v}
			p.row(v.removal.name, v.scenario.name, v.removal.must, g.violations(), g.most(), g.rates())
		}
	}
}

// skipped says why none of the runs took place, "" if one did.
func (g group) skipped() string {
	if len(g) == 0 {
		return "–"
	}
	for _, v := range g {
		if v.skipped == "" && v.err == nil {
			return ""
		}
	}
	if g[0].err != nil {
		return "failed"
	}
	return "not run"
}

func (g group) violations() string {
	if s := g.skipped(); s != "" {
		return s
	}
	n := 0
	for _, v := range g {
		n += v.overlap.violations
	}
	if n > 0 {
		return fmt.Sprintf("**%d**", n)
	}
	return "0"
}

func (g group) most() string {
	if g.skipped() != "" {
		return ""
	}
	most := 0
	for _, v := range g {
		most = max(most, v.overlap.most)
	}
	return fmt.Sprintf("%d of %s", most, g[0].limit)
}

func (g group) rates() string {
	if g.skipped() != "" {
		return ""
	}
	return g[0].rates()
}

// back says after how long slots came back, at worst.
func (g group) back() string {
	worst := ""
	var longest time.Duration
	for _, v := range g {
		switch {
		case !v.dead || v.waves:
		case !v.regranted:
			return v.back()
		case v.regrant >= longest:
			longest, worst = v.regrant, v.back()
		}
	}
	return worst
}

// remarks says what else was seen.
func (g group) remarks() string {
	var all []string
	leases, late := 0, 0
	for _, v := range g {
		leases += v.ends[lost]
		late += len(v.overdue)
		for _, n := range v.notes {
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		if v.skipped != "" {
			all = append(all, v.skipped)
		}
	}
	if leases > 0 {
		all = append(all, fmt.Sprintf("%d leases lost", leases))
	}
	if n := g.refused(); n != "" {
		all = append(all, n)
	}
	if late > 0 {
		all = append(all, fmt.Sprintf("%d decided late", late))
	}
	return strings.Join(all, "; ")
}

// refused says how many calls were, of all.
func (g group) refused() string {
	no, all := 0, 0
	for _, v := range g {
		for how, n := range v.outcomes {
			all += n
			if how == full || how == failed {
				no += n
			}
		}
	}
	if no == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d calls refused", no, all)
}

// cell is a group in one cell.
func (g group) cell() string {
	if s := g.skipped(); s != "" {
		return s
	}
	text := fmt.Sprintf("%s · %s · %s → %s", g.violations(), g.most(), rate(g[0].before), rate(g[0].hence))
	if b := g.back(); b != "" {
		text += " · slots back " + b
	}
	return text
}
