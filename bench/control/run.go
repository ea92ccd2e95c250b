package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"example.com/forebay/internal/simulate"
)

// workers is how many runs go on at once. It changes no figure.
const workers = 2

// job is one run: a trial of a contender with a seed.
type job struct {
	*trial
	contender contender
	seed      uint64
	figures   []float64        // in the order of the looks
	points    []simulate.Point // if the trial keeps them
	err       error
}

// heavy is how many calls make a trial one of which fewer seeds do.
const heavy = 1_200_000

// seedsOf says how many seeds a contender plays a trial with. Ours and the oracle have
// all.
func (p *plan) seedsOf(t *trial, c contender) int {
	some := max(1, p.seeds/2)
	compared := c.name == nameOurs || c.name == nameOracle
	switch {
	case len(t.among) > 0 && !slices.Contains(t.among, c.name):
		return 0
	case t.cost() > heavy && !(c.name == nameOurs && p.seeds >= 5):
		if compared {
			return some
		}
		return 1
	case compared:
		return p.seeds
	}
	return some
}

// jobs has every trial of every contender with each of its seeds.
func jobs(trials []*trial, contenders []contender, p *plan) (all []*job) {
	for _, t := range trials {
		for _, c := range contenders {
			for seed := range p.seedsOf(t, c) {
				all = append(all, &job{trial: t, contender: c, seed: uint64(seed + 1)})
			}
		}
	}
	return all
}

// play runs all jobs, the longest first, and says how far it is.
func play(all []*job, out io.Writer) error {
	order := slices.SortedStableFunc(slices.Values(all), func(a, b *job) int { return cmp.Compare(b.cost(), a.cost()) })
	next := make(chan *job)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for j := range next {
				j.play()
			}
		})
	}
	for i, j := range order {
		if i%(1+len(order)/40) == 0 {
			fmt.Fprint(out, ".")
		}
		next <- j
	}
	close(next)
	wait.Wait()
	fmt.Fprintln(out)
	for _, j := range all {
		if j.err != nil {
			return fmt.Errorf("%s, %s, seed %d: %w", j.title(), j.contender.name, j.seed, j.err)
		}
	}
	return nil
}

func (j *job) play() {
	if j.contender.real {
		playReal(j)
	} else {
		j.playWith(j.contender)
	}
}

func (j *job) playWith(c contender) {
	r, err := simulate.Run(j.scenario(c, j.seed), nil)
	if err != nil {
		j.err = err
		return
	}
	if j.keep {
		j.points = r.Points
	}
	for _, l := range j.looks {
		j.figures = append(j.figures, l.of(r))
	}
}

// table has the figures of all runs.
type table struct {
	trials     []*trial
	contenders []contender
	runs       map[cell][]*job
}

type cell struct {
	trial     *trial
	contender string
}

func newTable(trials []*trial, contenders []contender, all []*job) *table {
	t := &table{trials, contenders, map[cell][]*job{}}
	for _, j := range all {
		c := cell{j.trial, j.contender.name}
		t.runs[c] = append(t.runs[c], j)
	}
	return t
}

// spread is a figure over the seeds.
type spread struct{ mean, worst float64 }

// figure returns one look of a trial, NaN if it was not run.
func (t *table) figure(tr *trial, contender string, i int) spread {
	runs := t.runs[cell{tr, contender}]
	if len(runs) == 0 {
		return spread{math.NaN(), math.NaN()}
	}
	s := spread{worst: runs[0].figures[i]}
	for _, j := range runs {
		v := j.figures[i]
		s.mean += v / float64(len(runs))
		if tr.looks[i].less {
			s.worst = max(s.worst, v)
		} else {
			s.worst = min(s.worst, v)
		}
	}
	return s
}

// share returns a contender's mean of a figure over the oracle's, over the seeds that
// both have run.
func (t *table) share(tr *trial, contender string, i int) float64 {
	ours, oracle := t.runs[cell{tr, contender}], t.runs[cell{tr, nameOracle}]
	if len(ours) == 0 || len(oracle) == 0 {
		return math.NaN()
	}
	a, b := 0.0, 0.0
	for k := range min(len(ours), len(oracle)) {
		a, b = a+ours[k].figures[i], b+oracle[k].figures[i]
	}
	return a / b
}

// worst is the trial in which a contender is furthest below the oracle.
type worst struct {
	share float64
	where string
}

// score returns the worst share of the oracle's goodput among the trials that of picks.
func (t *table) score(contender string, of func(tr *trial) bool) worst {
	w := worst{share: math.Inf(1)}
	for _, tr := range t.trials {
		if !of(tr) {
			continue
		}
		for i, l := range tr.looks {
			if s := t.share(tr, contender, i); l.scored && s < w.share {
				w = worst{s, tr.title()}
				if len(tr.looks) > 3 {
					w.where += ", " + l.name
				}
			}
		}
	}
	return w
}
