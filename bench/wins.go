package main

import (
	"fmt"
	"math"
	"strings"
)

// clearly is by how much a rival must be better to be told: less is noise.
const clearly = 0.03

// writeWins lists every figure in which a rival is better than the row of ours
// that does the same.
func (rep *report) writeWins(p *printer) {
	p.line("")
	p.line("## Where a rival wins")
	p.line("")
	found := false
	for _, r := range rep.results {
		for _, text := range r.wins() {
			p.line("- " + text)
			found = true
		}
	}
	if !found {
		p.line("Nowhere in this run.")
	}
}

// wins has one line for each figure, and names all who are better.
func (r *result) wins() (texts []string) {
	for _, c := range r.columns {
		var better []string
		for _, row := range r.rows {
			if row.kind != rival || c.neutral {
				continue
			}
			apart := math.Abs(r.figure(row.name, c.name) - r.figure(row.against, c.name))
			if by := r.ratio(row.name, row.against, c.name); apart > c.noise && c.better(by) {
				better = append(better, fmt.Sprintf("%s %s, %s x %s", row.name, number(r.figure(row.name, c.name)), number(by), row.against))
			}
		}
		if len(better) > 0 {
			texts = append(texts, fmt.Sprintf("%s: %s: %s.", r.title, c.name, strings.Join(better, "; ")))
		}
	}
	return texts
}

// better reports whether a ratio of rival to ours is in the rival's favour.
func (c column) better(ratio float64) bool {
	if c.more {
		return ratio > 1+clearly
	}
	return ratio < 1-clearly
}
