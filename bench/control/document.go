package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// report is what a run found.
type report struct {
	plan      *plan
	simulated *table
	real      *table
	newcomers []newcomer
}

// missed counts the pass lines that are not met.
func (r *report) missed() (n int) {
	for _, l := range lines() {
		if !l.met(l.of(r.simulated)) {
			n++
		}
	}
	return n
}

// write writes the whole document.
func (r *report) write(w io.Writer, plots bool) {
	n := r.plan.seeds
	fmt.Fprintf(w, head, n, max(1, n/2), max(1, n/2))
	r.lines(w)
	fmt.Fprint(w, "\n## The worst case of each\n\n"+aboutScore+"\n")
	scores(w, r.simulated, "in the simulator")
	if r.real != nil {
		fmt.Fprintln(w)
		scores(w, r.real, "as the modules are, in fewer scenarios")
	}
	if plots {
		fmt.Fprint(w, "\n![Answers a second while the backend has half of its speed](control-step.svg)\n\n![Limits in half an hour at twice the load, before a backend with contention](control-soak.svg)\n")
	}
	r.newcomersTable(w)
	fmt.Fprint(w, "\n## Where auto is not the best\n\n")
	r.lost(w)
	fmt.Fprint(w, "\n## Everything, in the simulator\n\nMeans over the seeds; of auto the worst seed in brackets.\n")
	tables(w, r.simulated)
	if r.real != nil {
		fmt.Fprint(w, "\n## Everything, of real modules\n\n"+aboutReal)
		tables(w, r.real)
	}
	fmt.Fprint(w, "\n## What is not in these figures\n\n"+caveats)
}

func (r *report) lines(w io.Writer) {
	fmt.Fprint(w, "## Pass lines\n\n| | asked | found | |\n| --- | --- | --- | --- |\n")
	for _, l := range lines() {
		v := l.of(r.simulated)
		sign, verdict := "at most ", "met"
		if l.atLeast {
			sign = "at least "
		}
		if !l.met(v) {
			verdict = "**missed**"
		} else if math.IsNaN(v) {
			verdict = "not run"
		}
		fmt.Fprintf(w, "| %s | %s%s | %s | %s |\n", l.what, sign, number(l.limit), number(v), verdict)
	}
}

func scores(w io.Writer, t *table, where string) {
	fmt.Fprintf(w, "| %s | without 20 a second | where | with it |\n| --- | --- | --- | --- |\n", where)
	for _, c := range t.contenders {
		if c.name == nameOracle {
			continue
		}
		without, with := t.score(c.name, scoredFast), t.score(c.name, scored)
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", c.name, number(without.share), without.where, number(with.share))
	}
}

func (r *report) newcomersTable(w io.Writer) {
	if len(r.newcomers) == 0 {
		return
	}
	fmt.Fprint(w, "\n## Backends that nothing was tuned on\n\n"+aboutUnseen)
	fmt.Fprint(w, "| | auto | the best number | which is | twice of it | auto ÷ best | limit of auto, mean | p99 of auto, of the best number |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, n := range r.newcomers {
		fmt.Fprintf(w, "| [%s](../bench/control/unseen/%s.yaml) | %s (%s) | %s (%s) | %d | %s | %s | %.0f | %.0f, %.0f ms |\n", n.name, n.name,
			number(n.auto.mean), number(n.auto.worst), number(n.best.mean), number(n.best.worst), n.bestAt, number(n.doubled),
			number(n.auto.mean/n.best.mean), n.limit, n.p99, n.few)
	}
}

// lost lists what somebody does better than auto, by more than a point.
func (r *report) lost(w io.Writer) {
	for _, t := range []*table{r.simulated, r.real} {
		if t == nil {
			continue
		}
		for _, tr := range t.trials {
			for i, l := range tr.looks {
				if !l.scored {
					continue
				}
				ours := t.figure(tr, nameOurs, i).mean
				var better []string
				for _, c := range t.contenders {
					if v := t.figure(tr, c.name, i).mean; c.name != nameOurs && v > ours+.01 {
						better = append(better, fmt.Sprintf("%s %s", c.name, number(v)))
					}
				}
				if len(better) > 0 {
					fmt.Fprintf(w, "- %s, %s: auto %s; %s\n", tr.title(), l.name, number(ours), strings.Join(better, ", "))
				}
			}
		}
	}
}

// tables writes all figures, one table for each suite.
func tables(w io.Writer, t *table) {
	last := ""
	for _, tr := range t.trials {
		if tr.suite != last {
			last = tr.suite
			fmt.Fprintf(w, "\n### %s: %s\n\n| |", tr.suite, titles[tr.suite])
			for _, c := range t.contenders {
				fmt.Fprintf(w, " %s |", c.name)
			}
			fmt.Fprintf(w, "\n|%s\n", strings.Repeat(" --- |", 1+len(t.contenders)))
		}
		for i, l := range tr.looks {
			fmt.Fprintf(w, "| %s, %s: %s |", tr.name, tr.backend.name, l.name)
			for _, c := range t.contenders {
				f := t.figure(tr, c.name, i)
				if c.name == nameOurs {
					fmt.Fprintf(w, " %s (%s) |", number(f.mean), number(f.worst))
				} else {
					fmt.Fprintf(w, " %s |", number(f.mean))
				}
			}
			fmt.Fprintln(w)
		}
	}
}

func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// save writes the document and its pictures.
func (r *report) save(file string) error {
	for _, p := range r.pictures() {
		drawn, err := p.draw()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), p.file), drawn, 0o644); err != nil {
			return err
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	r.write(f, true)
	return f.Close()
}
