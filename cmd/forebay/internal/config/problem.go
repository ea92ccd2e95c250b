package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake: where it is, what is wrong, and what would be right.
type Problem struct {
	File   string `json:"file"` // or the flag: "--max-wait"
	Line   int    `json:"line"` // 0 for a flag
	Col    int    `json:"col"`
	What   string `json:"what"`
	Remedy string `json:"remedy"`
}

// String returns "FILE:LINE:COL: what is wrong; what would be right".
func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s; %s", p.File, p.What, p.Remedy)
	}
	return fmt.Sprintf("%s:%d:%d: %s; %s", p.File, p.Line, p.Col, p.What, p.Remedy)
}

// Problems are all mistakes of one configuration, in the order of their places. It
// is never empty as an error.
type Problems []Problem

// Error returns the problems, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds what one bad file can make the program print and keep.
const maxProblems = 100

// sorted returns the problems by place, each once, at most maxProblems of them; of
// more, the last one says how many are left out.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(a.Line-b.Line, a.Col-b.Col)
	})
	ps = slices.Compact(ps)
	if len(ps) <= maxProblems {
		return ps
	}
	next, more := ps[maxProblems-1], len(ps)-maxProblems+1
	next.What = fmt.Sprintf("%d more mistakes from here on", more)
	next.Remedy = "correct those above first"
	return append(ps[:maxProblems-1], next)
}
