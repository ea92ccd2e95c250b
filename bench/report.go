package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// report is one run, as it is printed and written.
type report struct {
	suite   *suite
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
	p.line("# " + rep.suite.title)
	p.line("")
	p.line("Written by `make " + rep.suite.making + "`; do not edit. " + rep.suite.about)
	rep.writeHost(p)
	rep.writeTargets(p)
	for _, r := range rep.results {
		r.write(p)
	}
	rep.writeWins(p)
	p.line("")
	p.line("## What the figures do not say")
	p.line("")
	for _, text := range rep.suite.limits {
		p.line("- " + text)
	}
	if rep.suite.appendix != nil {
		rep.suite.appendix(p)
	}
}

func (rep *report) writeHost(p *printer) {
	p.line("")
	p.line("| | |")
	p.line("| --- | --- |")
	p.cells("command", "`"+rep.command+"`")
	p.cells("effort", fmt.Sprintf("%s: %s; %.0f s in all", rep.effort.name, rep.suite.work(rep.effort), rep.took.Seconds()))
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

// save writes the document beside its place and moves it there, so that a run
// that is interrupted leaves the old one.
func (rep *report) save(file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".performance-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	rep.write(f)
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
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
