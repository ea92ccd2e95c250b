package forebay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Gates is a set of gates by name, in the order in which they were configured.
// Make one with [NewGates], the zero value has none; it is safe for concurrent use
// and never changes.
type Gates struct {
	all    []*Gate
	byName map[string]*Gate
}

// NewGates returns a gate for every configuration, or every mistake at once.
func NewGates(configs ...Config) (*Gates, error) {
	gs := &Gates{byName: make(map[string]*Gate, len(configs))}
	var errs []error
	for i, c := range configs {
		g, err := New(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("forebay: gate %q, configuration %d of %d, is wrong:\n%w", c.Name, i+1, len(configs), err))
			continue
		}
		if gs.byName[g.name] != nil {
			errs = append(errs, fmt.Errorf("forebay: configuration %d of %d: the name %q is taken; every gate needs its own", i+1, len(configs), g.name))
			continue
		}
		gs.all = append(gs.all, g)
		gs.byName[g.name] = g
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return gs, nil
}

// Get returns the gate of that name, nil if there is none.
func (gs *Gates) Get(name string) *Gate { return gs.byName[name] }

// All ranges over the gates in order.
func (gs *Gates) All() iter.Seq[*Gate] { return slices.Values(gs.all) }

// Stats returns the picture of the gate of that name, false if there is none. Of a
// gate with a [Config.Cluster] Capacity, Available, InUse and Waiting are those of the
// whole cluster, once the store has been heard of, and Local says what is here; the
// counters are of this process.
func (gs *Gates) Stats(name string) (Stats, bool) {
	g := gs.byName[name]
	if g == nil {
		return Stats{}, false
	}
	return g.overCluster(g.Stats()), true
}

// DrainAll drains every gate at the same time, and returns when all are empty or
// ctx has ended, with the errors of those that were not.
func (gs *Gates) DrainAll(ctx context.Context) error {
	errs := make([]error, len(gs.all))
	var wg sync.WaitGroup
	for i, g := range gs.all {
		wg.Go(func() { errs[i] = g.Drain(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ResumeAll ends the drain of every gate.
func (gs *Gates) ResumeAll() {
	for _, g := range gs.all {
		g.Resume()
	}
}
