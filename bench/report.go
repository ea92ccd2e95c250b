package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// report is one run, as it is printed and written.
type report struct {
	command string
	host    host
	effort  effort
	began   time.Time
	took    time.Duration
	results []*result
}

// verdicts judges every target of every section.
func (rep *report) verdicts() (all []verdict) {
	for _, r := range rep.results {
		for _, t := range r.targets {
			all = append(all, t.judge(r))
		}
	}
	return all
}

// missed counts the targets that were required and not met.
func (rep *report) missed() (n int) {
	for _, v := range rep.verdicts() {
		if !v.met() && !v.aim {
			n++
		}
	}
	return n
}

func (rep *report) write(out io.Writer) {
	p := &printer{out}
	p.line("# Performance")
	p.line("")
	p.line("Written by `make bench-gate`; do not edit. All figures are of one run: everything in one process, in rounds")
	p.line("that take each contender in turn (A B C A B C …), so that noise of the machine hits all alike. A figure is the")
	p.line("median of its rounds; a ratio is taken within a round, and is the median of those. Ratios carry over to other")
	p.line("machines, nanoseconds do not.")
	rep.writeHost(p)
	rep.writeTargets(p)
	for _, r := range rep.results {
		r.write(p)
	}
	rep.writeWins(p)
	p.line("")
	p.line("## What the figures do not say")
	p.line("")
	for _, text := range limits {
		p.line("- " + text)
	}
}

// limits is what a reader must not take the figures for.
var limits = []string{
	"The peers do other things: the semaphore has weights, failsafe-go composes policies, aegis adapts, chi is part of a router. A smaller figure is not a better library.",
	"forebay's gates here have no observers, no limiter and no chain. Observers and limiters take the gate's lock for every call, and what an observer does comes on top.",
	"Two processors. On many more, words that every core writes cost more than here, for everybody.",
	"A gate costs nanoseconds and a request microseconds to milliseconds: the first tables tell libraries apart, not servers. The last one does tell servers apart.",
	"The backend of the last table is a model. Yours collapses elsewhere, or not at all; measure it.",
	"Loopback has no network in it, and a client that shares the machine takes processor time from the server.",
}

func (rep *report) writeHost(p *printer) {
	p.line("")
	p.line("| | |")
	p.line("| --- | --- |")
	p.cells("command", "`"+rep.command+"`")
	p.cells("effort", fmt.Sprintf("%s: %d rounds of the tables of loops, %d of the others, %d of the last; %.0f s in all", rep.effort.name, rep.effort.loopRounds, rep.effort.rounds, rep.effort.loadRounds, rep.took.Seconds()))
	p.cells("date", rep.began.UTC().Format(time.DateOnly))
	p.cells("machine", fmt.Sprintf("%s, %d cores, %s", rep.host.cpu, rep.host.cores, rep.host.platform))
	p.cells("Go", fmt.Sprintf("%s, GOMAXPROCS %d", rep.host.goVersion, processors))
	p.cells("peers", strings.Join(rep.host.modules, ", "))
}

func (rep *report) writeTargets(p *printer) {
	p.line("")
	p.line("## Targets")
	p.line("")
	p.line("| target | bound | measured | lowest and highest round | |")
	p.line("| --- | --- | ---: | ---: | --- |")
	for _, v := range rep.verdicts() {
		value := number(v.value)
		if v.always {
			value += " (worst)"
		}
		p.cells(v.what, v.bound(), value, number(v.least)+" – "+number(v.most), v.word())
	}
}

// write writes a section's table.
func (r *result) write(p *printer) {
	p.line("")
	p.line("## " + r.title)
	p.line("")
	p.line(r.about)
	p.line("")
	heads, rules := []string{""}, []string{"---"}
	for _, c := range r.columns {
		heads, rules = append(heads, c.name), append(rules, "---:")
		if c.ratio != "" {
			heads, rules = append(heads, c.ratio), append(rules, "---:")
		}
	}
	p.cells(heads...)
	p.cells(rules...)
	for _, row := range r.rows {
		p.cells(r.cellsOf(row)...)
	}
	for _, n := range r.notes {
		p.line("")
		p.line(n)
	}
}

func (r *result) cellsOf(row row) []string {
	name := row.name
	switch row.kind {
	case ours:
		name = "**" + name + "**"
	case yardstick:
		name = "*" + name + "*"
	}
	cells := []string{name}
	for _, c := range r.columns {
		cells = append(cells, number(r.figure(row.name, c.name)))
		if c.ratio != "" {
			cells = append(cells, number(r.ratio(row.name, r.base, c.name)))
		}
	}
	return cells
}

// printer writes lines. It keeps no error: what it writes to is a terminal or a
// file that is closed with a check.
type printer struct{ out io.Writer }

func (p *printer) line(text string) { fmt.Fprintln(p.out, text) }

func (p *printer) cells(cells ...string) { p.line("| " + strings.Join(cells, " | ") + " |") }

// number writes a figure with three digits that mean something.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case math.Abs(v) < 0.005:
		return "0"
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return trimmed(strconv.FormatFloat(v, 'f', 1, 64))
	case math.Abs(v) >= 2:
		return trimmed(strconv.FormatFloat(v, 'f', 2, 64))
	}
	return trimmed(strconv.FormatFloat(v, 'f', 3, 64))
}

// trimmed takes zeros off the end of a decimal fraction.
func trimmed(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }
