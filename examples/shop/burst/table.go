package burst

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Column is a result with what stands above it.
type Column struct {
	Title  string
	Result Result
}

// Table prints results side by side: what each class got, and what the refusals
// were like. The columns must come from plans with the same classes.
func Table(w io.Writer, columns ...Column) error {
	if len(columns) == 0 {
		return nil
	}
	t := table{columns: columns}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.Title
	}
	t.rows = append(t.rows, append([]string{"", ""}, titles...))
	for i, class := range columns[0].Result.Classes {
		t.class(i, class.Name)
	}
	t.row("all", "goodput", func(r Result) string { return fmt.Sprintf("%.0f a second", r.Goodput()) })
	t.row("", "Retry-After honoured", honoured)
	_, err := io.WriteString(w, t.String())
	return err
}

type table struct {
	columns []Column
	rows    [][]string
}

// class adds the rows of one class; those about what did not happen are left out.
func (t *table) class(i int, name string) {
	of := func(f func(Outcome) string) func(Result) string {
		return func(r Result) string { return f(r.Classes[i]) }
	}
	t.row(name, "calls", of(func(o Outcome) string { return fmt.Sprint(o.Arrived()) }))
	t.row("", "answered in time", of(func(o Outcome) string {
		return fmt.Sprintf("%d (%s)", o.InTime, percent(o.InTime, o.Arrived()))
	}))
	t.row("", "p50, p99", of(func(o Outcome) string {
		if o.InTime+o.Late == 0 {
			return "-"
		}
		return took(o.Answers.P50, o.Deadline) + ", " + took(o.Answers.P99, o.Deadline)
	}))
	t.row("", "gave up waiting", of(func(o Outcome) string { return amount(o.Late) }))
	t.row("", "refused", of(func(o Outcome) string { return amount(o.Refused) }))
	t.row("", "refused within p50, p99", of(func(o Outcome) string {
		if o.Refused == 0 {
			return "-"
		}
		return took(o.Refusals.P50, o.Deadline) + ", " + took(o.Refusals.P99, o.Deadline)
	}))
	t.row("", "failed", of(func(o Outcome) string { return amount(o.Failed) }))
	t.row("", "not sent", of(func(o Outcome) string { return amount(o.Unsent) }))
}

// row adds a line, unless it has nothing to say of any result.
func (t *table) row(class, what string, cell func(Result) string) {
	row, said := []string{class, what}, false
	for _, c := range t.columns {
		text := cell(c.Result)
		said = said || text != "-"
		row = append(row, text)
	}
	if said {
		t.rows = append(t.rows, row)
	}
}

// String lays the rows out. Column widths count characters, not bytes.
func (t *table) String() string {
	width := make([]int, len(t.columns)+2)
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		if n > 0 && row[0] != "" {
			b.WriteByte('\n')
		}
		line := ""
		for i, cell := range row {
			line += cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func honoured(r Result) string {
	back, answered := 0, 0
	for _, c := range r.Classes {
		back += c.CameBack
		answered += c.CameBackInTime
	}
	if back == 0 {
		return "-"
	}
	return fmt.Sprintf("%d came back, %d answered", back, answered)
}

func amount(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// percent never rounds up to 100 %, nor down to 0 %, what is not.
func percent(n, of int) string {
	switch {
	case of == 0:
		return "-"
	case n == of, n == 0:
		return fmt.Sprintf("%d %%", 100*n/of)
	}
	return fmt.Sprintf("%d %%", min(99, max(1, (200*n+of)/(2*of))))
}

// took prints a time with two digits, and what reached the deadline as such.
func took(d, deadline time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d >= deadline:
		return fmt.Sprintf("> %g s", deadline.Seconds())
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}
