package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"example.com/forebay/internal/simulate"
)

// unseenDir has the backends that nothing was tuned on. They are given as a user gives
// his: in files, to the program.
const unseenDir = "control/unseen"

// sweep are the fixed numbers among which the best one is looked for.
var sweep = []int{4, 6, 8, 10, 12, 15, 18, 22, 26, 32, 38, 45, 54, 64, 76, 90, 110, 140}

// newcomer is what became of one of these backends.
type newcomer struct {
	name     string
	auto     spread
	best     spread
	bestAt   int
	doubled  float64 // mean of twice the best number
	limit    float64 // that auto had, mean
	p99, few float64 // ms: of auto, of the best number
}

// playUnseen runs the program on each of them, and the best of a sweep beside it.
func playUnseen(seeds int) (all []newcomer, err error) {
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "forebay")
	build := exec.Command("go", "build", "-o", program, "./cmd/forebay")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(unseenDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no scenarios: %v", unseenDir, err)
	}
	for _, f := range files {
		n, err := playNewcomer(program, f, seeds)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func playNewcomer(program, file string, seeds int) (n newcomer, err error) {
	n.name = strings.TrimSuffix(filepath.Base(file), ".yaml")
	means := make([]float64, len(sweep))
	for i, limit := range sweep {
		runs, err := runs(program, file, limit, 1)
		if err != nil {
			return n, err
		}
		if means[i] = over(runs, goodput).mean; means[i] > n.best.mean {
			n.best.mean, n.bestAt = means[i], limit
		}
	}
	auto, err := runs(program, file, 0, seeds)
	if err != nil {
		return n, err
	}
	best, err := runs(program, file, n.bestAt, seeds)
	if err != nil {
		return n, err
	}
	double, err := runs(program, file, 2*n.bestAt, seeds)
	if err != nil {
		return n, err
	}
	n.auto, n.best, n.doubled = over(auto, goodput), over(best, goodput), over(double, goodput).mean
	n.limit = over(auto, func(r *simulate.Result) float64 { return r.Gates[0].Limit }).mean
	n.p99, n.few = over(auto, p99).mean, over(best, p99).mean
	return n, nil
}

// runs plays a file with the seeds from 1 on, with its own limit if that is 0.
func runs(program, file string, limit, seeds int) ([]*simulate.Result, error) {
	results, errs := make([]*simulate.Result, seeds), make([]error, seeds)
	var wait sync.WaitGroup
	slots := make(chan struct{}, workers)
	for i := range seeds {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			args := []string{"simulate", file, "--json", "--set", fmt.Sprintf("seed=%d", i+1)}
			if limit > 0 {
				args = append(args, "--set", fmt.Sprintf("gates.gate.max_in_flight=%d", limit))
			}
			out, err := exec.Command(program, args...).Output()
			if err == nil {
				err = json.Unmarshal(out, &results[i])
			}
			if err != nil {
				errs[i] = fmt.Errorf("forebay %s: %w", strings.Join(args, " "), err)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// over returns a figure over several results, of which more is better.
func over(results []*simulate.Result, of func(r *simulate.Result) float64) spread {
	s := spread{worst: of(results[0])}
	for _, r := range results {
		v := of(r)
		s.mean += v / float64(len(results))
		s.worst = min(s.worst, v)
	}
	return s
}
