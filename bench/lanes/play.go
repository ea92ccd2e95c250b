package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"example.com/forebay/internal/simulate"
)

// row is one line of a trial over all seeds.
type row struct {
	trial *trial
	line  line
	mean  float64
	worst float64
}

func (r row) holds() bool {
	if r.line.atMost != 0 {
		return r.mean <= r.line.atMost
	}
	return r.mean >= r.line.atLeast
}

// play runs every trial with every seed, as many at once as there are processors.
func play(trials []*trial, seeds int, progress io.Writer) ([]row, error) {
	figures := make([][][]float64, len(trials)) // by trial, line, seed
	errs := make([]error, len(trials))
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	var mu sync.Mutex // guards what follows, and progress
	done := 0
	for i, t := range trials {
		figures[i] = make([][]float64, len(t.lines))
		for j := range t.lines {
			figures[i][j] = make([]float64, seeds)
		}
		for seed := range seeds {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				sc := t.scenario
				sc.Name, sc.Seed = t.title(), uint64(seed+1)
				r, err := simulate.Run(&sc, nil)
				if err == nil {
					for j, l := range t.lines {
						figures[i][j][seed] = l.of(r)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs[i] = fmt.Errorf("%s, seed %d: %w", t.title(), seed+1, err)
				}
				if done++; done%10 == 0 {
					fmt.Fprintf(progress, "%d of %d runs\n", done, len(trials)*seeds)
				}
			})
		}
	}
	all.Wait()
	var rows []row
	for i, t := range trials {
		if errs[i] != nil {
			return nil, errs[i]
		}
		for j, l := range t.lines {
			rows = append(rows, newRow(t, l, figures[i][j]))
		}
	}
	return rows, nil
}

func newRow(t *trial, l line, figures []float64) row {
	r := row{trial: t, line: l, worst: figures[0]}
	for _, f := range figures {
		r.mean += f / float64(len(figures))
		if l.atMost != 0 {
			r.worst = max(r.worst, f)
		} else {
			r.worst = min(r.worst, f)
		}
	}
	return r
}

func (t *trial) title() string { return t.id + " " + t.name }

// write prints the table.
func write(out io.Writer, rows []row, seeds int) {
	fmt.Fprintf(out, "| scenario | what | asked | mean of %d | worst | |\n| --- | --- | --- | --- | --- | --- |\n", seeds)
	for _, r := range rows {
		asked, verdict := fmt.Sprintf("≥ %.4g", r.line.atLeast), "holds"
		if r.line.atMost != 0 {
			asked = fmt.Sprintf("≤ %.4g", r.line.atMost)
		}
		if !r.holds() {
			verdict = "**missed**"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %.4f | %.4f | %s |\n", r.trial.title(), r.line.what, asked, r.mean, r.worst, verdict)
	}
}

func save(file string, rows []row, seeds int) error {
	var b strings.Builder
	b.WriteString(`# Who is served, when there is too much

Written by ` + "`make bench-lanes`" + `, in simulated time by the code of the server; the same
seeds give the same figures. Behind the gate are fifty servers, calls take 50 ms (at random,
exponentially) unless the scenario says otherwise, the limit is 50, the patience 100 ms, and
the line has no bound of its own. Loads are in parts of what the backend can do.

`)
	write(&b, rows, seeds)
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// What lines look at.

func answered(client int) func(*simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		c := r.Clients[client]
		return 1 - part(float64(c.GivenUp), float64(c.Calls)) // some are under way at the end
	}
}

func accepted(client int) func(*simulate.Result) float64 {
	return func(r *simulate.Result) float64 {
		sum := 0.0
		for _, c := range r.Clients {
			sum += float64(c.Accepted)
		}
		return part(float64(r.Clients[client].Accepted), sum)
	}
}

func part(n, of float64) float64 {
	if of == 0 {
		return 0
	}
	return n / of
}

func times(load float64) string { return fmt.Sprintf("%g x", load) }

func plural(callers int) string { return fmt.Sprintf("%d callers", callers) }
