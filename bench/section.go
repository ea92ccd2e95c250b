package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// section is one table: rows that do the same thing in different ways, measured
// in interleaved rounds.
type section struct {
	name    string // for --only
	title   string
	about   string   // what is measured and how, for the document
	base    string   // the row to which ratios are taken
	columns []column // what is measured of each row
	rows    []row
	rounds  int // 0: those of the effort
	// together measures all rows at the same time, instead of one by one.
	together func(round int) (round, error)
	targets  []target
	notes    []string // what the reader must know to read the table
	close    func()   // gives back what the section holds; nil: nothing
}

// column is one thing measured of every row.
type column struct {
	name  string
	ratio string // heading of the ratio to the base row beside it; empty: none
	more  bool   // more of it is better, instead of less
	// neutral: neither more nor less of it is better, or another column says the
	// same.
	neutral bool
	noise   float64 // a difference that is none
}

// kind says what a row is in the comparison.
type kind int

const (
	ours      kind = iota
	rival          // another way to do what we do
	yardstick      // what the rest is measured by
)

// row is one contender.
type row struct {
	name    string
	kind    kind
	against string // the row of ours that a rival is compared with
	measure func() figures
}

// figures is what was measured of one row in one round, by column.
type figures map[string]float64

// round is one pass over all rows. Ratios are taken within it, so that noise of
// the machine hits both sides alike.
type round map[string]figures

// at returns one figure; NaN if it was not measured.
func (r round) at(row, column string) float64 {
	if v, ok := r[row][column]; ok {
		return v
	}
	return math.NaN()
}

// result is a section with its rounds.
type result struct {
	*section
	measured []round
}

// run measures the section, and says how far it is.
func (s *section) run(out io.Writer, e effort) (*result, error) {
	r := &result{section: s}
	n := s.rounds
	if n == 0 {
		n = e.rounds
	}
	began := time.Now()
	fmt.Fprintf(out, "%-8s %2d rows, %d rounds ", s.name, len(s.rows), n)
	for i := range n {
		m, err := s.pass(i)
		if err != nil {
			return nil, err
		}
		r.measured = append(r.measured, m)
		fmt.Fprint(out, ".")
	}
	fmt.Fprintf(out, " %.0f s\n", time.Since(began).Seconds())
	return r, nil
}

// pass measures every row once. Each round starts with another row, so that none
// always follows the same one.
func (s *section) pass(i int) (round, error) {
	if s.together != nil {
		return s.together(i)
	}
	m := round{}
	for k := range s.rows {
		row := &s.rows[(i+k)%len(s.rows)]
		m[row.name] = row.measure()
	}
	return m, nil
}

func (s *section) end() {
	if s.close != nil {
		s.close()
	}
}

// median returns the median over the rounds of what of says about each.
func (r *result) median(of func(round) float64) float64 { return median(r.each(of)) }

func (r *result) each(of func(round) float64) []float64 {
	var all []float64
	for _, m := range r.measured {
		all = append(all, of(m))
	}
	return all
}

// figure returns the median of one figure.
func (r *result) figure(row, column string) float64 {
	return r.median(func(m round) float64 { return m.at(row, column) })
}

// ratio returns the median of the ratio of two rows' figures within a round.
func (r *result) ratio(row, base, column string) float64 {
	return r.median(func(m round) float64 { return m.at(row, column) / m.at(base, column) })
}

// median returns the middle of the values, NaN if one of them is.
func median(values []float64) float64 {
	if len(values) == 0 || slices.ContainsFunc(values, math.IsNaN) {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
