//go:build linux

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"example.com/forebay"
	"example.com/forebay/cluster"
	"example.com/forebay/contrib/redisstore"
)

// clustered is a gate of forebay's whose limit is the cluster's.
type clustered struct {
	store   *redisstore.Store
	cluster *cluster.Cluster
	gate    *forebay.Gate
	fenced  bool
}

func openForebay(a *assignment) (system, error) {
	store, err := redisstore.Dial(a.Redis.url())
	if err != nil {
		return nil, err
	}
	c, err := cluster.New(cluster.Config{Store: store, Name: "chaos", Lease: a.Loan.Lease})
	if err != nil {
		return nil, err
	}
	policies := map[string]cluster.Policy{"": cluster.Share, "share": cluster.Share, "closed": cluster.Closed, "open": cluster.Open}
	g, err := forebay.New(forebay.Config{
		Name: "work", MaxInFlight: a.Limit, MaxWait: a.Patience, MaxWaiting: a.places(),
		Cluster: c.With(cluster.Terms{
			WhenAway: policies[a.Loan.WhenAway], Withhold: a.Loan.Withhold, Fenced: a.Loan.Fenced,
		}),
	})
	if err != nil {
		return nil, err
	}
	return &clustered{store, c, g, a.Loan.Fenced}, nil
}

// url is the place as the store reads it.
func (p place) url() string {
	url := "redis://" + p.Addrs[0]
	var options []string
	for _, addr := range p.Addrs[1:] {
		options = append(options, "addr="+addr)
	}
	if p.Whole && len(options) == 0 {
		options = append(options, "addr="+p.Addrs[0])
	}
	if p.Master != "" {
		options = append(options, "master_set="+p.Master)
	}
	if len(options) > 0 {
		url += "?" + strings.Join(options, "&")
	}
	return url
}

// places returns how many places the line has: enough for everybody.
func (a *assignment) places() int {
	if a.Patience == 0 {
		return 0
	}
	return 10 * a.Callers
}

func (c *clustered) acquire(ctx context.Context, cost int) (grip, outcome) {
	lease, err := c.gate.Acquire(ctx, forebay.Call{Cost: cost})
	if err != nil {
		return grip{}, outcomeOf(err)
	}
	work, end := lease.Context(context.Background())
	g := grip{lost: work.Done(), release: func() { end(); lease.Release() }}
	if c.fenced {
		for _, f := range lease.Fences() {
			g.fences = append(g.fences, &fence{number: f.Number, fence: f.Fence})
		}
	}
	return g, done
}

func outcomeOf(err error) outcome {
	var r *forebay.RejectedError
	switch {
	case errors.As(err, &r) && r.Decision() == forebay.RejectedStore:
		return failed
	case errors.As(err, &r), errors.Is(err, context.Canceled):
		return full
	}
	return broken
}

func (c *clustered) setLimit(n int) { c.gate.SetLimit(n) }

// close gives everything back within a moment, as a program does that is told to end.
func (c *clustered) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	defer c.store.Close()
	return c.cluster.Close(ctx)
}
