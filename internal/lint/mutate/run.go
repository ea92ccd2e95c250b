package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// config is what the command line chose.
type config struct {
	part
	only     string // prefix of file:line
	list     bool
	flips    bool
	short    bool
	parallel int
	memoryMB int
	timeout  time.Duration // 0: found by the baseline
}

// run finds the mutants below root and runs them. It reports whether every one
// was caught or is excused.
func run(ctx context.Context, root string, cfg config, out io.Writer) (bool, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return false, err
	}
	all, err := findMutants(root, cfg)
	if err != nil {
		return false, err
	}
	r := &runner{root: root, cfg: cfg, out: out, idle: idleNames(cfg.names, all)}
	for _, m := range all {
		switch {
		case !strings.HasPrefix(m.place(), cfg.only):
		case m.reason != "":
			r.excused = append(r.excused, m)
		default:
			r.mutants = append(r.mutants, m)
		}
	}
	if cfg.list {
		for _, m := range r.mutants {
			fmt.Fprintf(out, "%s %s\n", m.place(), brief(m.what))
		}
		return true, nil
	}
	if len(r.mutants)+len(r.excused) == 0 {
		return false, errors.New("no release site found; see -dirs and -names")
	}
	if err := r.baseline(ctx); err != nil {
		return false, err
	}
	if err := r.all(ctx); err != nil {
		return false, err
	}
	return r.summary(), nil
}

// idleNames returns the names of the table that made no mutant, sorted.
func idleNames(names map[string]target, ms []mutant) []string {
	idle := maps.Clone(names)
	for _, m := range ms {
		delete(idle, m.callee)
	}
	return slices.Sorted(maps.Keys(idle))
}

// A runner runs the mutants, a few at a time.
type runner struct {
	root     string
	cfg      config
	mutants  []mutant
	excused  []mutant
	packages []string // that have tests
	idle     []string // names that nobody calls

	mu   sync.Mutex // guards what follows
	out  io.Writer
	done int
	bad  []string // survivors, and mutants that could not be built
	err  error    // the first that is no verdict about a mutant
}

// baseline runs the tests without a mutant: if they fail, a mutant proves
// nothing by failing.
func (r *runner) baseline(ctx context.Context) error {
	var err error
	if r.packages, err = testedPackages(ctx, r.root, r.cfg.tests); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "mutate: %d mutants, %d equivalent; first the tests of %d packages as they are\n", len(r.mutants), len(r.excused), len(r.packages))
	began := time.Now()
	v, err := r.test(ctx, r.packages, "")
	if err != nil {
		return err
	}
	if v.kind != survived {
		return fmt.Errorf("the tests fail without any mutant: %s", v.by)
	}
	took := time.Since(began)
	if r.cfg.timeout == 0 {
		r.cfg.timeout = max(min(max(4*took, 10*time.Second), time.Minute), 2*v.slowest).Round(time.Second)
	}
	fmt.Fprintf(r.out, "mutate: they pass in %.1fs; a package that takes longer than %v hangs\n", took.Seconds(), r.cfg.timeout)
	return nil
}

// all runs the mutants, cfg.parallel at a time, and returns when each has its
// verdict.
func (r *runner) all(ctx context.Context) error {
	next := make(chan mutant)
	var workers sync.WaitGroup
	for range max(1, r.cfg.parallel) {
		workers.Go(func() {
			for m := range next {
				began := time.Now()
				v, err := r.judge(ctx, m)
				r.record(m, v, err, time.Since(began))
			}
		})
	}
	for _, m := range r.mutants {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.err
}

// judge tries the variants of a mutant until one builds.
func (r *runner) judge(ctx context.Context, m mutant) (verdict, error) {
	v := verdict{kind: unbuilt, by: "the type of its value is unknown"}
	for _, text := range m.texts {
		var err error
		if v, err = r.testMutant(ctx, m, text); err != nil || v.kind != unbuilt {
			return v, err
		}
	}
	return v, nil
}

// record prints one verdict and keeps what the summary needs.
func (r *runner) record(m mutant, v verdict, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.err == nil {
			r.err = fmt.Errorf("%s: %w", m.place(), err)
		}
		return
	}
	r.done++
	line := fmt.Sprintf("%s %s %s", m.place(), brief(m.what), v)
	fmt.Fprintf(r.out, "mutant %d/%d %s (%.1fs)\n", r.done, len(r.mutants), line, took.Seconds())
	if v.kind != caught {
		r.bad = append(r.bad, line)
	}
}

// summary prints the outcome and reports whether it is good.
func (r *runner) summary() bool {
	for _, m := range r.excused {
		fmt.Fprintf(r.out, "equivalent: %s %s: %s\n", m.place(), brief(m.what), m.reason)
	}
	for _, line := range r.bad {
		fmt.Fprintf(r.out, "NOT CAUGHT: %s\n", line)
	}
	if len(r.idle) > 0 {
		fmt.Fprintf(r.out, "mutate: nobody calls %s; a renamed release site would go unseen\n", strings.Join(r.idle, ", "))
	}
	fmt.Fprintf(r.out, "mutate: %d mutants, %d caught, %d not, %d equivalent\n", len(r.mutants), len(r.mutants)-len(r.bad), len(r.bad), len(r.excused))
	return len(r.bad) == 0
}

// brief writes source text on one line of bounded length.
func brief(source string) string {
	line := []rune(strings.Join(strings.Fields(source), " "))
	if len(line) > 60 {
		line = append(line[:57], '.', '.', '.')
	}
	return string(line)
}
